--- Puts names of files and words of the buffer into commands of the person: `%`, `#`, `<cword>` and the like, as `:!` does.
---
--- Shell commands use these characters too, as in `date +%F`, `$((10 % 3))` and comments. So `%` and `#` count only as whole
--- words without quotes, or before a modifier such as `:r`.
local M = {}

local api = vim.api
local last_window = require('co.ui.last_window')

-- Words of the buffer. The names of the others, such as `<afile>`, have a meaning in autocommands only.
local WORDS = { ['<cword>'] = true, ['<cWORD>'] = true, ['<cexpr>'] = true, ['<cfile>'] = true }
-- The character around a word of the shell, if there is one.
local WORD_EDGE = '^[%s;&|()<>`]?$'
-- Texts in quotes and expressions of the shell. Nothing in them stands for a name.
local OPAQUE = { "^'[^']*'?", '^%$?%(%(.-%)%)', '^%$%[.-%]', '^%${.-}' }

--- Returns the file name modifiers that begin at `at`, such as `:p:h` or `:s?from?to?`.
---@param command string
---@param at integer
---@return string
local function modifiers(command, at)
  local found = ''
  while true do
    local rest = at + #found
    local modifier = command:match('^:[8~.hpretS]', rest)
      or command:match('^(:g?s([^%w%s]).-%2.-%2)', rest) --[[@as string?]]
    if not modifier then
      return found
    end
    found = found .. modifier
  end
end

--- Returns the full names that `%`, `#`, `#3` or `##` stands for, and what it means.
---@param mark string
---@return string[] names
---@return string meaning
local function names_of(mark)
  local buf = last_window.buffer()
  if mark == '##' then
    return vim.tbl_map(function(name)
      return vim.fn.fnamemodify(name, ':p')
    end, vim.fn.argv() --[[@as string[] ]]),
      'argument list'
  elseif mark == '%' then
    return { api.nvim_buf_get_name(buf) }, 'current file'
  end
  local other = api.nvim_buf_call(buf, function()
    return vim.fn.bufnr(mark)
  end)
  return { other > 0 and api.nvim_buf_get_name(other) or '' }, 'alternate file'
end

--- Returns a text with the quotes that the shell needs.
---@param text string
---@param quoted boolean it stands between double quotes
---@return string
local function quote(text, quoted)
  if quoted then
    return (text:gsub('[\\"$`]', '\\%0'))
  end
  local home = text:match('^~/') or ''
  local rest = text:sub(#home + 1)
  if rest:find('^[%w_./@%%+=:,-]*$') then
    return text
  end
  return ("%s'%s'"):format(home, (rest:gsub("'", "'\\''")))
end

--- Returns the text for a mark.
---@param mark string
---@param changes string modifiers
---@param cwd string the directory of the command
---@param quoted boolean it stands between double quotes
---@return string? text
---@return string? problem
local function text_of(mark, changes, cwd, quoted)
  local names, meaning = names_of(mark)
  local short = cwd == vim.fn.getcwd()
  local found = {}
  for _, name in ipairs(names) do
    name = short and vim.fn.fnamemodify(name, ':.') or name
    name = vim.fn.fnamemodify(name, changes)
    if name ~= '' then
      found[#found + 1] = changes:find(':S', 1, true) and name or quote(name, quoted)
    end
  end
  if not found[1] then
    return nil, ('%s stands for the %s, and there is none'):format(mark .. changes, meaning)
  end
  return table.concat(found, ' ')
end

--- Returns the word at the cursor that `<cword>` or the like stands for.
---@param mark string
---@param quoted boolean it stands between double quotes
---@return string? text
---@return string? problem
local function word_of(mark, quoted)
  local win = last_window.window()
  local word = win and api.nvim_win_call(win, function()
    return vim.fn.expand(mark)
  end)
  if not word or word == '' then
    return nil, ('%s stands for text at the cursor, and there is none'):format(mark)
  end
  return quote(word, quoted)
end

---@class (exact) co.FileMark
---@field mark string
---@field changes string modifiers
---@field stop integer the byte after it

--- Returns the mark of file names that begins at a byte, if it counts there.
---@param command string
---@param at integer
---@param quoted boolean it stands between double quotes
---@return co.FileMark?
local function mark_at(command, at, quoted)
  local mark = command:match('^%%', at) or command:match('^##?%d*', at)
  if not mark then
    return nil
  end
  local stop = at + #mark
  -- `%<` is the older form of `%:r`.
  local root = command:match('^<', stop)
  local changes = root and ':r' or modifiers(command, stop)
  stop = stop + (root and 1 or #changes)
  local before, after = command:sub(at - 1, at - 1), command:sub(stop, stop)
  local word = not quoted and before:find(WORD_EDGE) and (root or after:find(WORD_EDGE))
  if changes == '' or root then
    -- A `#` before more words starts a comment.
    local comment = mark:find('^#') and not root and command:find('^[^\n]*[^%s)]', stop)
    if not word or comment then
      return nil
    end
  end
  return { mark = mark, changes = changes, stop = stop }
end

--- Returns the byte after a quoted text, an expression or a comment of the shell, if one begins at a byte.
---@param command string
---@param at integer
---@param quoted boolean it stands between double quotes
---@return integer?
local function opaque_end(command, at, quoted)
  for _, pattern in ipairs(OPAQUE) do
    local _, stop = command:find(pattern, at)
    if stop and not (quoted and command:find("^['(]", at)) then
      return stop + 1
    end
  end
  local before = command:sub(at - 1, at - 1)
  if not quoted and before:find(WORD_EDGE) and command:find('^#', at) then
    return (command:find('\n', at, true)) or #command + 1
  end
end

--- Expands `%`, `#`, `##` and `<cword>` and the like in a command. They mean the file and the cursor of the last window
--- that is not one of the plugin's. A backslash before one prevents this.
---@param command string
---@param cwd string the directory of the command
---@return string? expanded
---@return string? problem
function M.expand(command, cwd)
  local out, at, quoted = {}, 1, false
  while at <= #command do
    local file = mark_at(command, at, quoted)
    local word = command:match('^<%a+>', at)
    local text, problem
    local stop ---@type integer
    if file then
      text, problem = text_of(file.mark, file.changes, cwd, quoted)
      stop = file.stop
    elseif word and WORDS[word] then
      text, problem = word_of(word, quoted)
      stop = at + #word
    else
      if command:find('^"', at) then
        quoted = not quoted
      end
      local plain = command:match('^\\.', at) or command:match('^[%w_-]+', at) or ' '
      stop = opaque_end(command, at, quoted) or at + #plain
      text = command:sub(at, stop - 1)
    end
    if not text then
      return nil, problem
    end
    out[#out + 1], at = text, stop
  end
  return table.concat(out)
end

return M
