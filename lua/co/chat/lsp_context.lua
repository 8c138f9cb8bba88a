--- The context `@lsp:Symbol`: the definitions of a name and the references to it, by the person's language servers.
local M = {}

local api = vim.api
local disk = require('co.ui.file_text')
local editor_query = require('co.buffers.editor_query')
local last_window = require('co.ui.last_window')

-- The most definitions, the most lines of each, and the most references.
local DEFINITIONS, LINES, REFERENCES = 5, 40, 50
-- The most bytes of a file that is not open.
local LONGEST = 4 * 1024 * 1024

--- Returns a path for the model.
---@param file string
---@return string
local function short(file)
  return vim.fn.fnamemodify(file, ':.')
end

--- Returns the first lines of a definition.
---@param at co.EditorEntry
---@return string
local function definition(at)
  local first = at.line or 1
  local open = disk.buffer(at.file)
  local lines
  if open then
    lines = api.nvim_buf_get_lines(open, first - 1, first - 1 + LINES, false)
  else
    local text = (disk.read(at.file, LONGEST) or ''):gsub('\n$', '')
    local all = vim.split(text, '\n', { plain = true })
    lines = vim.list_slice(all, first, first - 1 + LINES)
  end
  local last, text = first + #lines - 1, table.concat(lines, '\n')
  return ('%s:%d-%d:\n%s\n'):format(short(at.file), first, last, text)
end

--- Gives the definitions of a name, and the references to it if the name stands in the buffer of the last window.
---@param name string
---@param done fun(context?: co.Context, missing?: string)
function M.symbol(name, done)
  local file = api.nvim_buf_get_name(last_window.buffer())
  ---@param topic string
  ---@param next fun(answer: co.EditorAnswer)
  local function ask(topic, next)
    editor_query.ask({ topic = topic, file = vim.fn.resolve(file), name = name }, next)
  end
  ---@param definitions co.EditorEntry[]
  local function finish(definitions)
    local parts = vim.tbl_map(definition, vim.list_slice(definitions, 1, DEFINITIONS))
    ask('references', function(answer)
      local references = answer.entries or {}
      if #references > 0 then
        parts[#parts + 1] = 'References:'
      end
      for _, at in ipairs(vim.list_slice(references, 1, REFERENCES)) do
        parts[#parts + 1] = ('%s:%d: %s'):format(short(at.file), at.line, vim.trim(at.text))
      end
      local more = #references + (answer.more or 0) - REFERENCES
      if more > 0 then
        parts[#parts + 1] = ('%d more left out'):format(more)
      end
      done({ name = '@lsp:' .. name, text = table.concat(parts, '\n') .. '\n' })
    end)
  end
  ask('definition', function(here)
    if here.entries and #here.entries > 0 then
      return finish(here.entries)
    end
    ask('workspace', function(anywhere)
      if anywhere.entries and #anywhere.entries > 0 then
        return finish(anywhere.entries)
      end
      done(nil, here.problem or anywhere.problem or 'its language server knows no such name')
    end)
  end)
end

return M
