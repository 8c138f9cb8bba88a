--- The chats: one buffer each, and the messages of the backend that change them.
local M = {}

local api = vim.api
local backend = require('co.backend')
local buffer = require('co.ui.buffer')
local chat_text = require('co.chat.text')
local directory = require('co.ui.directory')
local events = require('co.ui.events')
local notify = require('co.ui.notify')
local prompt = require('co.chat.prompt')
local reload = require('co.ui.reload')
local utf8 = require('co.ui.utf8')
local window = require('co.chat.window')
local windows = require('co.ui.windows')

---@class (exact) co.Chat
---@field id integer
---@field buf integer
---@field text co.ChatText
---@field state co.State
---@field cwd string the directory that it was opened in; `state` has the present one
---@field history integer the entry of the history that the prompt shows, 1 is the newest; 0 is the draft
---@field draft string[]
---@field origin? integer the window from which it was last opened
---@field range? co.Context the lines of `:{range}Co`, for the next prompt
---@field waiting_prompts string[] the prompts that were sent and still wait for their turn, the newest last
---@field unloaded? string the id of its conversation, if the present backend has not loaded it

---@type table<integer, co.Chat>
local chats = {}
local newest = 0
---@type integer?
local current

--- Updates the winbars of all chats.
function M.update_winbars()
  for _, chat in pairs(chats) do
    window.update_winbar(chat)
  end
end

--- Ends a chat.
---@param chat co.Chat
local function forget(chat)
  if chats[chat.id] ~= chat then
    return
  end
  chats[chat.id] = nil
  if current == chat.id then
    current = nil
  end
  backend.send_if_running({ type = 'close', chat = chat.id })
  require('co.question').withdraw(chat.id)
end

--- Ends a chat whose buffer is gone. `:edit` unloads the buffer and loads it again; this keeps the chat.
---@param chat co.Chat
local function on_unload(chat)
  vim.schedule(function()
    if not buffer.alive(chat.buf) then
      forget(chat)
      if api.nvim_buf_is_valid(chat.buf) then
        pcall(api.nvim_buf_delete, chat.buf, { force = true })
      end
    end
  end)
end

--- Returns the first lines of the commands that run in the chats.
---@return string[]
local function running_commands()
  ---@type string[]
  local commands = {}
  for _, chat in ipairs(M.all()) do
    vim.list_extend(commands, chat.state.commands or {})
  end
  return commands
end

--- Sets the autocommands and the keys of a chat's buffer.
---@param chat co.Chat
local function set_up(chat)
  local group = api.nvim_create_augroup('co.chat.' .. chat.id, {})
  local function on(event, callback)
    api.nvim_create_autocmd(event, { group = group, buffer = chat.buf, callback = callback })
  end
  on({ 'BufUnload', 'BufWipeout' }, function()
    on_unload(chat)
  end)
  on('BufWinEnter', function()
    window.set_options(chat, api.nvim_get_current_win())
  end)
  on('BufEnter', function()
    current = chat.id
  end)
  on({ 'CursorMoved', 'TextChanged', 'TextChangedI', 'BufEnter', 'WinEnter' }, function()
    prompt.protect_transcript(chat)
  end)
  on({ 'TextChanged', 'TextChangedI' }, function()
    chat.text:highlight()
  end)
  require('co.ui.highlight').ensure()
  prompt.map(chat, { cancel = M.cancel, hide = window.hide })
  require('co.question').watch_keys()
  require('co.chat.last_window').watch()
  require('co.ui.quit').refuse_while('running', running_commands)
end

--- Creates a chat and its buffer.
---@param id integer
---@param cwd string
---@param existing? integer its buffer, if there is one
---@return co.Chat
local function create(id, cwd, existing)
  local buf = buffer.scratch('co://chat/' .. id, 'co-chat', existing)
  ---@type co.Chat
  local chat = {
    id = id,
    buf = buf,
    text = chat_text.new(buf),
    cwd = cwd,
    history = 0,
    draft = {},
    waiting_prompts = {},
    state = {
      state = 'idle',
      detail = '',
      model = '',
      cwd = cwd,
      backend = '',
      input = 0,
      output = 0,
      queued = 0,
      taken_prompts = 0,
    },
  }
  chats[id], newest, current = chat, math.max(newest, id), id
  set_up(chat)
  return chat
end

--- Returns a new chat in a directory, by default that of the current window; nil, after a notice, if it cannot be used.
---
--- The model reads the name of the directory, so the name must be UTF-8.
---@param cwd? string
---@return co.Chat?
function M.new(cwd)
  local existing = directory.existing(cwd)
  if existing and not utf8.valid(existing) then
    notify.error(utf8.NO_PLACE)
    return nil
  end
  return existing and create(newest + 1, existing)
end

--- Makes a chat of a buffer that a session file or `:edit` named.
---@param buf integer
---@param id integer
function M.adopt(buf, id)
  local chat = chats[id]
  if chat and chat.buf == buf then
    buffer.scratch(api.nvim_buf_get_name(buf), 'co-chat', buf)
    chat.text = chat_text.new(buf)
    set_up(chat)
  elseif not chat then
    create(id, vim.fn.getcwd(), buf)
  end
end

--- Returns the chat of a buffer.
---@param buf? integer the current one by default
---@return co.Chat?
function M.of_buffer(buf)
  buf = buf or api.nvim_get_current_buf()
  for _, chat in pairs(chats) do
    if chat.buf == buf then
      return chat
    end
  end
end

--- Returns the chat that `:Co` acts on: that of the current buffer, or the one used last.
---@return co.Chat?
function M.current()
  return M.of_buffer() or (current and chats[current])
end

--- Shows the current chat, or a new one, with the cursor at its prompt.
function M.open()
  local chat = M.current() or M.new()
  if chat then
    window.show(chat, true)
  end
end

--- Shows the current chat with the cursor at its prompt, or hides it.
function M.toggle()
  local chat = M.current()
  if chat and windows.in_tabpage(chat.buf) then
    window.hide(chat)
  else
    M.open()
  end
end

--- Cancels the turn of a chat; if none runs, the queue.
---@param chat co.Chat
function M.cancel(chat)
  backend.send_if_running({ type = 'cancel', chat = chat.id })
end

--- Returns the chat of a message; nil if its buffer is gone. The message may be older than `close`.
---@param message { chat?: integer }
---@return co.Chat?
local function of_message(message)
  local chat = chats[message.chat]
  return chat and buffer.alive(chat.buf) and chat or nil
end

--- Runs `change`, which writes to the chat's buffer. Windows at the end of the buffer stay there.
---@param chat co.Chat
---@param change fun()
local function update_text(chat, change)
  windows.follow(chat.buf, change)
  prompt.protect_transcript(chat)
end

--- Adds text to the end of the transcript.
---@param message co.Append
function M.append(message)
  local chat = of_message(message)
  if chat then
    update_text(chat, function()
      chat.text:append(message.text)
    end)
  end
end

--- Changes a block of output. A block that is complete is folded.
---@param message co.BlockMessage
function M.block(message)
  local chat = of_message(message)
  if not chat then
    return
  end
  update_text(chat, function()
    local block = chat.text:patch(message.block, message.patch, message.done)
    if message.done and block then
      window.fold(block)
    end
  end)
  if message.done then
    reload.changed_files()
  end
end

--- Takes in the state of a chat and shows it.
---@param message co.State
function M.state(message)
  local chat = of_message(message)
  if chat then
    for _ = chat.state.taken_prompts + 1, message.taken_prompts do
      table.remove(chat.waiting_prompts, 1)
    end
    chat.state = message
    window.update_winbar(chat)
  end
end

--- Puts a prompt that the backend did not accept back into the prompt.
---@param message co.Unsent
function M.unsent(message)
  local chat = of_message(message)
  if chat then
    for index, text in ipairs(chat.waiting_prompts) do
      if text == message.text then
        table.remove(chat.waiting_prompts, index)
        break
      end
    end
    prompt.restore(chat, message.text)
  end
end

--- Notes that the text that follows is the model's last answer.
---@param message co.AnswerBegins
function M.answer_begins(message)
  local chat = of_message(message)
  if chat then
    chat.text:begin_answer()
  end
end

--- Folds the last answer, which the model no longer sees.
---@param message co.FoldAnswer
function M.fold_answer(message)
  local chat = of_message(message)
  if chat then
    update_text(chat, function()
      chat.text:fold_answer()
    end)
  end
end

--- Replaces the whole transcript.
---@param message co.Replace
function M.replace(message)
  local chat = of_message(message)
  if not chat then
    return
  end
  update_text(chat, function()
    chat.text:replace(message.text)
    for _, rows in ipairs(message.folds or {}) do
      chat.text.folded_answers:add(rows[1], rows[2])
    end
    if message.answer then
      chat.text.folded_answers:begin(message.answer)
    end
  end)
end

--- Offers choices and sends the chosen one as a command.
---@param message co.Choose
function M.choose(message)
  local chat = of_message(message)
  if not chat then
    return
  end
  require('co.chat.choice').offer(chat, message, function(value)
    backend.send_if_running({
      type = 'command',
      chat = chat.id,
      name = message.name,
      args = value,
      cwd = chat.state.cwd,
    })
  end)
end

--- Returns all chats, the oldest first.
---@return co.Chat[]
function M.all()
  local found = vim.tbl_values(chats)
  table.sort(found, function(a, b)
    return a.id < b.id
  end)
  return found
end

--- Shows that the backend of a chat ended, and puts the prompts that no turn began with back into the prompt.
---@param chat co.Chat
---@param reason string
---@param held co.FromEditor[] messages that the next backend gets
---@return boolean interrupted a turn was running
local function handle_exit(chat, reason, held)
  local interrupted = chat.state.state ~= 'idle'
  chat.unloaded = chat.state.transcript or chat.unloaded
  -- The next backend numbers its own blocks.
  chat.text.blocks = {}
  local prompts = vim.tbl_filter(function(message)
    return message.type == 'prompt' and message.chat == chat.id
  end, held)
  local waiting = chat.waiting_prompts
  local unread = vim.list_slice(waiting, 1, #waiting - #prompts)
  chat.waiting_prompts = vim.list_slice(waiting, #unread + 1)
  local fresh = { state = 'idle', detail = '', commands = {}, queued = 0, taken_prompts = 0 }
  chat.state = vim.tbl_extend('force', chat.state, fresh)
  if buffer.alive(chat.buf) then
    if interrupted then
      update_text(chat, function()
        chat.text:append(('\n\n*%s*\n'):format(reason))
      end)
    end
    window.update_winbar(chat)
    if #unread > 0 then
      prompt.restore(chat, table.concat(unread, '\n'))
    end
  end
  return interrupted
end

backend.on_exit(function(reason, unsent, held)
  -- The last one first, because each goes in front of the text in the prompt.
  for index = #unsent, 1, -1 do
    local message = unsent[index]
    local text = message.type == 'prompt' and message.text
      or message.name == '!' and '!' .. message.args
    if message.chat and text then
      M.unsent({ type = 'unsent', chat = message.chat, text = text })
    end
  end
  ---@type integer[]
  local interrupted = {}
  for _, chat in pairs(chats) do
    if handle_exit(chat, reason, held) then
      interrupted[#interrupted + 1] = chat.id
    end
  end
  return function()
    for _, id in ipairs(interrupted) do
      events.raise('CoTurnDone', { chat = id, reason = 'interrupted' })
    end
  end
end)

return M
