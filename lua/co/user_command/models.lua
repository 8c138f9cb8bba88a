--- The names that complete the argument of `/model`. The backend knows them, or asks the provider.
local M = {}

local now = vim.uv.now

-- The longest wait for the backend while the person waits for a completion, in milliseconds.
local WAIT_MS = 1500

-- The age at which a list is asked for again, in milliseconds.
local OLD_MS = 60 * 1000

---@class (exact) co.models.List
---@field words string[]
---@field model string the model of the chat when the list was asked for
---@field time integer

---@type table<string, co.models.List>
local lists = {}

-- The time after which a list is asked for again that has not come: the backend that was asked may have ended.
local LOST_MS = 6 * 1000

-- The lists that were asked for.
---@type table<string, { model: string, time: integer }>
local asked = {}

---@param chat? integer
---@param head string
---@return string
local function key_of(chat, head)
  return ('%s %s'):format(chat or '', head)
end

--- Keeps a list that the backend sends.
---@param message co.Models
function M.receive(message)
  local key = key_of(message.chat, message.head)
  local model = asked[key] and asked[key].model or ''
  lists[key] = { words = message.words, model = model, time = now() }
  asked[key] = nil
end

--- Returns the names that may complete `lead`: models, and profiles with a slash.
---@param lead string
---@param wait boolean wait for the backend, since the person does
---@return string[]
function M.words(lead, wait)
  local chat = require('co.chat.registry').current()
  local id, model = chat and chat.id, chat and chat.state.model or ''
  local head = lead:match('^[^/]*/') or ''
  local key = key_of(id, head)
  local function fresh()
    local list = lists[key]
    return list ~= nil and list.model == model and now() - list.time < OLD_MS
  end
  if not fresh() then
    local last = asked[key]
    if not last or last.model ~= model or now() - last.time > LOST_MS then
      asked[key] = { model = model, time = now() }
      require('co.backend').send({ type = 'list_models', chat = id, head = head })
    end
    if wait then
      vim.wait(WAIT_MS, fresh, 10)
    end
  end
  local list = lists[key]
  return list and list.model == model and list.words or {}
end

return M
