--- Asks the backend for contexts of the workspace: files, git, searches.
local M = {}

local async = require('co.ui.async')
local requests = require('co.backend.requests')
local utf8 = require('co.ui.utf8')

--- Returns a context when the backend has read it.
---@alias co.ContextReader async fun(word: string, query: co.ContextQuery): co.ContextRead

--- Returns the reader of the contexts of a chat.
---@param chat integer
---@param cwd string
---@param send fun(message: co.ReadContext): boolean
---@return co.ContextReader
function M.reader(chat, cwd, send)
  ---@async
  return function(word, query)
    for _, path in ipairs(query.paths or { query.path }) do
      if not utf8.valid(path) or path:find('\0', 1, true) then
        return { problem = 'its name is not UTF-8' }
      end
    end
    local message = { type = 'read_context', chat = chat, cwd = cwd, word = word, query = query }
    return async.await(function(done)
      requests.send(message, send, done)
    end) or { cancelled = true }
  end
end

return M
