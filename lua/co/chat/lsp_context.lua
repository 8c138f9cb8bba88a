--- The context `@lsp:Symbol`: the definitions of a name and the references to it, by the person's language servers.
local M = {}

local api = vim.api
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
  ---@param topic string
  ---@param most integer
  ---@param next fun(answer: co.EditorAnswer)
  local function ask(topic, most, next)
    editor_query.ask({ topic = topic, file = file, name = name, most = most }, next)
  end
  ---@param definitions co.ServerPlace[]
  local function finish(definitions)
    ask('references', REFERENCES, function(answer)
      done({
        kind = 'places',
        definitions = definitions,
        references = answer.places or {},
        more = answer.more or 0,
      })
    end)
  end
  ask('definition', DEFINITIONS, function(here)
    if here.places and #here.places > 0 then
      return finish(here.places)
    end
    ask('workspace', DEFINITIONS, function(anywhere)
      if anywhere.places and #anywhere.places > 0 then
        return finish(anywhere.places)
      end
      done(nil, here.problem or anywhere.problem or 'its language server knows no such name')
    end)
  end)
end

return M
