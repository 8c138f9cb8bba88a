--- Files that commands changed under open buffers.
local M = {}

local api = vim.api
local notify = require('co.ui.notify')

---@param buf integer
---@return string choice for 'v:fcs_choice': nothing keeps the buffer as it is, without a dialogue
local function choose(buf)
  if vim.bo[buf].modified then
    local name = vim.fn.fnamemodify(api.nvim_buf_get_name(buf), ':~:.')
    notify.warn(
      ('%s changed on disk; the buffer keeps your changes: :edit! takes the new text'):format(name)
    )
    return ''
  end
  return vim.o.autoread and vim.v.fcs_reason ~= 'deleted' and 'reload' or ''
end

--- Reads unmodified buffers again whose files changed; a modified one stays as it is, and that is said.
function M.refresh()
  local watcher = api.nvim_create_autocmd('FileChangedShell', {
    callback = function(event)
      vim.v.fcs_choice = choose(event.buf)
    end,
  })
  pcall(vim.cmd.checktime, { mods = { silent = true } })
  pcall(api.nvim_del_autocmd, watcher)
end

return M
