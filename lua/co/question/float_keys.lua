--- The keys of the approval float. The person may map other keys to the actions, so the code names each action by its
--- usual key.
local M = {}

local config = require('co.config')
local settings = require('co.settings')

-- The action of each usual key. A key is usual for one action only, on all pages of the float.
---@type table<string, string>
local actions = {}
for action, lhs in pairs(settings.keys.question) do
  local usual = type(lhs) == 'table' and lhs[1] or lhs
  assert(not actions[usual], 'two actions have the same usual key')
  actions[usual] = action
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
---@param takes_numbers fun(): boolean the question has keys that are numbers; else they count for the next key
function M.map(buf, press, takes_numbers)
  local function map(lhs, key, description)
    vim.keymap.set('n', lhs, function()
      press(key)
    end, { buffer = buf, nowait = true, silent = true, desc = 'co: ' .. description })
  end
  -- It moves no cursor, and is an answer only if the person chose it.
  map('<CR>', '<CR>', 'nothing')
  for number = 1, 9 do
    local key = tostring(number)
    vim.keymap.set('n', key, function()
      if takes_numbers() then
        press(key)
      else
        vim.api.nvim_feedkeys(key, 'in', false)
      end
    end, { buffer = buf, nowait = true, silent = true, desc = 'co: choose' })
  end
  for key, action in pairs(actions) do
    local lhs = config.get().keys.question[action] or {}
    for _, one in ipairs(type(lhs) == 'table' and lhs or { lhs }) do
      map(one, key, action)
    end
  end
end

return M
