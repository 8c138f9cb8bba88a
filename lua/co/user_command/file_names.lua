--- Puts names of files into commands of the person: `%`, `#` and `##`, as `:!` does.
---
--- Shell commands use these characters too, as in `date +%F`. So they count only as whole words, or before a modifier
--- such as `:r`.
local M = {}

local api = vim.api
local last_window = require('co.ui.last_window')

-- The characters around a whole word. Quotes are for names with blanks.
local BEFORE, AFTER = '^[%s"\'(;&|<>]?$', '^[%s"\');&|<>]?$'

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

--- Returns the names for a mark as one text.
---@param mark string
---@param changes string modifiers
---@param cwd string the directory of the command
---@return string? text
---@return string? problem
local function text_of(mark, changes, cwd)
  local names, meaning = names_of(mark)
  local short = cwd == vim.fn.getcwd()
  local found = {}
  for _, name in ipairs(names) do
    name = short and vim.fn.fnamemodify(name, ':.') or name
    found[#found + 1] = vim.fn.fnamemodify(name, changes)
  end
  local text = table.concat(found, ' ')
  if text == '' then
    return nil, ('%s stands for the %s, and there is none'):format(mark .. changes, meaning)
  end
  return text
end

--- Returns whether the text from `from` to `to` is a whole word.
---@param command string
---@param from integer
---@param to integer
---@return boolean
local function is_word(command, from, to)
  local before, after = command:sub(from - 1, from - 1), command:sub(to + 1, to + 1)
  return before:find(BEFORE) ~= nil and after:find(AFTER) ~= nil
end

--- Expands `%`, `#` and `##` in a command. They mean the file of the last window that is not one of the plugin's. A
--- backslash before one prevents this.
---@param command string
---@param cwd string the directory of the command
---@return string? expanded
---@return string? problem
function M.expand(command, cwd)
  local out, at = {}, 1
  while true do
    local start, stop, escape, mark = command:find('(\\*)([%%#])', at)
    if not start or not stop or not escape or not mark then
      return table.concat(out) .. command:sub(at)
    end
    if mark == '#' then
      mark = mark .. (command:match('^%d+', stop + 1) or command:match('^#', stop + 1) or '')
    end
    local changes = modifiers(command, start + #escape + #mark)
    stop = start + #escape + #mark + #changes - 1
    local text = command:sub(start, stop)
    if changes ~= '' or is_word(command, start, stop) then
      if #escape % 2 == 1 then
        text = text:sub(2)
      else
        local names, problem = text_of(mark, changes, cwd)
        if not names then
          return nil, problem
        end
        text = escape .. names
      end
    end
    vim.list_extend(out, { command:sub(at, start - 1), text })
    at = stop + 1
  end
end

return M
