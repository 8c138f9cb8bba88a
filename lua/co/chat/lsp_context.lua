--- The context `@lsp:Symbol`: the definitions of a name and the references to it, by the person's language servers.
local M = {}

local api = vim.api
local definitions = require('co.buffers.definitions')
local disk = require('co.ui.file_text')
local editor_query = require('co.buffers.editor_query')
local last_window = require('co.ui.last_window')

-- The most definitions and references.
local DEFINITIONS, REFERENCES = 5, 50

--- Gives the query for the lines of the definitions of a name, and of the references to it if the name stands in the buffer
--- of the last window.
---@param name string
---@param done fun(query?: co.ContextQuery, missing?: string)
function M.places(name, done)
  local file = disk.resolve(api.nvim_buf_get_name(last_window.buffer()))
  definitions.find(name, DEFINITIONS, function(places, problem)
    if not places then
      return done(nil, problem)
    end
    local query = { topic = 'references', file = file, name = name, most = REFERENCES }
    editor_query.ask(query, function(answer)
      done({
        kind = 'places',
        definitions = places,
        references = answer.places or {},
        more = answer.more or 0,
      })
    end)
  end)
end

return M
