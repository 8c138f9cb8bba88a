--- Completion of slash commands, contexts, files and programs.
local M = {}

local context = require('co.chat.context')
local printable = require('co.ui.printable')

-- The most words whose previews 'completeopt' shows: all of them are read at once.
local MOST_PREVIEWS = 100

-- The most lines of a buffer whose words complete a name.
local MOST_LINES = 5000

-- Characters with a meaning for the shell or for `:Co!`.
local SHELL = ' \t\n\\"\'`$&;|<>()*?[]{}!#%'

--- Returns the candidates that start with `lead`, sorted.
---@param candidates string[]
---@param lead string
---@return string[]
local function starting(candidates, lead)
  local found = vim.tbl_filter(function(candidate)
    return vim.startswith(candidate, lead)
  end, candidates)
  table.sort(found)
  return found
end

--- Returns the slash commands that start with `lead`, also those of prompt files.
---@param lead string
---@param cwd string
---@return string[]
local function slashes(lead, cwd)
  ---@type table<string, true>
  local names = {}
  for name in pairs(require('co.user_command.slash').commands) do
    names['/' .. name] = true
  end
  for _, name in ipairs(require('co.chat.prompt_files').names(cwd)) do
    names['/' .. name] = true
  end
  for name in pairs(require('co.user_command.agent_words').commands()) do
    names[name] = true
  end
  for name in pairs(require('co.user_command.server_words').commands()) do
    names[name] = true
  end
  return starting(vim.tbl_keys(names), lead)
end

--- Returns the directory of the current chat.
---@return string
function M.chat_directory()
  local chat = require('co.chat.registry').current()
  return chat and chat.state.cwd or vim.fn.getcwd()
end

--- Returns the files that start with `lead`, with a backslash before each character of `special`.
---@param lead string
---@param special string
---@return string[]
local function files(lead, special)
  local plain = lead:gsub('\\(.)', '%1')
  return vim.tbl_map(function(file)
    if vim.startswith(file, plain) then
      -- Keep what the person typed: a `$` there is a variable.
      return lead .. vim.fn.escape(file:sub(#plain + 1), special)
    end
    return vim.fn.escape(file, special)
  end, vim.fn.getcompletion(plain, 'file'))
end

--- Returns the words of the last buffer that start with `lead`.
---@param lead string
---@return string[]
local function names(lead)
  ---@type table<string, true>
  local found = {}
  local buf = require('co.ui.last_window').buffer()
  for _, line in ipairs(vim.api.nvim_buf_get_lines(buf, 0, MOST_LINES, false)) do
    for word in line:gmatch('[%a_\128-\255][%w_\128-\255]*') do
      found[word] = true
    end
  end
  return starting(vim.tbl_keys(found), lead)
end

--- Returns the names of the directories of skills that start with `lead`. The backend knows which of them the person trusts.
---@param lead string
---@return string[]
local function skills(lead)
  local cwd = M.chat_directory()
  local root = vim.fs.root(cwd, '.git') or cwd
  ---@type table<string, true>
  local found = {}
  for _, dir in ipairs({
    root .. '/.co/skills',
    root .. '/.claude/skills',
    root .. '/.agents/skills',
    vim.fs.dirname(vim.fn.stdpath('config') --[[@as string]]) .. '/co-nvim/skills',
    vim.fs.normalize('~/.claude/skills'),
  }) do
    for name in vim.fs.dir(dir) do
      if vim.uv.fs_stat(dir .. '/' .. name .. '/SKILL.md') then
        found[name] = true
      end
    end
  end
  return starting(vim.tbl_keys(found), lead)
end

-- The words that follow the name of a context and a colon, such as `@file:`.
---@type table<string, fun(lead: string): string[]>
local context_words = {
  file = function(lead)
    return files(lead, ' ')
  end,
  lsp = names,
  skill = skills,
}

--- Returns the contexts that start with `lead`.
---@param lead string
---@param wait boolean wait for words that the backend must ask for
---@return string[]
local function contexts(lead, wait)
  local name, begun = lead:match('^@(%l+):(.*)$')
  if context_words[name] then
    return vim.tbl_map(function(word)
      return ('@%s:%s'):format(name, word)
    end, context_words[name](begun))
  end
  if vim.startswith(lead, '@mcp:') then
    local server_words = require('co.user_command.server_words')
    local addresses = server_words.addresses(lead, wait)
    return #addresses > 0 and addresses or starting(server_words.contexts(), lead)
  end
  return starting(vim.tbl_keys(context.about), lead)
end

--- Returns the arguments of a slash command that start with `lead`.
---@param name string of a slash command
---@param given string the text between the command and `lead`
---@param lead string
---@param wait boolean wait for a list that the backend must ask for
---@return string[]
local function arguments(name, given, lead, wait)
  local of_server = name:match('^mcp:(.+)$')
  if of_server then
    local server_words = require('co.user_command.server_words')
    local names = starting(server_words.arguments(of_server, given), lead)
    return vim.list_extend(names, server_words.values(of_server, given, lead, wait))
  end
  local command = require('co.user_command.slash').commands[name] or {}
  if command.completion then
    return vim.fn.getcompletion(lead, command.completion)
  end
  local words = command.words or {}
  return starting(type(words) == 'function' and words(lead, wait) or words, lead)
end

--- Returns the options, programs and files that complete a word of a command.
---@param text string before the word
---@param lead string
---@param options string[] options that may come first
---@return string[]
local function shell_words(text, lead, options)
  local count
  repeat
    text, count = text:gsub('^%s*%+%+%S*%s+', '')
  until count == 0
  if printable.trim(text) == '' and lead:sub(1, 1) == '+' then
    return starting(options, lead)
  end
  local first = printable.trim(text) == '' or text:match('[|;&(]%s*$')
  if first and not lead:find('/') then
    return vim.fn.getcompletion(lead, 'shellcmd')
  end
  return files(lead, SHELL)
end

--- Returns the slash command whose arguments a text ends in, and the text after it.
---@param text string
---@return string? name
---@return string given
local function slash_line(text)
  local name, given = text:match('^%s*/([%w_-]+)%s(.*)$')
  if not name then
    name, given = text:match('^%s*/(mcp:%S+)%s(.*)$')
  end
  return name, given or ''
end

--- Returns whether Neovim reads the word after a part of a command line as the name of a command.
---@param before string
---@return boolean
local function precedes_command(before)
  if before:match('^[%s:]*$') then
    return true
  end
  -- `nvim_parse_cmd` fails if a pattern of the range is found nowhere.
  local ok, found = pcall(vim.fn.getcompletion, before .. 'checkhealth', 'cmdline')
  return ok and vim.list_contains(found, 'checkhealth')
end

--- Returns the arguments of the `:Co` in a command line. Text before it may have its name too, such as a path or a pattern of its
--- range. A `:Co` takes all that follows, so the first one counts.
---@param line string
---@return string bang
---@return string
local function arguments_of(line)
  for start, bang, rest in line:gmatch('()Co%f[^%w](!?)%s*()') do
    if
      precedes_command(line:sub(1, start --[[@as integer]] - 1))
    then
      return bang, line:sub(rest --[[@as integer]])
    end
  end
  return '', ''
end

--- Completes `:Co` and `:Co!`.
---@param lead string
---@param line string
---@param position integer
---@return string[]
function M.command_line(lead, line, position)
  local before = line:sub(1, position - #lead)
  local bang, rest = arguments_of(before)
  if bang == '!' then
    local options = require('co.run.options')
    return shell_words(
      rest,
      lead,
      vim.list_extend(vim.list_slice(options.for_shell), options.for_chats)
    )
  end
  local slash, given = slash_line(rest)
  if slash then
    return arguments(slash, given, lead, true)
  elseif lead:sub(1, 1) == '/' and printable.trim(rest) == '' then
    return slashes(lead, vim.fn.getcwd())
  elseif lead:sub(1, 1) == '@' then
    return contexts(lead, true)
  end
  return {}
end

--- Returns the number of bytes before the last word of a text in a prompt.
---@param text string
---@return integer
local function start_of_word(text)
  -- An escaped blank is a part of a name.
  local start = (text:gsub('\\ ', '__'):find('[^%s]+$') or #text + 1) - 1
  return start == 0 and text:sub(1, 1) == '!' and 1 or start
end

--- Returns the words that complete the word before a place in a prompt.
---@param line string
---@param column integer bytes before the place
---@param automatic? boolean nobody asked for it: a path needs a slash
---@return integer start the bytes before the word
---@return string[]
function M.at(line, column, automatic)
  local text = line:sub(1, column)
  local start = start_of_word(text)
  local command = text:sub(1, 1) == '!'
  local before, base = text:sub(1, start), text:sub(start + 1)
  local found = {}
  local slash, given = slash_line(before)
  if command then
    return start, shell_words(before:sub(2), base, require('co.run.options').for_chats)
  elseif slash then
    found = arguments(slash, given, base, not automatic)
  elseif base:sub(1, 1) == '@' then
    return start, contexts(base, not automatic)
  elseif base:sub(1, 1) == '/' and before:match('^%s*$') then
    found = slashes(base, M.chat_directory())
  end
  if #found == 0 and not slash and (not automatic or base:find('/', 2, true)) then
    found = vim.fn.getcompletion(base, 'file')
  end
  return start, found
end

--- Completes a word in the prompt of a chat, as an 'omnifunc'.
---@param findstart integer
---@param base string
---@return integer|vim.v.completed_item[]
function M.omnifunc(findstart, base)
  local column = vim.api.nvim_win_get_cursor(0)[2]
  local line = vim.api.nvim_get_current_line():sub(1, column) .. base
  if findstart == 1 then
    return start_of_word(line)
  end
  local _, words = M.at(line, #line)
  local describe = require('co.user_command.describe')
  local cwd = M.chat_directory()
  local options = vim.o.completeopt
  local previews = (options:find('popup') or options:find('preview')) and #words <= MOST_PREVIEWS
  return vim.tbl_map(function(word)
    return {
      word = word,
      menu = describe.about(word, cwd),
      info = previews and describe.preview(word, cwd) or '',
    }
  end, words)
end

return M
