--- Sends the prompts and the commands of a chat to the backend.
local M = {}

local backend = require('co.backend')
local callbacks = require('co.chat.callbacks')
local notify = require('co.ui.notify')
local registry = require('co.chat.registry')
local utf8 = require('co.ui.utf8')
local windows = require('co.ui.windows')

--- Returns the working directory for a message; nil, after a notice, if its name is not UTF-8.
---
--- A chat that has begun keeps the directory that it has.
---@param chat co.Chat
---@param cwd string
---@return string?
local function usable_directory(chat, cwd)
  if utf8.valid(cwd) then
    return cwd
  elseif utf8.valid(chat.state.cwd) then
    return chat.state.cwd
  end
  notify.error(utf8.NO_PLACE)
end

--- Sends a message of a chat. If the backend was restarted, it first loads its transcript again.
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
  local directory = usable_directory(chat, cwd)
  if not directory then
    return false
  end
  message.cwd = directory
  local first = chat.unloaded
    and message.name ~= 'resume'
    and {
      type = 'command',
      chat = chat.id,
      name = 'resume',
      args = chat.unloaded,
      cwd = directory,
    }
  if first and not backend.send(first) then
    return false
  end
  local taken = backend.send(message)
  if taken then
    chat.unloaded = nil
  end
  return taken
end

--- Returns the index of the first waiting prompt that does not steer the turn.
---@param chat co.Chat
---@return integer
local function first_queued(chat)
  local steering = chat.state.steering or 0
  return math.min(steering, #chat.waiting_prompts) + 1 --[[@as integer]]
end

--- Sends a prompt into the turn that runs: the text, or the newest queued prompt if it is empty.
---@param chat co.Chat
---@param text string
---@param cwd string
---@return boolean taken
function M.steer(chat, text, cwd)
  if text ~= '' then
    return M.prompt(chat, text, cwd, nil, nil, true)
  end
  local message = { type = 'command', chat = chat.id, name = 'steer', args = '', cwd = cwd }
  local taken = M.message(chat, message, cwd)
  local waiting = chat.waiting_prompts
  if taken and #waiting > 0 then
    local newest = table.remove(waiting)
    table.insert(waiting, first_queued(chat), newest)
  end
  return taken
end

--- Sends a prompt with the contexts that `text` names.
---@param chat co.Chat
---@param message co.Prompt without its contexts
---@param text string
---@param extra? co.Context[]
---@return boolean taken
local function send_prompt(chat, message, text, extra)
  if chat.reading then
    notify.info('not sent: co still reads what the last prompt names; try again in a moment')
    return false
  end
  local late, done, taken = false, false, true
  require('co.chat.context').gather(text, extra, chat.range, function(contexts)
    chat.reading, done = nil, true
    message.context = contexts
    taken = registry.get(chat.id) == chat and M.message(chat, message, message.cwd)
    if late and not taken then
      callbacks.unsent({ type = 'unsent', chat = chat.id, text = message.text })
    end
  end)
  late, chat.reading = true, not done or nil
  if taken then
    chat.range = nil
    local waiting = chat.waiting_prompts
    table.insert(waiting, message.steer and first_queued(chat) or #waiting + 1, message.text)
    windows.scroll_to_end(chat.buf)
  end
  return taken
end

--- Sends a prompt with the contexts that it names.
---@param chat co.Chat
---@param text string
---@param cwd string
---@param extra? co.Context[]
---@param range? co.LineRange
---@param steer? boolean it goes with the next request of the turn that runs
---@return boolean taken
function M.prompt(chat, text, cwd, extra, range, steer)
  return send_prompt(chat, {
    type = 'prompt',
    chat = chat.id,
    text = text,
    cwd = cwd,
    context = {},
    range = range,
    steer = steer,
  }, text, extra)
end

--- Sends the prompt of a prompt file, with the contexts that it names.
---@param chat co.Chat
---@param file co.PromptFile
---@param args string
---@param cwd string
---@param extra? co.Context[]
---@return boolean taken
function M.prompt_file(chat, file, args, cwd, extra)
  local text = require('co.chat.prompt_files').fill(file.text, args)
  local problem = file.problem
    or text == '' and 'it has no text'
    or not utf8.valid(text) and 'what follows it is not all UTF-8'
  if problem then
    notify.error(('/%s was not sent: %s'):format(file.name, problem))
    return false
  end
  return send_prompt(chat, {
    type = 'prompt',
    chat = chat.id,
    text = vim.trim(('/%s %s'):format(file.name, args)),
    cwd = cwd,
    context = {},
    file = {
      path = not file.personal and file.path or nil,
      text = file.text,
      prompt = text,
    },
  }, text, extra)
end

--- Runs a command of the person in a chat: the text of a prompt after its `!`.
---@param chat co.Chat
---@param text string
---@param cwd string
---@return boolean taken
function M.run(chat, text, cwd)
  local run_options = require('co.run.options')
  local command, options, problem = run_options.parse(text)
  if not problem and options.mode then
    problem = 'a chat has no terminal and no input, :Co! ++pty has both'
  elseif not problem and options.watch then
    problem = 'a chat does not run it again on save, :Co! ++watch does'
  end
  if problem or not command or command == '' then
    notify.warn(problem and 'not run: ' .. problem or 'type a command after !')
    return false
  end
  local taken = M.message(chat, {
    type = 'command',
    chat = chat.id,
    name = '!',
    args = command,
    cwd = cwd,
    options = run_options.message(options),
  }, cwd)
  if taken then
    windows.scroll_to_end(chat.buf)
  end
  return taken
end

return M
