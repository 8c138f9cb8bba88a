--- Reloads buffers whose files commands changed.
local M = {}

local api = vim.api
local notify = require('co.ui.notify')

--- Chooses between reloading a buffer and keeping it.
---@param buf integer
---@param always integer[] the buffers that are reloaded without 'autoread' too
---@return string choice for 'v:fcs_choice'; the empty one keeps the buffer and shows no dialogue
local function choose(buf, always)
  if vim.bo[buf].modified then
    local name = vim.fn.fnamemodify(api.nvim_buf_get_name(buf), ':~:.')
    notify.warn(
      ('%s changed on disk; the buffer keeps your changes: :edit! takes the new text'):format(name)
    )
    return ''
  end
  local wanted = vim.o.autoread or vim.tbl_contains(always, buf)
  return wanted and vim.v.fcs_reason ~= 'deleted' and 'reload' or ''
end

--- Reloads unmodified buffers whose files changed. For a modified buffer it shows a notice.
---@param always? integer[] the buffers that are reloaded without 'autoread' too
function M.changed_files(always)
  local watcher = api.nvim_create_autocmd('FileChangedShell', {
    callback = function(event)
      vim.v.fcs_choice = choose(event.buf, always or {})
    end,
  })
  pcall(vim.cmd.checktime, { mods = { silent = true } })
  pcall(api.nvim_del_autocmd, watcher)
end

return M
