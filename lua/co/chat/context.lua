--- The contexts of a prompt: the text that `@buffer` and other words add to it.
local M = {}

local api = vim.api
local git_context = require('co.chat.git_context')
local image_context = require('co.chat.image_context')
local lsp_context = require('co.chat.lsp_context')
local disk = require('co.ui.file_text')
local last_window = require('co.ui.last_window')
local limit = require('co.chat.context_limit')
local notify = require('co.ui.notify')
local utf8 = require('co.ui.utf8')

-- Replaces an escaped blank. Prompts and file names contain no such byte.
local ESCAPED = '\1'

-- The most bytes that a path can have.
local LONGEST_PATH = 4096

--- Returns the name of a buffer for a context.
---@param buf integer
---@return string
local function name_of(buf)
  local name = api.nvim_buf_get_name(buf)
  return name ~= '' and vim.fn.fnamemodify(name, ':~:.') or ('[buffer %d]'):format(buf)
end

--- Returns lines of a buffer as a context.
---@param name string
---@param buf integer
---@param first integer
---@param last integer
---@return co.Context
local function lines_of(name, buf, first, last)
  local text, size = limit.lines(buf, first, last)
  return { name = name, text = text, size = size }
end

--- Returns lines of a buffer as the context `@selection`.
---@param buf integer
---@param first integer
---@param last integer
---@return co.Context
local function selected(buf, first, last)
  local range = first == last and tostring(first) or ('%d-%d'):format(first, last)
  return lines_of(('@selection %s:%s'):format(name_of(buf), range), buf, first, last)
end

--- Returns lines of the current buffer as a context, for `:{range}Co`.
---@param first integer
---@param last integer
---@return co.Context
function M.range(first, last)
  return selected(api.nvim_get_current_buf(), first, last)
end

--- Returns the prompt that asks for a change of lines of the current buffer.
---@param first integer
---@param last integer
---@param wish string
---@return string
function M.edit_prompt(first, last, wish)
  local range = first == last and ('line %d'):format(first)
    or ('lines %d to %d'):format(first, last)
  local name = name_of(api.nvim_get_current_buf())
  return ('Change %s of %s, and nothing else: %s'):format(range, name, wish)
end

--- Returns lines of the current buffer for the backend; nil if it has no file, or its name is not UTF-8.
---@param first integer
---@param last integer
---@return co.LineRange?
function M.line_range(first, last)
  local file = disk.resolve(api.nvim_buf_get_name(0))
  if file ~= '' and vim.bo.buftype == '' and utf8.valid(file) then
    return { file = file, first = first, last = last }
  end
end

--- Returns the lines of the last visual selection.
---@param buf integer
---@return co.Context?
---@return string? missing
local function selection(buf)
  local first = api.nvim_buf_get_mark(buf, '<')[1]
  local last = api.nvim_buf_get_mark(buf, '>')[1]
  if first == 0 or last == 0 then
    return nil, ('nothing was selected in %s'):format(name_of(buf))
  end
  return selected(buf, first, last)
end

---@type table<integer, string>
local severities = { 'error', 'warning', 'info', 'hint' }

--- Returns the diagnostics of a buffer.
---@param buf integer
---@return co.Context?
---@return string? missing
local function diagnostics(buf)
  local lines = {}
  for _, item in ipairs(vim.diagnostic.get(buf)) do
    lines[#lines + 1] = ('%s:%d:%d: %s: %s'):format(
      name_of(buf),
      item.lnum + 1,
      item.col + 1,
      severities[
        item.severity --[[@as integer]]
      ] or 'error',
      (item.message:gsub('\n', ' '))
    )
  end
  if #lines == 0 then
    return nil, ('%s has none'):format(name_of(buf))
  end
  return { name = '@diagnostics ' .. name_of(buf), text = table.concat(lines, '\n') }
end

--- Returns the entries of the quickfix list.
---@return co.Context?
---@return string? missing
local function quickfix()
  local lines = {}
  for _, item in ipairs(vim.fn.getqflist()) do
    local where = item.bufnr > 0 and ('%s:%d:%d: '):format(name_of(item.bufnr), item.lnum, item.col)
      or ''
    lines[#lines + 1] = where .. item.text
  end
  if #lines == 0 then
    return nil, 'the quickfix list is empty'
  end
  return { name = '@quickfix', text = table.concat(lines, '\n') }
end

--- Returns the difference between a buffer and its file.
---@param buf integer
---@return co.Context?
---@return string? missing
local function unsaved(buf)
  local name = name_of(buf)
  local diff = vim.bo[buf].modified and vim.diff(disk.saved(buf), disk.unsaved(buf), { ctxlen = 3 })
    or ''
  if diff == '' then
    return nil, ('%s has no unsaved changes'):format(name)
  end
  local text = ('--- %s (saved)\n+++ %s (in the editor)\n%s'):format(name, name, diff)
  return { name = '@unsaved ' .. name, text = text }
end

--- Returns the text of a file. If the editor has it open, the text has no final end of line.
---@param full string absolute path
---@return string? text
---@return integer? size bytes of the whole file
local function file(full)
  local open = disk.buffer(full)
  if open then
    local text, size = limit.lines(open, 1, api.nvim_buf_line_count(open))
    return text:sub(1, -2), size - 1
  end
  return disk.read(full, limit.LONGEST + 1), vim.fn.getfsize(full)
end

--- Returns the last run of `:Co!`: its command, its output and its status.
---@return co.Context?
---@return string? missing
local function output()
  local run = require('co.run').last()
  local block = run and require('co.run.shell_buffer').block(run)
  local first, tail = nil, nil
  if block then
    first, tail = block:content()
  end
  if not run then
    return nil, 'nothing was run with :Co!'
  elseif not block or not first or not tail then
    return nil, 'the shell buffer does not have the output of the last run'
  end
  local lines = api.nvim_buf_get_lines(block.buf, first, tail, false)
  table.insert(lines, 1, '$ ' .. run.command)
  lines[#lines + 1] = run.running and 'it still runs' or run.status
  return { name = '@output', text = table.concat(lines, '\n') }
end

--- Returns the absolute path of a file.
---@param path string
---@param cwd string
---@return string
local function absolute(path, cwd)
  -- A `$` is a part of the name, not a variable.
  local full = vim.fs.normalize(path, { expand_env = false })
  return full:sub(1, 1) == '/' and full or cwd .. '/' .. full
end

--- Returns the path with as much of the text after it as makes the longest path that exists. Otherwise it is without the end
--- of a sentence.
---@param path string
---@param rest string
---@param cwd string
---@return string
local function longest_path(path, rest, cwd)
  local longer = path .. rest
  local plain = path:gsub('[.?!]+$', '')
  for length = #longer, #plain, -1 do
    local ends = length == #longer or longer:find('^[,;).?!]', length + 1)
    if ends and vim.uv.fs_stat(absolute(longer:sub(1, length), cwd)) then
      return longer:sub(1, length)
    end
  end
  return plain
end

--- Returns the context of a file.
---@param path string
---@param cwd string
---@return co.Context?
---@return string? missing
local function file_context(path, cwd)
  local full = absolute(path, cwd)
  local name = '@file:' .. path
  local image, missing = image_context.file(name, full)
  if image or missing then
    return image, missing
  end
  local content, size = file(full)
  if not content then
    return nil, vim.uv.fs_stat(full) and 'it is no file' or 'there is no such file'
  end
  return { name = name, text = content, size = size }
end

--- The words that are complete, or that a text follows, and what they attach.
---@type table<string, string>
M.about = {
  ['@buffer'] = 'the file of your last window',
  ['@selection'] = 'the last visual selection there',
  ['@diagnostics'] = 'the diagnostics of that file',
  ['@quickfix'] = 'the quickfix list',
  ['@diff'] = 'the changes that git knows',
  ['@unsaved'] = 'the unsaved changes of that file',
  ['@output'] = 'the last run of :Co!',
  ['@clipboard'] = 'the clipboard, also an image',
  ['@git:'] = 'a commit, as in @git:HEAD~1',
  ['@search:'] = 'the lines that contain a text',
  ['@file:'] = 'a file',
  ['@lsp:'] = 'a name, as your language servers know it',
}

---@alias co.context.Done fun(context?: co.Context, missing?: string)

--- Makes a reader of a function that returns its context.
---@generic T
---@param read fun(of: T, cwd: string): co.Context?, string?
---@return fun(of: T, cwd: string, done: co.context.Done)
local function at_once(read)
  return function(of, cwd, done)
    done(read(of, cwd))
  end
end

--- They call `done` at once or later, since Neovim does not wait for other programs.
---@type table<string, fun(text: string, cwd: string, done: co.context.Done)>
local readers_of_text = {
  file = at_once(file_context),
  git = git_context.show,
  search = git_context.search,
  lsp = function(name, _, done)
    lsp_context.symbol(name, done)
  end,
}

---@type table<string, fun(buf: integer, cwd: string, done: co.context.Done)>
local readers = {
  buffer = at_once(function(buf)
    return lines_of('@buffer ' .. name_of(buf), buf, 1, api.nvim_buf_line_count(buf))
  end),
  selection = at_once(selection),
  diagnostics = at_once(diagnostics),
  quickfix = at_once(quickfix),
  unsaved = at_once(unsaved),
  output = at_once(output),
  clipboard = at_once(image_context.clipboard),
  diff = function(_, cwd, done)
    git_context.diff(cwd, done)
  end,
}

--- Returns the word that adds a context: `@buffer` for `@buffer src/app.py`.
---@param context co.Context
---@return string
local function word_of(context)
  local name = context.name
  return name:match('^@file:') and name or name:match('^%S+') or name
end

--- Calls `done` with the contexts for the words with `@` in `text`: at once, unless other programs are asked.
---@param text string
---@param given? co.Context[] contexts that are added in any case
---@param range? co.Context the context for `@selection`, instead of the last visual selection
---@param done fun(contexts: co.Context[])
function M.gather(text, given, range, done)
  ---@type table<string, boolean>
  local seen = {}
  for _, context in ipairs(given or {}) do
    seen[word_of(context)] = true
  end
  local buf = last_window.buffer()
  local cwd = vim.fn.getcwd()
  -- Each word, in the order of the text, with its context or the reason why there is none.
  ---@type { word: string, context?: co.Context, missing?: string }[]
  local slots = {}
  -- The words that have neither yet, and one for the loop below.
  local open = 1
  local function finish()
    open = open - 1
    if open > 0 then
      return
    end
    local found, left_out = {}, {}
    for _, slot in ipairs(slots) do
      if slot.context then
        found[#found + 1] = slot.context
      else
        left_out[#left_out + 1] = ('%s (%s)'):format(slot.word, slot.missing)
      end
    end
    if #left_out > 0 then
      notify.warn('left out: ' .. table.concat(left_out, ', '))
    end
    done(limit.fit(vim.list_extend(found, given or {})))
  end
  ---@param word string
  ---@param read fun(done: co.context.Done)
  local function add(word, read)
    if seen[word] then
      return
    end
    seen[word] = true
    local slot = { word = word }
    slots[#slots + 1] = slot
    open = open + 1
    local settled = false
    local ok, problem = pcall(read, function(context, missing)
      settled = true
      if context and not context.image and not context.text:find('[^\n]') then
        context, missing = nil, 'it is empty'
      end
      slot.context, slot.missing = context, missing
      finish()
    end)
    if not ok and settled then
      error(problem, 0)
    elseif not ok then
      -- The other contexts and the prompt still go.
      slot.missing = 'it cannot be read: ' .. tostring(problem):gsub('^.-:%d+: ', '')
      finish()
    end
  end
  -- A backslash before a blank makes it a part of the name.
  local words = (' ' .. text):gsub('\\ ', ESCAPED)
  for word, rest in words:gmatch('[%s(]@([%w]+:?[^%s,;)]*)()') do
    local name, argument = word:gsub(ESCAPED, ' '):match('^(%a+):(.*)$')
    local read = name and readers_of_text[name]
    name = name or word:match('^%a+')
    if read and argument and name == 'file' then
      local after = words:match('^%S*', rest --[[@as integer]]) or ''
      after = after:sub(1, LONGEST_PATH):gsub(ESCAPED, ' ')
      argument = longest_path(argument, after, cwd)
    elseif read and argument then
      -- The end of a sentence.
      argument = argument:gsub('[.?!]+$', '')
    end
    if read and argument and argument ~= '' then
      add(('@%s:%s'):format(name, argument), function(add_context)
        read(argument, cwd, add_context)
      end)
    elseif readers[name] then
      add('@' .. name, function(add_context)
        if range and word_of(range) == '@' .. name then
          return add_context(range)
        end
        readers[name](buf, cwd, add_context)
      end)
    end
  end
  finish()
end

return M
