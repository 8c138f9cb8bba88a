--- Asks the backend for contexts of the workspace: files, git, searches.
local M = {}

local requests = require('co.backend.requests')
local utf8 = require('co.ui.utf8')

--- Asks for a context. Calls `done` with the answer.
---@alias co.ContextReader fun(word: string, query: co.ContextQuery, done: fun(read: co.ContextRead))

--- Returns the reader of the contexts of a chat.
---@param chat integer
---@param cwd string
---@param send fun(message: co.ReadContext): boolean
---@return co.ContextReader
function M.reader(chat, cwd, send)
  return function(word, query, done)
    for _, path in ipairs(query.paths or { query.path }) do
      if not utf8.valid(path) or path:find('\0', 1, true) then
        return done({ problem = 'its name is not UTF-8' })
      end
    end
    local message = { type = 'read_context', chat = chat, cwd = cwd, word = word, query = query }
    requests.send(message, send, function(answer)
      done(answer or { cancelled = true })
    end)
  end
end

return M
