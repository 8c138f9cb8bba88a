--- The keys of a chat: the keys of its prompt, and the keys that also work in its text.
local M = {}

local api = vim.api
local buffer = require('co.ui.buffer')
local call_target = require('co.chat.call_target')
local callbacks = require('co.chat.callbacks')
local chat_text = require('co.chat.text')
local config = require('co.config')
local drafts = require('co.chat.drafts')
local key_help = require('co.ui.key_help')
local locations = require('co.ui.locations')
local notify = require('co.ui.notify')
local plan = require('co.chat.plan')
local printable = require('co.ui.printable')
local symbols = require('co.chat.symbols')
local window = require('co.chat.window')
local windows = require('co.ui.windows')

--- Submits the text of the prompt. If the prompt is empty, the queued prompt steers the turn or starts a turn. If the
--- text cannot be sent, it stays in the prompt.
---@param chat co.Chat
local function submit(chat)
  local text = printable.trim(table.concat(chat.prompt:lines(), '\n'))
  if text == '' and #chat.waiting_prompts > 0 then
    callbacks.submit(chat, '/steer')
  elseif text == '' then
    notify.info('the prompt is empty: type one, then submit it')
  elseif callbacks.submit(chat, text) then
    chat.prompt:sent(text)
    drafts.save(chat)
    windows.scroll_to_end(chat.buf)
  end
end

--- Maps a key that shows the history.
---@param chat co.Chat
---@param key string
---@param step 1|-1
local function map_history(chat, key, step)
  vim.keymap.set({ 'n', 'i' }, key, function()
    if chat.prompt:browses_history() and chat.prompt:recall(step) then
      windows.scroll_to_end(chat.prompt.buf)
    else
      local normal = api.nvim_get_mode().mode == 'n'
      local count = normal and vim.v.count > 0 and tostring(vim.v.count) or ''
      -- Before the keys that were typed ahead.
      api.nvim_feedkeys(count .. vim.keycode(key), 'in', false)
    end
  end, { buffer = chat.prompt.buf, desc = 'co: earlier and later prompts' })
end

--- Goes to the next or the previous message. The prompt comes after the last one.
---@param chat co.Chat
---@param step 1|-1
local function jump(chat, step)
  local rows = vim.tbl_map(function(message)
    return message.row
  end, chat.text.messages:between())
  if api.nvim_get_current_buf() == chat.buf then
    if not windows.jump(rows, step) and step == 1 then
      window.enter_prompt(chat)
    end
  elseif step == -1 and #rows > 0 then
    local win = windows.in_tabpage(chat.buf)
    if win and windows.enter(win) then
      windows.go_to_row(rows[#rows])
    end
  end
end

--- Copies the code block under the cursor into a register.
local function yank()
  local code = chat_text.code_at(0, api.nvim_win_get_cursor(0)[1] - 1)
  if not code then
    notify.info('no code block under the cursor')
    return
  end
  vim.fn.setreg(vim.v.register, code, 'l')
  notify.info(('%d lines yanked'):format(#code))
end

--- Maps the keys that work in the text and in the prompt.
---@param chat co.Chat
---@param buf integer
---@param cancel fun(chat: co.Chat)
local function map_common(chat, buf, cancel)
  local keys = config.get().keys.chat
  ---@param action string
  ---@param desc string
  ---@param run fun()
  local function map(action, desc, run)
    buffer.map(buf, 'n', keys[action], run, desc)
  end
  buffer.map(buf, { 'n', 'i' }, keys.cancel, function()
    cancel(chat)
  end, 'cancel the turn')
  map('next', 'next message', function()
    jump(chat, 1)
  end)
  map('previous', 'previous message', function()
    jump(chat, -1)
  end)
  map('open', 'open the file or the name', function()
    local row = api.nvim_win_get_cursor(0)[1] - 1
    local shown = chat.text:call_at(row)
    local told = shown and call_target.told(shown, row, chat.state.cwd)
    if told then
      locations.open(told)
    else
      symbols.open(chat.state.cwd, true)
    end
  end)
  map('yank', 'yank the code block', yank)
  map('help', 'list the keys', function()
    key_help.show('chat', keys)
  end)
end

--- Maps the keys that hide a chat. In the prompt, `q` records a macro, as everywhere that a person types.
---@param chat co.Chat
---@param lhs string|string[]|false
local function map_hide(chat, lhs)
  local function hide()
    window.hide(chat)
  end
  local keys = type(lhs) == 'table' and lhs or { lhs or nil } --[[@as string[] ]]
  local other = vim.tbl_filter(function(key)
    return key ~= 'q'
  end, keys)
  buffer.map(chat.buf, 'n', keys, hide, 'hide the chat')
  buffer.map(chat.prompt.buf, 'n', other, hide, 'hide the chat')
end

--- Goes to the next or the previous call. In diff mode, the keys go to changes, as in each window.
---@param chat co.Chat
---@param step 1|-1
local function jump_to_call(chat, step)
  if vim.wo.diff then
    vim.cmd.normal({ vim.v.count1 .. (step == 1 and ']c' or '[c'), bang = true })
    return
  end
  local rows = vim.tbl_map(function(shown)
    return shown:row()
  end, chat.text.calls)
  for _ = 1, vim.v.count1 do
    windows.jump(rows, step)
  end
end

--- Maps the keys that are about the calls in the text of a chat.
---@param chat co.Chat
local function map_calls(chat)
  local keys = config.get().keys.chat
  local function map(action, desc, run)
    buffer.map(chat.buf, 'n', keys[action], run, desc)
  end
  map('next_call', 'next call', function()
    jump_to_call(chat, 1)
  end)
  map('previous_call', 'previous call', function()
    jump_to_call(chat, -1)
  end)
  map('target', 'open what a call or a name is about', function()
    local row = api.nvim_win_get_cursor(0)[1] - 1
    local shown = chat.text:call_at(row)
    if shown then
      call_target.open(shown, row, chat.state.cwd)
    else
      symbols.open(chat.state.cwd, false)
    end
  end)
  map('output', 'open the output of a call', function()
    local shown = chat.text:call_at(api.nvim_win_get_cursor(0)[1] - 1)
    if shown then
      call_target.show_output(shown)
    else
      vim.cmd.normal({ vim.v.count1 .. '\r', bang = true })
    end
  end)
end

--- Maps the keys of a chat, in its buffers only.
---@param chat co.Chat
---@param cancel fun(chat: co.Chat)
function M.map(chat, cancel)
  map_common(chat, chat.buf, cancel)
  map_common(chat, chat.prompt.buf, cancel)
  map_calls(chat)
  local keys = config.get().keys.chat
  map_hide(chat, keys.hide)
  local function send()
    submit(chat)
  end
  buffer.map(chat.prompt.buf, 'n', keys.submit, send, 'send the prompt')
  buffer.map(chat.prompt.buf, { 'n', 'i' }, keys.send, send, 'send the prompt')
  buffer.map(chat.prompt.buf, { 'n', 'i' }, keys.plan, function()
    plan.toggle(chat)
  end, 'ask for a plan, or not')
  map_history(chat, '<Up>', 1)
  map_history(chat, '<Down>', -1)
  vim.bo[chat.prompt.buf].omnifunc = "v:lua.require'co.chat.keys'.omnifunc"
end

--- Completes a word of the prompt, for 'omnifunc'.
---@param findstart integer
---@param base string
---@return integer|table[]
function M.omnifunc(findstart, base)
  return callbacks.complete(findstart, base)
end

return M
