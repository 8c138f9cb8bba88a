--- Opens addresses in the person's browser.
local M = {}

local notify = require('co.ui.notify')

--- Opens an address. A notice says if that fails.
---@param address string
function M.open(address)
  -- The person may have another function here.
  local called, command, problem = pcall(vim.ui.open, address)
  if not called or not command then
    local why = not called and command or problem or 'it says no reason'
    notify.error(
      ('no browser was opened (%s): open the address of the question yourself, and paste where it ended'):format(
        tostring(why)
      )
    )
  end
end

return M
