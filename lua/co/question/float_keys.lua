--- The keys of the approval float. The person may choose others for the actions: inside, an action is named by its usual
--- key. They are answers only some time after the float has shown something new: the person
--- may have typed them for something else.
local M = {}

local api = vim.api
local config = require('co.config')
local textlock = require('co.ui.textlock')

local IGNORED_NS = 250 * 1000000

-- The action of each usual key. A key is usual for one action only, on all pages of the float.
---@type table<string, string>
local actions = {}
for action, lhs in pairs(config.usual_question_keys()) do
  local usual = type(lhs) == 'table' and lhs[1] or lhs
  assert(not actions[usual], 'two actions have the same usual key')
  actions[usual] = action
end

local since = 0

--- Ignores keys from now on, for a while.
function M.ignore()
  since = vim.uv.hrtime()
end

--- Returns the milliseconds until keys are answers.
---@return integer
local function ignored_for()
  local left = IGNORED_NS - (vim.uv.hrtime() - since)
  return math.max(0, math.ceil(left / 1000000)) --[[@as integer]]
end

--- Returns whether keys are ignored now.
---@return boolean
function M.ignored()
  return ignored_for() > 0
end

--- Calls `act` as soon as keys are not ignored any more.
---@param act fun()
function M.when_quiet(act)
  local left = ignored_for()
  if left == 0 then
    act()
    return
  end
  vim.defer_fn(function()
    textlock.when_unlocked(function()
      M.when_quiet(act)
    end)
  end, left)
end

--- Drops keys that Neovim has not read yet.
function M.drop_typed()
  if api.nvim_get_mode().mode == 'n' then
    while vim.fn.getchar(0) ~= 0 do
    end
  end
end

--- Returns the person's first key for an action.
---@param key string the usual one
---@return string? lhs nil if there is none
function M.name(key)
  local lhs = config.get().keys.question[actions[key]]
  if type(lhs) == 'table' then
    lhs = lhs[1]
  end
  return lhs or nil
end

--- Maps the keys in the buffer of the float.
---@param buf integer
---@param press fun(key: string)
function M.map(buf, press)
  local function map(lhs, key, description)
    vim.keymap.set('n', lhs, function()
      press(key)
    end, { buffer = buf, nowait = true, silent = true, desc = 'co: ' .. description })
  end
  -- It moves no cursor, and is an answer only if the person chose it.
  map('<CR>', '<CR>', 'nothing')
  for key, action in pairs(actions) do
    local lhs = config.get().keys.question[action] or {}
    for _, one in ipairs(type(lhs) == 'table' and lhs or { lhs }) do
      map(one, key, action)
    end
  end
end

return M
