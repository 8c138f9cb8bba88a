--- The window of `:Co /log`.
local M = {}

local buffer = require('co.ui.buffer')
local guarded = require('co.ui.guarded')
local log = require('co.ui.log')
local windows = require('co.ui.windows')

--- Returns the log files of the backend and of the last installation. Their directory does not depend on NVIM_APPNAME.
---@return string[]
local function files()
  local state = vim.fs.dirname(vim.fn.stdpath('state') --[[@as string]])
  return vim.fn.glob(state .. '/co-nvim/*.log*', true, true)
end

--- Shows the log in a split.
function M.open()
  local shown =
    vim.list_extend({ 'co: what went wrong in this Neovim (q closes)', '' }, log.lines())
  if #log.lines() == 0 then
    shown[#shown + 1] = 'nothing'
  end
  for _, file in ipairs(files()) do
    vim.list_extend(shown, { '', 'a log file (gf opens it):', file })
  end
  local buf = vim.api.nvim_create_buf(false, true)
  vim.bo[buf].modifiable = true
  buffer.set_lines(buf, 0, -1, shown)
  vim.bo[buf].modifiable = false
  vim.bo[buf].bufhidden = 'wipe'
  guarded.set_option(buf, 'filetype', 'co-log')
  local win = windows.split(buf, { side = 'below', size = 12 })
  vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = buf, nowait = true })
  windows.enter(win)
  vim.api.nvim_win_set_cursor(win, { #shown, 0 })
end

return M
