--- The settings. Lua checks those that it uses; the backend gets and checks the others.
local M = {}

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
---@field keys { chat: table<string, string|string[]|false>, shell: table<string, string|string[]|false>, jobs: table<string, string|string[]|false>, question: table<string, string|string[]|false>, editor: table<string, string|string[]|false> }

---@type co.Config
local defaults = {
  bin = nil,
  layout = 'auto',
  ascii = false,
  chat_conceal = true,
  shell_height = 12,
  float_focus = false,
  question_keys = false,
  run_diagnostics = false,
  alert = 'osc9',
  alert_after = 10,
  keys = {
    chat = {
      submit = '<CR>',
      send = '<C-s>',
      cancel = '<C-c>',
      hide = 'q',
      next = ']]',
      previous = '[[',
      next_call = ']c',
      previous_call = '[c',
      target = 'gd',
      output = '<CR>',
      open = 'gf',
      yank = 'gy',
      plan = '<M-p>',
      help = 'g?',
    },
    shell = {
      cancel = '<C-c>',
      hide = 'q',
      background = '<C-z>',
      again = 'r',
      next = ']]',
      previous = '[[',
      open = { '<CR>', 'gf' },
      quickfix = '<C-q>',
      help = 'g?',
    },
    jobs = {
      open = '<CR>',
      tail = 't',
      cancel = { 'x', '<C-c>' },
      quickfix = '<C-q>',
      delete = 'd',
      keep = 'K',
      write = 'i',
      close = 'I',
      hide = 'q',
      help = 'g?',
    },
    question = {
      yes = 'y',
      no = 'n',
      because = 'N',
      always = 'a',
      edit = 'e',
      try = 't',
      try_first = 'T',
      real = 'r',
      all = 'd',
      list = 'Y',
      deny_all = 'gN',
      hide = { 'q', '<Esc>' },
      help = 'g?',
      command = 'c',
      prefix = 'p',
      prefix_saved = 's',
      edits = 'f',
      everything = 'E',
    },
    editor = {
      abort = '<C-c><C-k>',
    },
  },
}

-- The deepest nesting of a setting.
local NESTED = 64

-- The most bytes that Neovim maps.
local LONGEST_KEY = 50

local alerts = { osc9 = true, osc777 = true, bell = true }
local layouts =
  { auto = true, vertical = true, horizontal = true, float = true, tab = true, current = true }

--- Returns whether a value is a valid setting of a key.
---@param lhs any
---@return boolean
local function are_keys(lhs)
  if lhs == false then
    return true
  end
  local keys = type(lhs) == 'table' and lhs or { lhs }
  local wrong = vim.tbl_filter(function(key)
    return type(key) ~= 'string' or key == '' or #vim.keycode(key) > LONGEST_KEY
  end, keys)
  return vim.islist(keys) and #wrong == 0
end

--- Checks the keys of one buffer.
---@param given any
---@param known table<string, string|string[]|false>
---@return string? problem
local function check_keys(given, known)
  if type(given) ~= 'table' then
    return 'a table of actions and keys'
  end
  for action, lhs in pairs(given) do
    if known[action] == nil then
      return ('a table of keys for these actions: %s; there is no action "%s"'):format(
        table.concat(vim.fn.sort(vim.tbl_keys(known)), ', '),
        action
      )
    end
    if not are_keys(lhs) then
      return ('a table with a key, a list of keys or false for "%s"'):format(action)
    end
  end
end

--- Returns a description of the accepted values if a value is not a boolean.
---@param value any
---@return string? problem
local function check_boolean(value)
  return type(value) ~= 'boolean' and 'true or false' or nil
end

--- Return a description of the accepted values if a value is wrong, else nil.
---@type table<string, fun(value: any): string?>
local checks = {
  bin = function(value)
    return (type(value) ~= 'string' or value == '') and 'the path of the co-nvim executable' or nil
  end,
  layout = function(value)
    return not layouts[value] and 'auto, vertical, horizontal, float, tab or current' or nil
  end,
  shell_height = function(value)
    local fits = type(value) == 'number' and value >= 1 and value % 1 == 0
    return not fits and 'a whole number of lines, 1 or more' or nil
  end,
  ascii = check_boolean,
  chat_conceal = check_boolean,
  float_focus = check_boolean,
  question_keys = check_boolean,
  run_diagnostics = check_boolean,
  alert = function(value)
    return value ~= false and not alerts[value] and 'osc9, osc777, bell or false' or nil
  end,
  alert_after = function(value)
    local fits = type(value) == 'number' and value >= 0
    return not fits and 'a number of seconds, 0 or more' or nil
  end,
  keys = function(value)
    if type(value) ~= 'table' then
      return 'a table with chat, shell, jobs, question and editor'
    end
    for place, keys in pairs(value) do
      local known = defaults.keys[place]
      local problem = known and check_keys(keys, known)
        or (
          not known
          and ('a table with chat, shell, jobs, question and editor; not "%s"'):format(place)
        )
      if problem then
        return problem
      end
    end
  end,
}

--- Returns whether Neovim can send `value` and the backend can read it.
---@param value any
---@param depth integer a table in itself has no end
---@return boolean
local function is_sendable(value, depth)
  if type(value) == 'string' then
    return utf8.valid(value)
  elseif type(value) ~= 'table' then
    return type(value) == 'number' or type(value) == 'boolean' or value == vim.NIL
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
      and 'made of UTF-8 texts, numbers, true, false, lists and tables with names'
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
    return
  end
  for name, value in pairs(given) do
    local check = checks[name]
    local problem = (check or check_sendable)(value)
    if type(name) ~= 'string' then
      problems[#problems + 1] = ('%s: there is no setting %s; give each its name, such as { model = "x" }'):format(
        layer,
        name
      )
    elseif problem then
      problems[#problems + 1] = ('%s: the setting "%s" must be %s'):format(layer, name, problem)
    elseif name == 'keys' then
      for place, keys in pairs(value) do
        into.keys[place] = vim.tbl_extend('force', into.keys[place], keys)
      end
    elseif check then
      into[name] = value
    else
      others[name] = value
    end
  end
end

--- Reads all layers again, shows new errors and calls the callbacks.
---@return co.Config
local function merge()
  local into, known = vim.deepcopy(defaults), problems
  merged, others, problems, from_global = into, {}, {}, vim.g.co
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

--- Returns the usual keys of the approval float, by action.
---@return table<string, string|string[]>
function M.usual_question_keys()
  return defaults.keys.question --[[@as table<string, string|string[]>]]
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
  return next(others) and others or vim.empty_dict()
end

--- Returns the errors in the settings that Lua checks, one sentence each.
---@return string[]
function M.problems()
  M.get()
  return problems
end

return M
