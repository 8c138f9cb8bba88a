--- Working directories.
local M = {}

local notify = require('co.ui.notify')

--- Returns a directory, by default that of the current window; nil, after a notice, if it no longer exists.
---@param cwd? string
---@return string?
function M.existing(cwd)
  cwd = cwd or vim.fn.getcwd()
  if cwd ~= '' and vim.fn.isdirectory(cwd) == 1 then
    return cwd
  end
  local name = cwd ~= '' and cwd or 'the working directory'
  notify.error(('%s does not exist any more: choose another with :cd'):format(name))
end

return M
