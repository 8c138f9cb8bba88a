--- Offers the earlier commands of `:Co!`.
local M = {}

local notify = require('co.ui.notify')
local select = require('co.ui.select')

-- The modifiers (`:silent`), the range and the command of a `:Co!`.
local MODIFIERS = [=[\(\%(\d*\a\+!\?\s\+\)\{-}\)]=]
local RANGE = [=[\(\%([%.$,;[:blank:]]\|\d\+\|[-+]\|'.\|/[^/]*/\|?[^?]*?\)*\)]=]
local LINE = [=[\C^[:[:blank:]]*]=] .. MODIFIERS .. RANGE .. [=[Co!\s*\(.\{-}\)\s*$]=]

--- Returns the parts of a line that is a `:Co!`.
---@param line string
---@return string? command nil for another line
---@return string? before its modifiers and its range
local function parse(line)
  local found = vim.fn.matchlist(line, LINE)
  local modifiers, range, command = found[2], found[3], found[4]
  if not command or command == '' then
    return nil
  elseif modifiers ~= '' then
    -- In `:echo Co! x`, the word before is another command.
    local ok, parsed = pcall(vim.api.nvim_parse_cmd, modifiers .. 'Co! x', {})
    if not ok or parsed.cmd ~= 'Co' or not parsed.bang then
      return nil
    end
  end
  return command, modifiers .. range
end

--- Returns the commands of `:Co!` in the history of the command line, each once, the newest first. One with a modifier or a
--- range is its whole line.
---@return string[] commands
---@return table<string, string> lines the line of each of them
local function commands()
  ---@type string[], table<string, string>
  local found, lines = {}, {}
  for index = vim.fn.histnr(':'), 1, -1 do
    local command, before = parse(vim.fn.histget(':', index))
    if command and before then
      local line = before .. 'Co! ' .. command
      local shown = before == '' and command or line
      if not lines[shown] then
        lines[shown] = line
        found[#found + 1] = shown
      end
    end
  end
  return found, lines
end

--- Puts the chosen command on the command line.
function M.choose()
  local choices, lines = commands()
  if #choices == 0 then
    notify.info('the history of the command line has no :Co!')
    return
  end
  select.show(choices, { prompt = 'Earlier commands' }, function(choice)
    if choice then
      vim.api.nvim_feedkeys(vim.keycode('<C-Bslash><C-n>') .. ':' .. lines[choice], 'n', false)
    end
  end)
end

return M
