--- Asks the backend for contexts of the workspace: files, git, searches.
local M = {}

local backend = require('co.backend')
local utf8 = require('co.ui.utf8')

-- By their numbers.
---@type table<integer, fun(read: co.ContextRead)>
local requests = {}
local newest = 0

--- The reason for a request without an answer.
local NO_BACKEND = { problem = 'the backend does not run' }

--- Asks for a context. Calls `done` with the answer.
---@alias co.ContextReader fun(word: string, query: co.ContextQuery, done: fun(read: co.ContextRead))

--- Returns the reader of the contexts of a chat.
---@param chat integer
---@param cwd string
---@param send fun(message: co.ReadContext): boolean
---@return co.ContextReader
function M.reader(chat, cwd, send)
  return function(word, query, done)
    local path = query.path or ''
    if not utf8.valid(path) or path:find('\0', 1, true) then
      return done({ problem = 'its name is not UTF-8' })
    end
    newest = newest + 1
    requests[newest] = done
    local message = {
      type = 'read_context',
      chat = chat,
      request = newest,
      cwd = cwd,
      word = word,
      query = query,
    }
    if not send(message) then
      requests[newest] = nil
      done(NO_BACKEND)
    end
  end
end

--- Takes the answer of the backend.
---@param message co.ContextRead
function M.receive(message)
  local done = requests[message.request]
  requests[message.request] = nil
  if done then
    done(message)
  end
end

backend.on_exit(function()
  for number, done in vim.spairs(requests) do
    requests[number] = nil
    done({ cancelled = true })
  end
end)

return M
