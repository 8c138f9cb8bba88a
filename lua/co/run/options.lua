--- The options before a command of the person, such as `++pty`, and the shell and environment for it.
local M = {}

---@class (exact) co.RunOptions
---@field mode? co.RunMode
---@field environment? 'restricted'|'inherit'
---@field timeout? integer seconds, 0 is no limit
---@field builds_image? boolean
---@field watch? boolean run again after each save
---@field trial? boolean run as a trial, then ask what to keep

-- One week, as for the setting.
local LONGEST = 604800

--- Set the value of an option. They return an error text for a wrong value.
---@type table<string, fun(options: co.RunOptions, value?: string): string?>
local setters = {
  pty = function(options, value)
    options.mode = 'pty'
    return value and '++pty takes no value'
  end,
  stdin = function(options, value)
    -- A terminal has an open input anyway.
    options.mode = options.mode or 'open'
    return value and '++stdin takes no value'
  end,
  try = function(options, value)
    options.trial = true
    return value and '++try takes no value'
  end,
  watch = function(options, value)
    options.watch = true
    return value and '++watch takes no value'
  end,
  env = function(options, value)
    if value ~= 'restricted' and value ~= 'inherit' then
      return ('++env= takes restricted or inherit, not "%s"'):format(value or '')
    end
    options.environment = value
  end,
  timeout = function(options, value)
    local seconds = value and value:match('^%d+$') and tonumber(value)
    if not seconds or seconds > LONGEST then
      return ('++timeout= takes seconds, 0 to %d, not "%s"'):format(LONGEST, value or '')
    end
    options.timeout = seconds
  end,
}

--- The options for completion: those of `!` lines in a chat and of `:Co!`, and those of `:Co!` only.
M.for_chats = { '++env=inherit', '++env=restricted', '++timeout=', '++timeout=0' }
M.for_shell = { '++pty', '++stdin', '++try', '++watch' }

--- Splits the options from a command.
---@param text string
---@return string? command
---@return co.RunOptions options
---@return string? problem
function M.parse(text)
  ---@type co.RunOptions
  local options = {}
  while true do
    local option, rest = text:match('^%+%+(%S*)%s*(.*)$')
    if not option or not rest then
      if options.watch and options.mode then
        return nil, options, '++watch runs without a terminal and an open input'
      elseif options.watch and options.trial then
        return nil, options, '++try asks after each run: leave out ++watch'
      end
      return text, options
    end
    local name, value = option:match('^([^=]*)=?(.*)$')
    local set = setters[name]
    local problem = set and set(options, option:find('=', 1, true) and value or nil)
      or not set and ('no ++%s: ++pty ++stdin ++try ++watch ++env= ++timeout='):format(option)
    if problem then
      return nil, options, problem
    end
    text = rest
  end
end

--- Splits 'shell' or 'shellcmdflag' into words as Neovim does: double quotes keep blanks.
---@param text string
---@return string[]
local function words(text)
  ---@type string[]
  local found = {}
  local word, quoted, escaped = '', false, false
  for char in (text .. ' '):gmatch('.') do
    if escaped then
      word, escaped = word .. char, false
    elseif quoted and char == '\\' then
      escaped = true
    elseif char == '"' then
      quoted = not quoted
    elseif not quoted and (char == ' ' or char == '\t') then
      if word ~= '' then
        found[#found + 1] = word
      end
      word = ''
    else
      word = word .. char
    end
  end
  return found
end

--- Returns the options for the backend, with the shell and environment of Neovim. Never log them: they hold secrets.
---@param options co.RunOptions
---@return co.RunOptionsMessage
function M.message(options)
  ---@type string[]
  local variables = {}
  for name, value in pairs(vim.fn.environ()) do
    variables[#variables + 1] = name .. '=' .. value
  end
  return {
    environment = options.environment,
    timeout = options.timeout,
    builds_image = options.builds_image,
    trial = options.trial,
    host = {
      shell = vim.list_extend(words(vim.o.shell), words(vim.o.shellcmdflag)),
      variables = variables,
    },
  }
end

return M
