--- Describes what completion offers: a few words for the menu, and a preview in markdown.
local M = {}

local bounds = require('co.chat.bounds')
local context = require('co.chat.context')
local disk = require('co.ui.file_text')
local install = require('co.install')
local printable = require('co.ui.printable')
local prompt_files = require('co.chat.prompt_files')

-- The most lines of a file in a preview, and the most bytes of a preview.
local LINES, BYTES = 20, 4096

--- Returns the name of the slash command that a word is.
---@param word string
---@return string?
local function slash_name(word)
  return word:match('^/([%w_!-]+)$')
end

--- Returns the path that a word names, by its form.
---@param word string
---@return string?
function M.path(word)
  local path = word:match('^@file:(.+)$') or not word:match('^[@/][%w_!-]*:?$') and word or nil
  -- A `$` is a part of the name, not a variable.
  path = path and vim.fs.normalize((path:gsub('\\(.)', '%1')), { expand_env = false })
  return path and vim.uv.fs_stat(path) and path or nil
end

--- Returns a few words about what a word means; an empty text if there are none.
---@param word string
---@param cwd string
---@return string
function M.about(word, cwd)
  local name = slash_name(word)
  local entry = name and require('co.user_command.slash').commands[name]
  local file = name and not entry and prompt_files.about(name, cwd)
  local of_agent = require('co.user_command.agent_words').commands()[word]
  if of_agent then
    return printable.for_plugins(of_agent)
  end
  local of_server = require('co.user_command.server_words').commands()[word]
  if of_server then
    return printable.for_plugins(of_server)
  end
  return file and printable.for_plugins(file) or entry and entry.about or context.about[word] or ''
end

--- Returns lines in a block of code.
---@param lines string[]
---@param language string
---@return string
local function block(lines, language)
  local text, fence = table.concat(lines, '\n'), '~~~~'
  for run in text:gmatch('~~~~+') do
    fence = #run < #fence and fence or run .. '~'
  end
  return ('%s%s\n%s\n%s'):format(fence, language, text, fence)
end

--- Returns a text for the parser of markdown of another plugin.
---@param text string
---@return string
local function bounded(text)
  return table.concat(bounds.new(0):lines(printable.head(text, BYTES)), '\n')
end

-- The help file, once it was read.
---@type string?
local help_text

--- Returns the part of the help about a slash command or a context.
---@param tag string
---@return string?
local function help(tag)
  help_text = help_text or disk.read(install.root() .. '/doc/co.txt') or ''
  local text = help_text
  local _, from = text:find(('*%s*\n'):format(tag), 1, true)
  local part = from and text:sub(from + 1):match('^(.-)\n[^\n]*%*[%w/!+-]+%*\n')
  if not part then
    return nil
  end
  -- Without the empty column below the name.
  local lines = vim.tbl_map(function(line)
    return (line:gsub('^' .. (' '):rep(24), ''):gsub('(%S)%s%s+', '%1  '))
  end, vim.split(part, '\n'))
  return block(lines, 'help')
end

--- Returns the first lines of a file, or the names in a directory.
---@param path string
---@return string?
local function first_lines(path)
  if vim.fn.isdirectory(path) == 1 then
    local names = {}
    for name, type in vim.fs.dir(path) do
      names[#names + 1] = type == 'directory' and name .. '/' or name
    end
    table.sort(names)
    names = vim.tbl_map(printable.line, vim.list_slice(names, 1, LINES))
    return bounded(block(names, ''))
  end
  local text = disk.read(path, BYTES - 100)
  if not text or text:find('\0', 1, true) then
    return nil
  end
  local lines = vim.list_slice(vim.split(text, '\r?\n'), 1, LINES)
  return bounded(block(lines, vim.filetype.match({ filename = path }) or ''))
end

--- Returns the documentation of a slash command, the text of a prompt file, or the first lines of a file.
---@param word string
---@param cwd string
---@return string?
function M.preview(word, cwd)
  local name = slash_name(word)
  if name then
    if require('co.user_command.slash').commands[name] then
      return help('co-/' .. name)
    end
    local file = prompt_files.get(name, cwd)
    return file and bounded(prompt_files.parts(file.text).body)
  end
  local path = M.path(word)
  return path and first_lines(path)
end

return M
