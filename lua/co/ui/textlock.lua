--- Waits where text may not be changed, such as in an <expr> mapping that waits for a key.
local M = {}

local api = vim.api
local log = require('co.ui.log')

local AGAIN_MS = 50

---@class (exact) co.lock.Waiting
---@field act fun()
---@field of? string what it is of

---@type co.lock.Waiting[]
local waiting = {}
local polling = false

--- Whether text is locked now.
---@return boolean
function M.locked()
  -- There is no such buffer: that is found out last.
  local _, problem = pcall(api.nvim_buf_set_text, -1, 0, 0, 0, 0, {})
  return tostring(problem):find('E565:', 1, true) ~= nil
end

local function poll()
  if polling then
    return
  end
  polling = true
  vim.defer_fn(function()
    polling = false
    while waiting[1] and not M.locked() do
      local ok, problem = xpcall(table.remove(waiting, 1).act, debug.traceback)
      if not ok then
        log.add('lock', tostring(problem))
      end
    end
    if waiting[1] then
      poll()
    end
  end, AGAIN_MS)
end

--- Does something: at once, or when text may be changed again; what came first is done first.
---@param act fun()
---@param of? string what it is of
---@param alone? boolean nothing that waits and is of the same is needed any more
function M.free(act, of, alone)
  if not waiting[1] and not M.locked() then
    act()
    return
  end
  if of and alone then
    waiting = vim.tbl_filter(function(other)
      return other.of ~= of
    end, waiting)
  end
  waiting[#waiting + 1] = { act = act, of = of }
  poll()
end

return M
