--- `User` autocommands.
local M = {}

local guarded = require('co.ui.guarded')

--- Runs the autocommands of `User {name}` with `data`.
---@param name string
---@param data any
function M.raise(name, data)
  guarded.run_autocommands('User', { pattern = name, data = data })
end

return M
