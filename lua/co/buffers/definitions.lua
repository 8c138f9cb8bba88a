--- Finds the definitions of a name by the person's language servers.
local M = {}

local api = vim.api
local async = require('co.ui.async')
local disk = require('co.ui.file_text')
local editor_query = require('co.buffers.editor_query')
local last_window = require('co.ui.last_window')

-- The most buffers whose language servers are asked.
local MOST_BUFFERS = 8
-- No further request begins after so many milliseconds.
local LONGEST = 5000

--- Returns the files of the buffers that language servers are attached to, that of the last window first.
---@return string[]
local function files()
  local last = last_window.buffer()
  local bufs = vim.tbl_filter(function(buf)
    return api.nvim_buf_is_loaded(buf) and #vim.lsp.get_clients({ bufnr = buf }) > 0
  end, api.nvim_list_bufs())
  table.sort(bufs, function(one, other)
    return other ~= last and (one == last or one < other)
  end)
  return vim.tbl_map(function(buf)
    return disk.resolve(api.nvim_buf_get_name(buf))
  end, vim.list_slice(bufs, 1, MOST_BUFFERS))
end

--- Calls `done` with the places of the definitions of a name, or with the problem if there is none. A file in which the name stands
--- tells its definition; otherwise the symbols of the workspace are searched.
---@param name string such as `area` or `Shape::area`
---@param most integer places
---@param done fun(places?: co.ServerPlace[], problem?: string)
function M.find(name, most, done)
  local asked = files()
  if #asked == 0 then
    return done(nil, 'no language server is attached to an open file')
  end
  async.run(function()
    local problem ---@type string?
    local deadline = vim.uv.now() + LONGEST
    for _, topic in ipairs({ 'definition', 'workspace' }) do
      for _, file in ipairs(asked) do
        local query = { topic = topic, file = file, name = name, most = most }
        local answer = async.await(function(answered)
          editor_query.ask(query, answered)
        end) --[[@as co.EditorAnswer]]
        problem = topic == 'workspace' and answer.problem or problem
        if answer.places and #answer.places > 0 then
          return done(answer.places)
        elseif vim.uv.now() >= deadline then
          return done(nil, problem or 'no language server knows the name')
        end
      end
    end
    done(nil, problem or 'no language server knows the name')
  end)
end

return M
