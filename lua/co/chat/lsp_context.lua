--- The context `@lsp:Symbol`: the definitions of a name and the references to it, by the person's language servers.
local M = {}

local api = vim.api
local async = require('co.ui.async')
local definitions = require('co.buffers.definitions')
local disk = require('co.ui.file_text')
local editor_query = require('co.buffers.editor_query')
local last_window = require('co.ui.last_window')

-- The most definitions and references.
local DEFINITIONS, REFERENCES = 5, 50

--- Returns the query for the lines with the definitions of a name. If the name stands in the buffer of the last window,
--- the query also has the references to it. If there is no query, returns the reason.
---@async
---@param name string
---@return co.ContextQuery?
---@return string? missing
function M.places(name)
  local file = disk.resolve(api.nvim_buf_get_name(last_window.buffer()))
  local places, problem = async.await(function(done)
    definitions.find(name, DEFINITIONS, done)
  end)
  if not places then
    return nil, problem
  end
  local query = { topic = 'references', file = file, name = name, most = REFERENCES }
  local answer = async.await(function(done)
    editor_query.ask(query, done)
  end)
  return {
    kind = 'places',
    definitions = places,
    references = answer.places or {},
    more = answer.more or 0,
  }
end

return M
