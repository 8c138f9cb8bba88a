--- Delays changes while Neovim locks text (`:help textlock`), such as in an <expr> mapping that waits for a key.
local M = {}

local api = vim.api
local log = require('co.ui.log')
local retry = require('co.ui.retry')

---@class (exact) co.textlock.Waiting
---@field act fun()
---@field key? string of the thing that it changes

---@type co.textlock.Waiting[]
local waiting = {}

--- Returns whether text is locked now.
---@return boolean
function M.locked()
  -- Neovim checks the lock before it checks that there is no such buffer.
  local _, problem = pcall(api.nvim_buf_set_text, -1, 0, 0, 0, 0, {})
  return tostring(problem):find('E565:', 1, true) ~= nil
end

-- Calls the waiting functions when text is unlocked.
local act_later = retry.new(function()
  while waiting[1] and not M.locked() do
    local ok, problem = xpcall(table.remove(waiting, 1).act, debug.traceback)
    if not ok then
      log.add('textlock', tostring(problem))
    end
  end
  return waiting[1] ~= nil
end)

--- Calls `act` at once, or when text is unlocked. Functions that wait are called in their order.
---@param act fun()
---@param key? string of the thing that it changes
---@param replace? boolean forget functions that wait and have the same key
function M.when_unlocked(act, key, replace)
  if not waiting[1] and not M.locked() then
    act()
    return
  end
  if key and replace then
    waiting = vim.tbl_filter(function(other)
      return other.key ~= key
    end, waiting)
  end
  waiting[#waiting + 1] = { act = act, key = key }
  act_later()
end

return M
