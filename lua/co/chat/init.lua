--- The chats: a buffer each, what the backend says of them, and the windows they are shown in.
local M = {}

local api = vim.api
local backend = require('co.backend')
local buffer = require('co.ui.buffer')
local config = require('co.config')
local events = require('co.ui.events')
local files = require('co.ui.reload')
local folds = require('co.ui.folds')
local prompt = require('co.chat.prompt')
local transcript = require('co.chat.text')
local winbar = require('co.chat.winbar')
local windows = require('co.ui.windows')

---@class (exact) co.Chat
---@field id integer
---@field buf integer
---@field text co.Transcript
---@field state co.State
---@field cwd string where it was opened from; `state` says where it is now
---@field history integer how far back the prompt is in the history, 0 is the draft
---@field draft string[]
---@field origin? integer the person's window it was last opened from
---@field range? co.Context the lines that `:{range}Co` gave the next prompt
---@field sent string[] prompts that no turn has begun with yet, the newest last
---@field lost? string the conversation that the last backend had, and this one has not

---@type table<integer, co.Chat>
local chats = {}
local newest = 0
---@type integer?
local current

---@param chat co.Chat
---@param win integer
local function dress(chat, win)
  windows.options(win, {
    wrap = true,
    linebreak = true,
    breakindent = true,
    number = false,
    relativenumber = false,
    signcolumn = 'no',
    foldmethod = 'manual',
    foldenable = true,
    conceallevel = 0,
    spell = false,
    winbar = winbar.text(chat.state, backend.status().isolation),
  })
end

---@param chat co.Chat
local function show_state(chat)
  local text = winbar.text(chat.state, backend.status().isolation)
  for _, win in ipairs(vim.fn.win_findbuf(chat.buf)) do
    windows.options(win, { winbar = text })
  end
  vim.cmd.redrawstatus()
end

--- Shows in every chat's bar what is known by now.
function M.refresh()
  for _, chat in pairs(chats) do
    show_state(chat)
  end
end

---@param chat co.Chat
local function forget(chat)
  if chats[chat.id] ~= chat then
    return
  end
  chats[chat.id] = nil
  if current == chat.id then
    current = nil
  end
  backend.tell({ type = 'close', session = chat.id })
  require('co.question').drop_session(chat.id)
end

--- A chat ends with its buffer. `:edit` unloads it only to load it again: that keeps the chat.
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
    dress(chat, api.nvim_get_current_win())
  end)
  on('BufEnter', function()
    current = chat.id
  end)
  on({ 'CursorMoved', 'TextChanged', 'TextChangedI', 'BufEnter', 'WinEnter' }, function()
    prompt.guard(chat)
  end)
  on({ 'TextChanged', 'TextChangedI' }, function()
    chat.text:colour()
  end)
  require('co.ui.highlight').ensure()
  prompt.map(chat)
  require('co.question').watch()
  require('co.chat.last_window').watch()
  require('co.run.quit').watch()
end

---@param id integer
---@param cwd string
---@param existing? integer
---@return co.Chat
local function create(id, cwd, existing)
  local buf = buffer.scratch('co://chat/' .. id, 'co-chat', existing)
  ---@type co.Chat
  local chat = {
    id = id,
    buf = buf,
    text = transcript.new(buf),
    cwd = cwd,
    history = 0,
    draft = {},
    sent = {},
    state = {
      state = 'idle',
      detail = '',
      model = '',
      cwd = cwd,
      backend = '',
      input = 0,
      output = 0,
      queued = 0,
      begun = 0,
    },
  }
  chats[id], newest, current = chat, math.max(newest, id), id
  set_up(chat)
  return chat
end

--- Makes a chat of its own.
---@param cwd string
---@return co.Chat
function M.new(cwd)
  return create(newest + 1, cwd)
end

--- Takes over a buffer that a session file or `:edit` named.
---@param buf integer
---@param id integer
function M.adopt(buf, id)
  local chat = chats[id]
  if chat and chat.buf == buf then
    buffer.scratch(api.nvim_buf_get_name(buf), 'co-chat', buf)
    chat.text = transcript.new(buf)
    set_up(chat)
  elseif not chat then
    create(id, vim.fn.getcwd(), buf)
  end
end

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

--- The chat that `:Co` means: the one the cursor is in, or the one last used.
---@return co.Chat?
function M.current()
  return M.of_buffer() or (current and chats[current])
end

--- Shows a chat in this tab page.
---@param chat co.Chat
---@param focus boolean put the cursor at the prompt's end
---@return integer win
function M.show(chat, focus)
  local win = windows.here(chat.buf)
  if not win then
    chat.origin = api.nvim_get_current_win()
    win = windows.open(chat.buf, config.get().layout)
    dress(chat, win)
    local last = api.nvim_buf_line_count(chat.buf)
    api.nvim_win_set_cursor(win, { last, #api.nvim_buf_get_lines(chat.buf, -2, -1, false)[1] })
    for _, block in pairs(chat.text.blocks) do
      M.fold(block, win)
    end
    chat.text.answers:fold_in(win)
  end
  if focus and windows.enter(win) then
    local row = chat.text:prompt_row()
    if api.nvim_win_get_cursor(win)[1] <= row then
      api.nvim_win_set_cursor(win, { api.nvim_buf_line_count(chat.buf), 0 })
    end
  end
  return win
end

--- Takes a chat's window away; the chat, its draft and its turn go on.
---@param chat co.Chat
function M.hide(chat)
  local win = windows.here(chat.buf)
  if not win then
    return
  end
  local focused = win == api.nvim_get_current_win()
  windows.hide(win)
  if
    focused
    and chat.origin
    and api.nvim_win_is_valid(chat.origin)
    and not windows.here(chat.buf)
  then
    if api.nvim_win_get_tabpage(chat.origin) == api.nvim_get_current_tabpage() then
      api.nvim_set_current_win(chat.origin)
    end
  end
end

---@param block co.Block
---@param win? integer that one alone
function M.fold(block, win)
  local first, tail = block:content()
  if not first or not tail or tail - first <= folds.LONG then
    return
  end
  if win then
    folds.close(win, first, tail - 1)
  else
    folds.everywhere(block.buf, first, tail - 1)
  end
end

---@param chat co.Chat
function M.cancel(chat)
  backend.tell({ type = 'cancel', session = chat.id })
end

--- The chat of a message. A `close` may cross one on its way: that is no error.
---@param message { session?: integer }
---@return co.Chat?
local function of_message(message)
  local chat = chats[message.session]
  return chat and buffer.alive(chat.buf) and chat or nil
end

---@param chat co.Chat
---@param change fun()
local function rewrite(chat, change)
  windows.follow(chat.buf, change)
  prompt.guard(chat)
end

---@param message co.Append
function M.append(message)
  local chat = of_message(message)
  if chat then
    rewrite(chat, function()
      chat.text:append(message.text)
    end)
  end
end

---@param message co.BlockMessage
function M.block(message)
  local chat = of_message(message)
  if not chat then
    return
  end
  rewrite(chat, function()
    local block = chat.text:patch(message.block, message.patch, message.done)
    if message.done and block then
      M.fold(block)
    end
  end)
  if message.done then
    files.refresh()
  end
end

---@param message co.State
function M.state(message)
  local chat = of_message(message)
  if chat then
    for _ = chat.state.begun + 1, message.begun do
      table.remove(chat.sent, 1)
    end
    chat.state = message
    show_state(chat)
  end
end

---@param message co.Unsent
function M.unsent(message)
  local chat = of_message(message)
  if chat then
    for index, text in ipairs(chat.sent) do
      if text == message.text then
        table.remove(chat.sent, index)
        break
      end
    end
    prompt.give_back(chat, message.text)
  end
end

---@param message co.AnswerBegins
function M.answer_begins(message)
  local chat = of_message(message)
  if chat then
    chat.text:begin_answer()
  end
end

---@param message co.FoldAnswer
function M.fold_answer(message)
  local chat = of_message(message)
  if chat then
    rewrite(chat, function()
      chat.text:fold_answer()
    end)
  end
end

---@param message co.Replace
function M.replace(message)
  local chat = of_message(message)
  if not chat then
    return
  end
  rewrite(chat, function()
    chat.text:replace(message.text)
    for _, rows in ipairs(message.folds or {}) do
      chat.text.answers:add(rows[1], rows[2])
    end
    if message.answer then
      chat.text.answers:begin(message.answer)
    end
  end)
end

---@param message co.Choose
function M.choose(message)
  local chat = of_message(message)
  if not chat then
    return
  end
  require('co.chat.choice').offer(chat, message, function(value)
    backend.tell({
      type = 'command',
      session = chat.id,
      name = message.name,
      args = value,
      cwd = chat.state.cwd,
    })
  end)
end

--- All chats, the oldest first.
---@return co.Chat[]
function M.all()
  local found = vim.tbl_values(chats)
  table.sort(found, function(a, b)
    return a.id < b.id
  end)
  return found
end

--- Shows that a chat's backend is gone, and gives back what no turn began with.
---@param chat co.Chat
---@param reason string
---@param later co.FromEditor[] the next backend is sent these
---@return boolean interrupted a turn ran
local function bereave(chat, reason, later)
  local interrupted = chat.state.state ~= 'idle'
  chat.lost = chat.state.kept or chat.lost
  -- The next backend's blocks are its own.
  chat.text.blocks = {}
  local prompts = vim.tbl_filter(function(message)
    return message.type == 'prompt' and message.session == chat.id
  end, later)
  local unread = vim.list_slice(chat.sent, 1, #chat.sent - #prompts)
  chat.sent = vim.list_slice(chat.sent, #unread + 1)
  local fresh = { state = 'idle', detail = '', commands = {}, queued = 0, begun = 0 }
  chat.state = vim.tbl_extend('force', chat.state, fresh)
  if buffer.alive(chat.buf) then
    if interrupted then
      rewrite(chat, function()
        chat.text:append(('\n\n*%s*\n'):format(reason))
      end)
    end
    show_state(chat)
    if #unread > 0 then
      prompt.give_back(chat, table.concat(unread, '\n'))
    end
  end
  return interrupted
end

backend.on_end(function(reason, unsent, later)
  -- The last one first: each goes in front of what is there already.
  for index = #unsent, 1, -1 do
    local message = unsent[index]
    local text = message.type == 'prompt' and message.text
      or message.name == '!' and '!' .. message.args
    if message.session and text then
      M.unsent({ type = 'unsent', session = message.session, text = text })
    end
  end
  ---@type integer[]
  local interrupted = {}
  for _, chat in pairs(chats) do
    if bereave(chat, reason, later) then
      interrupted[#interrupted + 1] = chat.id
    end
  end
  return function()
    for _, id in ipairs(interrupted) do
      events.raise('CoTurnDone', { session = id, reason = 'interrupted' })
    end
  end
end)

return M
