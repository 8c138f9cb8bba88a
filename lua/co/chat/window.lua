--- The windows of a chat: how they open and close, their options and their winbar.
local M = {}

local api = vim.api
local backend = require('co.backend')
local config = require('co.config')
local folds = require('co.ui.folds')
local winbar = require('co.chat.winbar')
local windows = require('co.ui.windows')

--- Sets the options of a window that shows a chat.
---@param chat co.Chat
---@param win integer
function M.set_options(chat, win)
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

--- Updates the winbar of each window that shows the chat.
---@param chat co.Chat
function M.update_winbar(chat)
  local text = winbar.text(chat.state, backend.status().isolation)
  for _, win in ipairs(vim.fn.win_findbuf(chat.buf)) do
    windows.options(win, { winbar = text })
  end
  vim.cmd.redrawstatus()
end

--- Folds a block of output if it is long.
---@param block co.Block
---@param win? integer the only window to fold it in; all windows by default
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

--- Shows a chat in this tab page.
---@param chat co.Chat
---@param focus boolean put the cursor at the end of the prompt
---@return integer win
function M.show(chat, focus)
  local win = windows.in_tabpage(chat.buf)
  if not win then
    chat.origin = api.nvim_get_current_win()
    win = windows.open(chat.buf, config.get().layout)
    M.set_options(chat, win)
    local last = api.nvim_buf_line_count(chat.buf)
    api.nvim_win_set_cursor(win, { last, #api.nvim_buf_get_lines(chat.buf, -2, -1, false)[1] })
    for _, block in pairs(chat.text.blocks) do
      M.fold(block, win)
    end
    chat.text.folded_answers:fold_in(win)
  end
  if focus and windows.enter(win) then
    local row = chat.text:prompt_row()
    if api.nvim_win_get_cursor(win)[1] <= row then
      api.nvim_win_set_cursor(win, { api.nvim_buf_line_count(chat.buf), 0 })
    end
  end
  return win
end

--- Closes the window of a chat in this tab page. The chat, its draft and its turn stay.
---@param chat co.Chat
function M.hide(chat)
  local win = windows.in_tabpage(chat.buf)
  if not win then
    return
  end
  local focused = win == api.nvim_get_current_win()
  windows.hide(win)
  if
    focused
    and chat.origin
    and api.nvim_win_is_valid(chat.origin)
    and not windows.in_tabpage(chat.buf)
  then
    if api.nvim_win_get_tabpage(chat.origin) == api.nvim_get_current_tabpage() then
      api.nvim_set_current_win(chat.origin)
    end
  end
end

return M
