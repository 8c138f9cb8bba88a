--- What went wrong, kept for `:Co /log`: Lua's own errors, full notices, and the end of the backend's stderr.
local M = {}

local KEPT = 500

---@type string[]
local lines = {}

---@param source string
---@param text string
function M.add(source, text)
  local stamp = os.date('%H:%M:%S')
  for line in vim.gsplit(text, '\n', { trimempty = true }) do
    lines[#lines + 1] = ('%s %s: %s'):format(stamp, source, line)
  end
  if #lines > KEPT then
    lines = vim.list_slice(lines, #lines - KEPT + 1)
  end
end

---@return string[]
function M.lines()
  return lines
end

--- The backend's files; they do not follow NVIM_APPNAME.
---@return string[]
local function files()
  local state = vim.fs.dirname(vim.fn.stdpath('state') --[[@as string]])
  return vim.fn.glob(state .. '/co-nvim/*.log*', true, true)
end

--- Shows the log in a split of its own.
function M.open()
  local shown = vim.list_extend({ 'co: what went wrong in this Neovim (q closes)', '' }, lines)
  if #lines == 0 then
    shown[#shown + 1] = 'nothing'
  end
  for _, file in ipairs(files()) do
    vim.list_extend(shown, { '', "the backend's log file (gf opens it):", file })
  end
  local buf = vim.api.nvim_create_buf(false, true)
  vim.bo[buf].modifiable = true
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, shown)
  vim.bo[buf].modifiable = false
  vim.bo[buf].bufhidden = 'wipe'
  vim.bo[buf].filetype = 'co-log'
  local win = require('co.ui.windows').split(buf, { side = 'below', size = 12 })
  vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = buf, nowait = true })
  require('co.ui.windows').enter(win)
  vim.api.nvim_win_set_cursor(win, { #shown, 0 })
end

return M
