--- The words that complete the slash commands of the agents of chats.
local M = {}

---@type table<integer, co.AgentWords>
local told = {}

--- Keeps the words that the backend sends.
---@param message co.AgentWords
function M.receive(message)
  told[message.chat] = message.agent and message or nil
  local chat = require('co.chat.registry').get(message.chat)
  if chat then
    chat.agent = message.agent
  end
end

--- Returns the words of the current chat's agent; nil if a model answers there.
---@return co.AgentWords?
function M.current()
  local chat = require('co.chat.registry').current()
  return chat and told[chat.id] or nil
end

--- Returns the commands of the current chat's agent as slash commands, with a few words about each.
---@return table<string, string>
function M.commands()
  ---@type table<string, string>
  local found = {}
  local words = M.current()
  for _, command in ipairs(words and words.commands or {}) do
    found['/agent:' .. command.name] = command.about
  end
  return found
end

--- Returns why the agent of a chat cannot take a command; nil if it may.
---@param chat? co.Chat
---@param name string
---@return string?
function M.problem(chat, name)
  local words = chat and told[chat.id]
  if not words then
    return ('no agent works in this chat: /agent chooses one, then /agent:%s'):format(name)
  end
  for _, command in ipairs(words.commands) do
    if command.name == name then
      return nil
    end
  end
  -- It tells them when it has started.
  if #words.commands > 0 then
    return ('%s has no command %s: /agent:<Tab> lists them'):format(words.agent, name)
  end
end

return M
