--- The settings. Lua checks those that it uses; the backend gets and checks the others.
local M = {}

local settings = require('co.settings')
local utf8 = require('co.ui.utf8')

---@class (exact) co.Config
---@field bin? string the backend's executable
---@field layout 'auto'|'vertical'|'horizontal'|'float'|'tab'|'current'
---@field ascii boolean draw signs with ASCII characters
---@field chat_conceal boolean hide the marks of markdown in chats
---@field shell_height integer lines of the shell split
---@field float_focus boolean focus the approval float at once where that is safe
---@field question_keys boolean map keys that answer a question from anywhere while it is on the screen
---@field run_diagnostics boolean errors of runs become diagnostics
---@field alert 'osc9'|'osc777'|'bell'|false
---@field alert_after number seconds
---@field keys { chat: co.Keys, shell: co.Keys, jobs: co.Keys, question: co.Keys, editor: co.Keys }

-- The deepest nesting of a setting.
local NESTED = 64

-- The backend gets it in place of a value that cannot be sent, and of settings that are no table. It accepts it nowhere: without
-- it, the backend would take the setting as not given, and send prompts without the rules of `deny`.
local WRONG = { vim.NIL }

--- Returns whether Neovim can send `value` and the backend can read it.
---@param value any
---@param depth integer a table in itself has no end
---@return boolean
local function is_sendable(value, depth)
  if type(value) == 'string' then
    return utf8.valid(value)
  elseif type(value) ~= 'table' then
    local is_finite = type(value) == 'number' and value - value == 0
    return is_finite or type(value) == 'boolean' or value == vim.NIL
  end
  local list = vim.islist(value)
  for key, item in pairs(value) do
    local named = type(key) == 'string' and utf8.valid(key)
    if depth == 0 or not (list or named) or not is_sendable(item, depth - 1) then
      return false
    end
  end
  return true
end

--- Returns a description of the values that can be sent to the backend if `value` is none.
---@param value any
---@return string? problem
local function check_sendable(value)
  return not is_sendable(value, NESTED)
      and 'made of UTF-8 texts, finite numbers, true, false, lists and tables with names'
    or nil
end

---@type table<string, any>?
local from_setup
-- The value of `vim.g.co` at the last merge.
---@type any
local from_global
---@type co.Config?
local merged
---@type table<string, any>
local others = {}
-- A layer is no table.
local unreadable = false
---@type string[]
local problems = {}
---@type fun()[]
local on_change = {}
-- Callbacks read the settings, too.
local calling = false

--- Adds the settings of one layer and collects their errors.
---@param into co.Config
---@param layer string
---@param given any
local function apply(into, layer, given)
  if given == nil then
    return
  end
  if type(given) ~= 'table' then
    problems[#problems + 1] = ('%s must be a table of settings'):format(layer)
    unreadable = true
    return
  end
  for name, value in pairs(given) do
    local setting = settings.find(name)
    local problem = (setting and setting.check or check_sendable)(value)
    if type(name) ~= 'string' then
      problems[#problems + 1] = ('%s: there is no setting %s; give each its name, such as { model = "x" }'):format(
        layer,
        name
      )
    elseif problem then
      problems[#problems + 1] = ('%s: the setting "%s" must be %s'):format(layer, name, problem)
      others[name] = not setting and WRONG or nil
    elseif name == 'keys' then
      for place, keys in pairs(value) do
        into.keys[place] = vim.tbl_extend('force', into.keys[place], keys)
      end
    elseif setting then
      into[name] = value
    else
      others[name] = value
    end
  end
end

--- Reads all layers again, shows new errors and calls the callbacks.
---@return co.Config
local function merge()
  local into, known = settings.defaults(), problems
  merged, others, problems, from_global = into, {}, {}, vim.g.co
  unreadable = false
  apply(into, 'vim.g.co', from_global)
  apply(into, 'setup', from_setup)
  for _, problem in ipairs(problems) do
    if not vim.list_contains(known, problem) then
      require('co.ui.notify').error(problem)
    end
  end
  if not calling then
    calling = true
    for _, callback in ipairs(on_change) do
      local ok, problem = pcall(callback)
      if not ok then
        require('co.ui.log').add('settings', tostring(problem))
      end
    end
    calling = false
  end
  return into
end

--- Keeps the settings of `setup{}`. They are checked when the settings are first used.
---@param given? table<string, any>
function M.set(given)
  from_setup = given
  if merged then
    merge()
  end
end

--- Calls `callback` after each change of the settings.
---@param callback fun()
function M.on_change(callback)
  on_change[#on_change + 1] = callback
end

--- Returns the settings of `vim.g.co` and `setup{}`.
---@return co.Config
function M.get()
  if merged and (calling or vim.deep_equal(from_global, vim.g.co)) then
    return merged
  end
  return merge()
end

--- Returns the settings for the backend.
---@return table<string, any>
function M.settings()
  M.get()
  if unreadable then
    return WRONG
  end
  return next(others) and others or vim.empty_dict()
end

--- Returns the errors in the settings that Lua checks, one sentence each.
---@return string[]
function M.problems()
  M.get()
  return problems
end

return M
