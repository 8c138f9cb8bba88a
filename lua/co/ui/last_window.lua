--- The window in which the person worked last, other than windows of the plugin.
local M = {}

local api = vim.api

---@class (exact) co.LastWindow
---@field win integer
---@field buf integer the buffer in it at that time

---@type co.LastWindow?
local last
local watching = false

--- Returns whether a buffer belongs to the plugin.
---@param buf integer
---@return boolean
local function is_ours(buf)
  return vim.bo[buf].filetype:match('^co%-') ~= nil
end

--- Returns whether a person may work in a window. Completion menus and the command-line window do not count.
---@param win integer
---@return boolean
local function counts(win)
  local buf = api.nvim_win_get_buf(win)
  local kind = vim.fn.win_gettype(win)
  return not is_ours(buf)
    and kind ~= 'autocmd'
    and kind ~= 'command'
    and (kind ~= 'popup' or vim.bo[buf].buftype == '')
end

--- Notes the current window if a person may work in it.
local function note()
  local win = api.nvim_get_current_win()
  if counts(win) then
    last = { win = win, buf = api.nvim_win_get_buf(win) }
  end
end

--- Notes the window each time the person enters another one.
function M.watch()
  if watching then
    return
  end
  watching = true
  note()
  api.nvim_create_autocmd({ 'WinEnter', 'BufEnter' }, {
    group = api.nvim_create_augroup('co.last_window', {}),
    callback = note,
  })
end

--- Returns the last window, or another one with its buffer; nil if there is none.
---@return integer?
function M.window()
  local here = api.nvim_get_current_win()
  if counts(here) then
    return here
  end
  if last and api.nvim_win_is_valid(last.win) and counts(last.win) then
    return last.win
  end
  return last and vim.tbl_filter(counts, vim.fn.win_findbuf(last.buf))[1]
end

--- Returns the buffer of the last window. If the window was closed, returns the buffer that it showed.
---@return integer
function M.buffer()
  local here = api.nvim_get_current_win()
  local win = M.window()
  if win then
    return api.nvim_win_get_buf(win)
  elseif last and api.nvim_buf_is_loaded(last.buf) then
    return last.buf
  end
  for _, win in ipairs(api.nvim_tabpage_list_wins(0)) do
    if counts(win) then
      return api.nvim_win_get_buf(win)
    end
  end
  local alternate = vim.fn.bufnr('#')
  return alternate > 0 and alternate or api.nvim_win_get_buf(here)
end

return M
