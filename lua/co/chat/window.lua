--- Shows and hides a chat.
local M = {}

local api = vim.api
local config = require('co.config')
local guarded = require('co.ui.guarded')
local last_window = require('co.ui.last_window')
local pair = require('co.chat.pair')
local registry = require('co.chat.registry')
local windows = require('co.ui.windows')

-- The columns of a screen that has room for a chat beside a file.
local NARROW = 100

--- Returns the chat whose windows in this tab page another chat may take: the current one, or the one used last.
---@return co.Chat?
local function shown_chat()
  local shown = vim.tbl_filter(function(chat)
    local text, prompt = pair.find(chat)
    return text ~= nil and prompt ~= nil
  end, registry.by_use())
  return shown[#shown]
end

--- Shows a chat in this tab page, in the windows of another chat if there are some.
---@param chat co.Chat
---@param focus boolean put the cursor into the prompt
function M.show(chat, focus)
  local text, prompt = pair.find(chat)
  if not text and not prompt then
    local other = shown_chat()
    if other then
      text = pair.replace(other, chat)
    else
      local layout = config.get().layout
      if layout == 'auto' then
        layout = vim.o.columns < NARROW and 'horizontal' or 'vertical'
      end
      text = pair.open(chat, layout)
    end
    chat.text:fold_in(text)
    windows.scroll_to_end(chat.buf)
    windows.scroll_to_end(chat.prompt.buf)
  end
  -- Some layouts take the focus in any case.
  if focus or api.nvim_get_current_win() == text then
    M.enter_prompt(chat)
  end
end

--- Goes to the prompt of a chat.
---@param chat co.Chat
function M.enter_prompt(chat)
  pair.mend(chat)
  local _, prompt = pair.find(chat)
  if prompt then
    windows.enter(prompt)
  end
end

--- Goes to the prompt of a chat, in the tab page that shows it, else in this one.
---@param chat co.Chat
function M.go_to(chat)
  local shown = vim.fn.win_findbuf(chat.prompt.buf)[1]
  if not windows.in_tabpage(chat.prompt.buf) and shown then
    windows.enter(shown)
  else
    M.show(chat, true)
  end
end

--- Closes the windows of a chat in this tab page. The chat, its draft and its turn stay.
---@param chat co.Chat
function M.hide(chat)
  local text, prompt = pair.find(chat)
  local here = api.nvim_get_current_win()
  pair.close(chat)
  local last = last_window.window()
  if
    (here == text or here == prompt)
    and last
    and api.nvim_win_get_tabpage(last) == api.nvim_get_current_tabpage()
  then
    guarded.go_to_window(last)
  end
end

return M
