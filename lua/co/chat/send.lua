--- Sends the prompts and the commands of a chat to the backend.
local M = {}

local async = require('co.ui.async')
local backend = require('co.backend')
local callbacks = require('co.chat.callbacks')
local notify = require('co.ui.notify')
local printable = require('co.ui.printable')
local registry = require('co.chat.registry')
local requests = require('co.backend.requests')
local utf8 = require('co.ui.utf8')
local windows = require('co.ui.windows')

--- Returns the working directory for a message: `cwd`, or the directory of the chat if the name of `cwd` is not UTF-8.
--- If neither name is UTF-8, shows a notice and returns nil.
---
--- The backend uses the directory only when it makes the chat, so a later message may name the directory of the chat.
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

--- Returns the commands that a new backend gets before the first message of a chat: the chat's transcript, and the agent or
--- model of a chat that has not begun.
---@param chat co.Chat
---@param message co.FromEditor
---@return { name: string, args: string }[]
local function commands_before(chat, message)
  local commands = {}
  if chat.unloaded and message.name ~= 'resume' then
    commands[1] = { name = 'resume', args = chat.unloaded }
  end
  if chat.lost_choice and not vim.list_contains({ 'resume', 'agent', 'model' }, message.name) then
    commands[#commands + 1] = chat.lost_choice
  end
  return commands
end

--- Sends a message of a chat. If the backend was restarted, it first loads the transcript of the chat again.
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
  -- The first message makes the chat, in the directory that it was opened in.
  local directory = usable_directory(chat, chat.state.model == '' and chat.cwd or cwd)
  if not directory then
    return false
  end
  message.cwd = directory
  for _, command in ipairs(commands_before(chat, message)) do
    local first = { type = 'command', chat = chat.id, cwd = directory }
    if not backend.send(vim.tbl_extend('error', first, command)) then
      return false
    end
  end
  local taken = backend.send(message)
  if taken then
    chat.unloaded, chat.lost_choice = nil, nil
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

--- Returns true if prompts are queued although no turn runs. This happens after the person has cancelled a turn.
---@param chat co.Chat
---@return boolean
local function are_held(chat)
  return chat.state.state == 'idle' and chat.state.queued + (chat.state.steering or 0) > 0
end

--- Sends a prompt into the running turn: `text`, or the newest queued prompt if `text` is empty.
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
  if taken and #waiting > 0 and not are_held(chat) then
    local newest = table.remove(waiting)
    table.insert(waiting, first_queued(chat), newest)
  end
  return taken
end

--- A prompt whose contexts must be gathered before it is sent.
---@class (exact) co.GatheringPrompt
---@field message co.Prompt without its contexts
---@field text string the text that names the contexts
---@field extra? co.Context[]
---@field range? co.Context the lines for `@selection`
---@field untrusted? co.PromptFile its file, if the person must trust it first
---@field typed? boolean it was typed into the chat
---@field begin? fun() sends it, as the prompts before it are sent

---@alias co.SendResult 'sent'|'unsent'|'asked'|'refused'

--- Removes a prompt from the list of waiting prompts.
---@param chat co.Chat
---@param text string
function M.waits_no_longer(chat, text)
  for index, waiting in ipairs(chat.waiting_prompts) do
    if waiting == text then
      table.remove(chat.waiting_prompts, index)
      return
    end
  end
end

--- Sends a request for a chat, and waits for the answer; nil if there is no backend for it.
---@async
---@param chat co.Chat
---@param message table
---@return any
local function ask_backend(chat, message)
  return async.await(function(done)
    requests.send(message, function(request)
      return M.message(chat, request, request.cwd)
    end, done)
  end)
end

--- Gathers the contexts of a prompt and sends it.
---@async
---@param chat co.Chat
---@param prompt co.GatheringPrompt
---@return co.SendResult
local function gather_and_send(chat, prompt)
  local message = prompt.message
  local function send(request)
    return M.message(chat, request, request.cwd)
  end
  local contexts = require('co.chat.context').gather({
    text = prompt.text,
    read = require('co.chat.workspace_context').reader(chat.id, vim.fn.getcwd(), send),
    extra = prompt.extra,
    range = prompt.range,
  })
  message.context = contexts or {}
  -- If the backend ended meanwhile, the prompt was given back.
  local waits = contexts and registry.get(chat.id) == chat and chat.gathering[1] == prompt
  return waits and M.message(chat, message, message.cwd) and 'sent' or 'unsent'
end

--- Sends a prompt, unless the person does not trust its file.
---@async
---@param chat co.Chat
---@param prompt co.GatheringPrompt
---@return co.SendResult
---@return integer? question the question about its file, if the person is asked
local function send_one(chat, prompt)
  local file = prompt.untrusted
  if file then
    ---@type co.PromptFileChecked?
    local answer = ask_backend(chat, {
      type = 'check_prompt_file',
      chat = chat.id,
      cwd = prompt.message.cwd,
      name = file.name,
      path = file.path,
      text = file.text,
    })
    if not answer then
      return 'unsent'
    elseif not answer.trusted then
      return answer.question and 'asked' or 'refused', answer.question
    end
  end
  return gather_and_send(chat, prompt)
end

--- Returns true if a prompt goes back into the draft after the person refused its file. The history has the prompt too.
---@param chat co.Chat
---@param prompt co.GatheringPrompt
---@return boolean
local function comes_back(chat, prompt)
  return prompt.typed and chat.prompt:empty() or false
end

--- Sends a prompt with the contexts that its text names, after the prompts before it.
---@param chat co.Chat
---@param prompt co.GatheringPrompt
---@return boolean taken
local function send_prompt(chat, prompt)
  local text, waiting = prompt.message.text, chat.waiting_prompts
  local late, taken = false, true
  local first = prompt.message.steer or are_held(chat)
  table.insert(waiting, first and first_queued(chat) or #waiting + 1, text)
  table.insert(chat.gathering, prompt)
  async.run(function()
    if chat.gathering[1] ~= prompt then
      async.await(function(done)
        prompt.begin = done
      end)
    end
    local how, question = send_one(chat, prompt)
    if chat.gathering[1] ~= prompt then
      -- The backend ended, and the prompt was given back.
      return
    end
    table.remove(chat.gathering, 1)
    taken = how == 'sent'
    if late and (how == 'unsent' or how == 'refused' and comes_back(chat, prompt)) then
      callbacks.unsent({ type = 'unsent', chat = chat.id, text = text })
    elseif not taken then
      M.waits_no_longer(chat, text)
    end
    local next = chat.gathering[1]
    if next then
      assert(next.begin)()
    end
    if question then
      local trusted = async.await(function(done)
        requests.when_settled(question, done)
      end)
      prompt.untrusted = nil
      local sent = registry.get(chat.id) ~= chat or trusted and send_prompt(chat, prompt)
      if not sent and (trusted or comes_back(chat, prompt)) then
        chat.prompt:restore(text)
      end
    end
  end)
  late = true
  if taken then
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
  local message = {
    type = 'prompt',
    chat = chat.id,
    text = text,
    cwd = cwd,
    context = {},
    range = range,
    steer = steer,
  }
  local taken =
    send_prompt(chat, { message = message, text = text, extra = extra, range = chat.range })
  chat.range = not taken and chat.range or nil
  return taken
end

--- Returns true if the draft is the same as this text, apart from white space.
---@param chat co.Chat
---@param text string
---@return boolean
local function in_draft(chat, text)
  local function words(of)
    return table.concat(vim.split(of, '%s+', { trimempty = true }), ' ')
  end
  return words(table.concat(chat.prompt:lines(), ' ')) == words(text)
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
  local message = {
    type = 'prompt',
    chat = chat.id,
    text = printable.trim(('/%s %s'):format(file.name, args)),
    cwd = cwd,
    context = {},
    file = {
      path = not file.personal and file.path or nil,
      text = file.text,
      prompt = text,
    },
  }
  local taken = send_prompt(chat, {
    message = message,
    text = text,
    extra = extra,
    range = chat.range,
    untrusted = not file.personal and file or nil,
    typed = in_draft(chat, message.text),
  })
  chat.range = not taken and chat.range or nil
  return taken
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
  elseif not problem and options.trial then
    problem = 'a chat does not try your commands, :Co! ++try does'
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
