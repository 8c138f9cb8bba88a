--- The prompt of a chat: its keys, its history, and the part of the buffer that a person may edit.
local M = {}

local api = vim.api
local buffer = require('co.ui.buffer')
local callbacks = require('co.chat.callbacks')
local config = require('co.config')
local key_help = require('co.ui.key_help')
local locations = require('co.ui.locations')
local notify = require('co.ui.notify')
local windows = require('co.ui.windows')

---@type string[][]
local history = {}
-- The most entries of the history.
local HISTORY_LENGTH = 200

--- Adds a prompt to the history.
---@param lines string[]
local function remember(lines)
  if not vim.deep_equal(history[#history], lines) then
    history[#history + 1] = lines
  end
  if #history > HISTORY_LENGTH then
    table.remove(history, 1)
  end
end

--- Submits the text of the prompt. The text stays there if it could not be sent.
---@param chat co.Chat
function M.submit(chat)
  local lines = chat.text:prompt()
  local text = vim.trim(table.concat(lines, '\n'))
  if text == '' then
    notify.info('the prompt is empty: type below the line, then submit')
    return
  end
  if callbacks.submit(chat, text) then
    remember(vim.split(text, '\n', { plain = true }))
    chat.history = 0
    chat.text:set_prompt({ '' })
    windows.scroll_to_end(chat.buf)
  end
end

--- Puts text back into the prompt, in front of the text that is there.
---@param chat co.Chat
---@param text string
function M.restore(chat, text)
  local lines = vim.split(text, '\n', { plain = true })
  local typed = chat.text:prompt()
  if table.concat(typed) ~= '' then
    vim.list_extend(lines, typed)
  end
  chat.history = 0
  chat.text:set_prompt(lines)
end

--- Shows an earlier or later entry of the history in the prompt.
---@param chat co.Chat
---@param step integer 1 goes back, -1 forward
---@return boolean moved
local function recall(chat, step)
  local wanted = chat.history + step
  if wanted < 0 or wanted > #history then
    return false
  end
  if chat.history == 0 then
    chat.draft = chat.text:prompt()
  end
  chat.history = wanted
  local lines = wanted == 0 and chat.draft or history[#history - wanted + 1]
  chat.text:set_prompt(lines)
  local last = api.nvim_buf_line_count(chat.buf)
  api.nvim_win_set_cursor(0, { last, #lines[#lines] })
  return true
end

--- Returns whether `<Up>` and `<Down>` show the history: if the prompt is empty or an unchanged entry of it.
---@param chat co.Chat
---@return boolean
local function browses_history(chat)
  if api.nvim_win_get_cursor(0)[1] - 1 < chat.text:prompt_row() then
    return false
  end
  local lines = chat.text:prompt()
  if chat.history == 0 then
    return table.concat(lines) == ''
  end
  return vim.deep_equal(lines, history[#history - chat.history + 1])
end

--- Maps a key that shows the history.
---@param chat co.Chat
---@param key string
---@param step integer
local function map_history(chat, key, step)
  vim.keymap.set({ 'n', 'i' }, key, function()
    if browses_history(chat) and #history > 0 then
      recall(chat, step)
    else
      api.nvim_feedkeys(vim.keycode(key), 'n', false)
    end
  end, { buffer = chat.buf, desc = 'co: earlier and later prompts' })
end

--- Goes to the next or the previous message, or to the prompt.
---@param chat co.Chat
---@param step 1|-1
local function jump(chat, step)
  local rows = chat.text:headings()
  rows[#rows + 1] = chat.text:prompt_row()
  windows.jump(rows, step)
end

--- Copies the code block under the cursor into a register.
---@param chat co.Chat
local function yank(chat)
  local code = chat.text:code_at(api.nvim_win_get_cursor(0)[1] - 1)
  if not code then
    notify.info('no code block under the cursor')
    return
  end
  vim.fn.setreg(vim.v.register, code, 'l')
  notify.info(('%d lines yanked'):format(#code))
end

--- Maps the keys of a chat, in its buffer only.
---@param chat co.Chat
---@param actions { cancel: fun(chat: co.Chat), hide: fun(chat: co.Chat) }
function M.map(chat, actions)
  local keys = config.get().keys.chat
  local function map(modes, action, run, desc)
    buffer.map(chat.buf, modes, keys[action], run, desc)
  end
  local function submit()
    M.submit(chat)
  end
  map('n', 'submit', submit, 'submit the prompt')
  map({ 'n', 'i' }, 'send', submit, 'submit the prompt')
  map({ 'n', 'i' }, 'cancel', function()
    actions.cancel(chat)
  end, 'cancel the turn')
  map('n', 'hide', function()
    actions.hide(chat)
  end, 'hide the chat')
  map('n', 'next', function()
    jump(chat, 1)
  end, 'next message')
  map('n', 'previous', function()
    jump(chat, -1)
  end, 'previous message')
  map('n', 'open', function()
    locations.open_at_cursor(chat.state.cwd)
  end, 'open file:line')
  map('n', 'yank', function()
    yank(chat)
  end, 'yank the code block')
  map('n', 'help', function()
    key_help.show('chat', keys)
  end, 'list the keys')
  map_history(chat, '<Up>', 1)
  map_history(chat, '<Down>', -1)
  vim.bo[chat.buf].omnifunc = "v:lua.require'co.chat.prompt'.omnifunc"
end

--- Completes a word of the prompt, for 'omnifunc'.
---@param findstart integer
---@param base string
---@return integer|string[]
function M.omnifunc(findstart, base)
  return callbacks.complete(findstart, base)
end

--- Sets 'modifiable' if the cursor is in the prompt, else resets it: only the backend changes the transcript.
---@param chat co.Chat
function M.protect_transcript(chat)
  if api.nvim_get_current_buf() == chat.buf then
    local row = chat.text:prompt_row()
    vim.bo[chat.buf].modifiable = api.nvim_win_get_cursor(0)[1] - 1 >= row
  end
end

return M
