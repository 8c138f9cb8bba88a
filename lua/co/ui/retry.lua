--- Tries again and again what Neovim refuses now. Neovim has no event for most of these moments, and the person may ignore events.
local M = {}

local RETRY_MS = 50

--- Returns a function that calls `attempt` later, again and again until `attempt` returns false. While it tries, further calls
--- of the function do nothing.
---@param attempt fun(): boolean returns whether anything is left to do
---@return fun()
function M.new(attempt)
  local waiting = false
  local function retry()
    if waiting then
      return
    end
    waiting = true
    vim.defer_fn(function()
      waiting = false
      if attempt() then
        retry()
      end
    end, RETRY_MS)
  end
  return retry
end

return M
