--- Sends messages and prompts of a chat to the backend.
local M = {}

local backend = require('co.backend')
local notify = require('co.ui.notify')
local utf8 = require('co.ui.utf8')
local windows = require('co.ui.windows')

--- Sends a message of this chat. A backend that was started anew first takes the conversation up again.
---@param chat co.Chat
---@param message co.FromEditor
---@param cwd string
---@return boolean taken
function M.message(chat, message, cwd)
  if message.args and not utf8.valid(message.args) then
    notify.error(
      message.name == '!'
          and 'not run: the command is not all UTF-8; put it into a script and run that'
        or ('/%s was not sent: what follows it is not all UTF-8; name it otherwise'):format(
          message.name
        )
    )
    return false
  end
  -- What has begun stays where it is: of a chat that is only known by its name, where it will be.
  if not utf8.valid(cwd) then
    cwd, message.cwd = chat.state.cwd, chat.state.cwd
    if not utf8.valid(cwd) then
      notify.error(utf8.NO_PLACE)
      return false
    end
  end
  local first = chat.lost
    and message.name ~= 'resume'
    and { type = 'command', session = chat.id, name = 'resume', args = chat.lost, cwd = cwd }
  if first and not backend.send(first) then
    return false
  end
  local taken = backend.send(message)
  if taken then
    chat.lost = nil
  end
  return taken
end

--- Sends a prompt; `!cmd` runs a command in the chat, `/name` is a slash command.
---@param chat co.Chat
---@param text string
---@param cwd string
---@param extra? co.Context[]
---@return boolean taken
function M.text(chat, text, cwd, extra)
  local typed = text:match('^!%s*(.-)%s*$')
  if typed then
    return require('co.run').run_in_chat(chat, typed, cwd)
  end
  local name, args = text:match('^/(%S*)%s*(.-)%s*$')
  if name then
    return require('co.user_command.slash').run(name, args or '', chat, cwd)
  end
  local taken = M.message(chat, {
    type = 'prompt',
    session = chat.id,
    text = text,
    cwd = cwd,
    context = require('co.chat.context').gather(text, extra, chat.range),
  }, cwd)
  if taken then
    chat.range = nil
    table.insert(chat.sent, text)
    windows.to_end(chat.buf)
  end
  return taken
end

return M
