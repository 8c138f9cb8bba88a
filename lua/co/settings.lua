--- The settings that Lua reads: their values, their defaults and their help, which `doc/co.txt` has too.
local M = {}

---@alias co.Keys table<string, string|string[]|false>

---@class (exact) co.Setting
---@field name string
---@field default any nil: none
---@field accepts string the accepted values
---@field check fun(value: any): string? returns the accepted values if the value is wrong
---@field applies string when a change applies
---@field help string

-- The most bytes that Neovim maps.
local LONGEST_KEY = 50

--- The usual keys of each place, by action.
---@type table<string, co.Keys>
M.keys = {
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
    server = 'm',
    server_saved = 'M',
    everything = 'E',
  },
  editor = {
    abort = '<C-c><C-k>',
  },
}

local PLACES = 'a table with chat, shell, jobs, question and editor'

--- Returns whether a value is a valid setting of a key.
---@param lhs any
---@return boolean
local function are_keys(lhs)
  if lhs == false then
    return true
  end
  local list = type(lhs) == 'table' and lhs or { lhs }
  local wrong = vim.tbl_filter(function(key)
    return type(key) ~= 'string' or key == '' or #vim.keycode(key) > LONGEST_KEY
  end, list)
  return vim.islist(list) and #wrong == 0
end

-- The places whose actions all work in one buffer. In a chat, some keys are for the prompt only.
local ONE_BUFFER = { 'shell', 'jobs', 'question' }

--- Returns a problem if two actions have the same key.
---@param place string
---@param keys co.Keys
---@return string? problem
local function check_twice(place, keys)
  ---@type table<string, string>
  local actions = {}
  local names = vim.tbl_keys(keys)
  table.sort(names)
  for _, action in ipairs(names) do
    local lhs = keys[action] or {}
    for _, key in ipairs(type(lhs) == 'table' and lhs or { lhs }) do
      local other = actions[vim.keycode(key)]
      if other and other ~= action then
        return ('a table with another key for each action; %s has "%s" for "%s" and "%s"'):format(
          place,
          key,
          other,
          action
        )
      end
      actions[vim.keycode(key)] = action
    end
  end
end

--- Checks the keys of one place.
---@param given any
---@param place string
---@return string? problem
local function check_keys(given, place)
  local known = M.keys[place]
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
  if vim.list_contains(ONE_BUFFER, place) then
    return check_twice(place, vim.tbl_extend('force', known, given))
  end
end

--- Checks the keys of all buffers.
---@param value any
---@return string? problem
local function check_all_keys(value)
  if type(value) ~= 'table' then
    return PLACES
  end
  for place, given in pairs(value) do
    if not M.keys[place] then
      return ('%s; not "%s"'):format(PLACES, place)
    end
    local problem = check_keys(given, place)
    if problem then
      return problem
    end
  end
end

---@class (exact) co.setting.About
---@field name string
---@field default? any
---@field applies? string nil: at once
---@field help string

--- Returns a setting.
---@param about co.setting.About
---@param accepts string
---@param is_valid fun(value: any): boolean
---@return co.Setting
local function setting(about, accepts, is_valid)
  return vim.tbl_extend('keep', about, {
    accepts = accepts,
    applies = 'at once',
    check = function(value)
      return not is_valid(value) and accepts or nil
    end,
  }) --[[@as co.Setting]]
end

--- Returns a setting that is true or false.
---@param about co.setting.About
---@return co.Setting
local function flag(about)
  return setting(about, 'true or false', function(value)
    return type(value) == 'boolean'
  end)
end

--- Returns a setting with a few values.
---@param about co.setting.About
---@param values any[]
---@return co.Setting
local function choice(about, values)
  local names = vim.tbl_map(tostring, values)
  local last = table.remove(names)
  return setting(about, ('%s or %s'):format(table.concat(names, ', '), last), function(value)
    return vim.list_contains(values, value)
  end)
end

--- The settings in the order of the help.
---@type co.Setting[]
M.all = {
  setting(
    {
      name = 'bin',
      applies = 'after |co-/restart|',
      help = [[
      If it is not set, co looks for `stdpath('data')/co/bin/co-nvim-{version}`,
      then for `target/release/co-nvim` in the plugin, then on PATH.]],
    },
    'the path of the co-nvim executable',
    function(value)
      return type(value) == 'string' and value ~= ''
    end
  ),
  choice({
    name = 'layout',
    default = 'auto',
    help = [[
      The place of the chat: a vertical or horizontal split, a float, a tab, or
      the current window. With the last two, the chat always takes the focus.
      With auto, it is a vertical split, or a horizontal one if the screen has
      fewer than 100 columns.]],
  }, { 'auto', 'vertical', 'horizontal', 'float', 'tab', 'current' }),
  flag({
    name = 'ascii',
    default = false,
    help = [[
      Draw the signs of calls with ASCII characters: `.` looked, `+` ended well,
      `x` failed; and rules with `-`.]],
  }),
  flag({
    name = 'chat_conceal',
    default = true,
    applies = 'when a chat is shown',
    help = [[
      Hide the marks of markdown in chats, and show the headings of messages as
      rules. With false, a chat has your 'conceallevel'.]],
  }),
  setting(
    {
      name = 'shell_height',
      default = 12,
      help = 'The height of the split of the shell buffer.',
    },
    'a whole number of lines, 1 or more',
    function(value)
      return type(value) == 'number' and value >= 1 and value % 1 == 0
    end
  ),
  flag({
    name = 'float_focus',
    default = false,
    help = [[
      Let the question float take the focus when that is safe, see
      |co-approval|.]],
  }),
  flag({
    name = 'question_keys',
    default = false,
    help = [[
      Map <C-\>y, <C-\>n, <C-\>r and <C-\>t while a question is on the screen, to
      answer it from any window and mode, see |co-question-keys|.]],
  }),
  flag({
    name = 'run_diagnostics',
    default = false,
    help = [[
      Show the errors of the |:Co!| that ended last as diagnostics, each with
      the name of its format as the source, see |co-/errors|. If the format has
      no type, a text that begins with "warning" or "note" is no error.]],
  }),
  choice({
    name = 'alert',
    default = 'osc9',
    help = [[
      Tell a question, and the end of something long, while the terminal does
      not have the focus: osc9 or osc777 for a notification of the desktop,
      bell, or false. Your terminal must know the sequence and report its focus
      (|FocusLost|); tmux must have `allow-passthrough` and `focus-events` on.]],
  }, { 'osc9', 'osc777', 'bell', false }),
  setting(
    {
      name = 'alert_after',
      default = 10,
      help = 'The time that a run, a job or a turn must take for an alert of its end.',
    },
    'a number of seconds, 0 or more',
    function(value)
      return type(value) == 'number' and value >= 0
    end
  ),
  {
    name = 'keys',
    default = M.keys,
    accepts = PLACES,
    check = check_all_keys,
    applies = 'to buffers that co makes later',
    help = [[
      Other keys for the plugin's buffers: a key, a list of keys, or false for
      none. Those of `question` are for its float; those after `help` are for
      its menu. That of `editor` is for files of |co-run-editor|. Two actions of
      `shell`, `jobs` or `question` cannot have the same key.]],
  },
}

---@type table<any, co.Setting>
local by_name = {}
for _, one in ipairs(M.all) do
  by_name[one.name] = one
end

--- Returns a setting; nil if Lua does not read it.
---@param name any
---@return co.Setting?
function M.find(name)
  return by_name[name]
end

--- Returns the default of each setting.
---@return co.Config
function M.defaults()
  ---@type table<string, any>
  local defaults = {}
  for name, one in pairs(by_name) do
    defaults[name] = vim.deepcopy(one.default)
  end
  return defaults --[[@as co.Config]]
end

return M
