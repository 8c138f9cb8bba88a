--- `User` autocommands.
local M = {}

--- Runs the autocommands of `User {name}` with `data`. An error in one is logged.
---@param name string
---@param data any
function M.raise(name, data)
  local ok, problem = pcall(vim.api.nvim_exec_autocmds, 'User', {
    pattern = name,
    modeline = false,
    data = data,
  })
  if not ok then
    require('co.ui.log').add('event ' .. name, tostring(problem))
  end
end

return M
