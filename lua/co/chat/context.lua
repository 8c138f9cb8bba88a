--- The contexts of a prompt: the text that `@buffer` and other words add to it.
local M = {}

local api = vim.api
local async = require('co.ui.async')
local image_context = require('co.chat.image_context')
local lsp_context = require('co.chat.lsp_context')
local disk = require('co.ui.file_text')
local last_window = require('co.ui.last_window')
local limit = require('co.chat.context_limit')
local notify = require('co.ui.notify')
local printable = require('co.ui.printable')
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

--- Returns the files of buffers. A buffer without a file has none.
---@param bufs integer[]
---@return string[]
local function files_of(bufs)
  local files = {}
  for _, buf in ipairs(bufs) do
    local name = api.nvim_buf_get_name(buf)
    if vim.bo[buf].buftype == '' and name ~= '' then
      files[#files + 1] = name
    end
  end
  return files
end

--- Returns lines of a buffer as a context.
---@param name string
---@param buf integer
---@param first integer
---@param last integer
---@return co.Context
local function lines_of(name, buf, first, last)
  local text, size = limit.lines(buf, first, last)
  return { name = name, text = text, size = size, files = files_of({ buf }) }
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

--- Returns the last visual selection of a buffer as a context if it does not consist of whole lines.
---@param buf integer
---@return co.Context?
local function selected_part(buf)
  return api.nvim_buf_call(buf, function()
    local mode, from, to = vim.fn.visualmode(), vim.fn.getpos("'<"), vim.fn.getpos("'>")
    if mode == '' or mode == 'V' then
      return nil
    end
    -- The text may have changed since: then the columns may not exist.
    local exists, lines = pcall(vim.fn.getregion, from, to, { type = mode })
    if not exists then
      return nil
    end
    local name = name_of(buf)
    local range = ('%d:%d-%d:%s'):format(
      from[2],
      from[3],
      to[2],
      to[3] < vim.v.maxcol and to[3] or '$'
    )
    return {
      name = ('@selection %s:%s%s'):format(name, range, mode == 'v' and '' or ' (a block)'),
      text = table.concat(lines, '\n'),
      files = files_of({ buf }),
      lines = limit.lines(buf, from[2], to[2]),
    }
  end)
end

--- Returns lines of the current buffer as a context, for `:{range}Co`. If the person typed the range of the last visual
--- selection, it is this selection.
---@param first integer
---@param last integer
---@return co.Context
function M.range(first, last)
  local buf = api.nvim_get_current_buf()
  local typed = vim.startswith(vim.fn.histget('cmd', -1), "'<,'>")
  local marked = first == vim.fn.line("'<") and last == vim.fn.line("'>")
  return typed and marked and selected_part(buf) or selected(buf, first, last)
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

--- Returns the last visual selection.
---@param buf integer
---@return co.Context?
---@return string? missing
local function selection(buf)
  local first = api.nvim_buf_get_mark(buf, '<')[1]
  local last = api.nvim_buf_get_mark(buf, '>')[1]
  if first == 0 or last == 0 then
    return nil, ('nothing was selected in %s'):format(name_of(buf))
  end
  return selected_part(buf) or selected(buf, first, last)
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
  return {
    name = '@diagnostics ' .. name_of(buf),
    -- A message may quote the file.
    files = files_of({ buf }),
    text = table.concat(lines, '\n'),
  }
end

--- Returns the entries of the quickfix list.
---@return co.Context?
---@return string? missing
local function quickfix()
  local lines = {}
  ---@type table<integer, true>
  local bufs = {}
  for _, item in ipairs(vim.fn.getqflist()) do
    bufs[item.bufnr] = item.bufnr > 0 or nil
    local where = item.bufnr > 0 and ('%s:%d:%d: '):format(name_of(item.bufnr), item.lnum, item.col)
      or ''
    lines[#lines + 1] = where .. item.text
  end
  if #lines == 0 then
    return nil, 'the quickfix list is empty'
  end
  -- An entry may quote its file.
  local files = files_of(vim.tbl_keys(bufs))
  table.sort(files)
  return { name = '@quickfix', files = files, text = table.concat(lines, '\n') }
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
  return { name = '@unsaved ' .. name, text = text, files = files_of({ buf }) }
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

--- Extends a path with the text after it, to the longest path that exists. If no such path exists, returns the path
--- without the punctuation at the end of a sentence.
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

--- The words that name a context, each with a description. A text must follow a word that ends with a colon.
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
  ['@skill:'] = 'the text of a skill that you trust',
  ['@mcp:'] = 'a resource of a tool server, as in @mcp:server:uri',
  ['@file:'] = 'a file',
  ['@lsp:'] = 'a name, as your language servers know it',
}

--- A word of a prompt that names a context.
---@class (exact) co.ContextWord
---@field name string the name of the context
---@field argument string the text after the colon
---@field cwd string
---@field buf integer the buffer of the last window
---@field read co.ContextReader

--- Returns a context that the backend reads, or the reason why there is none. Without both, the person cancelled.
---@async
---@param word co.ContextWord
---@param query co.ContextQuery
---@return co.Context?
---@return string? missing
local function from_backend(word, query)
  local read = word.read(word.name, query)
  if read.cancelled or read.problem then
    return nil, read.problem
  end
  local name = word.name .. (read.note and (' (%s)'):format(read.note) or '')
  return { name = name, text = read.text or '', size = read.size, image = read.image }
end

--- The functions that read contexts. They return a context, or the reason why there is none. They may wait for another
--- program: they are async, so Neovim does not wait.
---@type table<string, async fun(word: co.ContextWord): co.Context?, string?>
local readers_of_text = {
  -- A file that is open has the text of the editor.
  file = function(word)
    local full = absolute(word.argument, word.cwd)
    local open = disk.buffer(full)
    if not open then
      return from_backend(word, { kind = 'file', path = full })
    end
    local text, size = limit.lines(open, 1, api.nvim_buf_line_count(open))
    -- The last line of a context has no end.
    return { name = word.name, text = text:sub(1, -2), size = size - 1, files = { full } }
  end,
  git = function(word)
    return from_backend(word, { kind = 'commit', revision = word.argument })
  end,
  search = function(word)
    return from_backend(word, { kind = 'search', text = word.argument })
  end,
  skill = function(word)
    return from_backend(word, { kind = 'skill', name = word.argument })
  end,
  mcp = function(word)
    local server, uri = word.argument:match('^([%w_-]+):(.+)$')
    if not server then
      return nil, 'a resource is @mcp:SERVER:ADDRESS'
    end
    return from_backend(word, { kind = 'resource', server = server, uri = uri })
  end,
  lsp = function(word)
    local query, missing = lsp_context.places(word.argument)
    if not query then
      return nil, missing
    end
    return from_backend(word, query)
  end,
}

---@type table<string, async fun(word: co.ContextWord): co.Context?, string?>
local readers = {
  buffer = function(word)
    local last = api.nvim_buf_line_count(word.buf)
    return lines_of('@buffer ' .. name_of(word.buf), word.buf, 1, last)
  end,
  selection = function(word)
    return selection(word.buf)
  end,
  diagnostics = function(word)
    return diagnostics(word.buf)
  end,
  quickfix = quickfix,
  unsaved = function(word)
    return unsaved(word.buf)
  end,
  output = output,
  clipboard = image_context.clipboard,
  diff = function(word)
    return from_backend(word, { kind = 'diff' })
  end,
}

--- Returns the word that adds a context: `@buffer` for `@buffer src/app.py`.
---@param context co.Context
---@return string
local function word_of(context)
  local name = context.name
  return name:match('^@file:') and name or name:match('^%S+') or name
end

--- Returns the words with `@` in a text, each with its name and the text after its colon.
---@param text string
---@param cwd string
---@return fun(): string?, string?
local function words_of(text, cwd)
  -- A backslash before a blank makes it a part of the name.
  local words = (' ' .. text):gsub('\\ ', ESCAPED)
  local next_word = words:gmatch('[%s(]@([%w]+:?[^%s,;)]*)()')
  return function()
    local word, rest = next_word()
    if not word then
      return nil
    end
    local name, argument = word:gsub(ESCAPED, ' '):match('^(%a+):(.*)$')
    if not name or not argument or not readers_of_text[name] then
      return word:match('^%a+') or '', nil
    elseif name == 'file' then
      local after = words:match('^%S*', rest --[[@as integer]]) or ''
      after = after:sub(1, LONGEST_PATH):gsub(ESCAPED, ' ')
      return name, longest_path(argument, after, cwd)
    end
    -- The end of a sentence.
    return name, (argument:gsub('[.?!]+$', ''))
  end
end

--- A context that a prompt names.
---@class (exact) co.WantedContext
---@field word string
---@field read async fun(): co.Context?, string?

--- A context, or the reason why there is none. Without both, the person cancelled.
---@class (exact) co.FoundContext
---@field word string
---@field context? co.Context
---@field missing? string

--- Reads a context. If the context has the editor's text of files, asks the backend whether the model may get this
--- text.
---@async
---@param wanted co.WantedContext
---@param read co.ContextReader
---@return co.FoundContext
local function read_one(wanted, read)
  local context, missing = wanted.read()
  if not context then
    return { word = wanted.word, missing = missing }
  elseif not context.image and not context.text:find('[^\n]') then
    return { word = wanted.word, missing = 'it is empty' }
  elseif not (context.files or {})[1] then
    return { word = wanted.word, context = context }
  end
  local text = printable.head(context.text, limit.LONGEST)
  local query = { kind = 'text', paths = context.files, text = text, lines = context.lines }
  local answer = read(wanted.word, query)
  if answer.cancelled or answer.problem then
    return { word = wanted.word, missing = answer.problem }
  elseif answer.text then
    context.name = ('%s (%s)'):format(context.name, answer.note or '')
    context.text = answer.text
  end
  return { word = wanted.word, context = context }
end

--- Returns the contexts that were read, cut to the limits of a prompt. Returns nil if the person cancelled. Shows a
--- notice with the names of the missing contexts.
---@param all co.FoundContext[]
---@return co.Context[]?
local function found_among(all)
  local found, left_out = {}, {}
  for _, read in ipairs(all) do
    if read.context then
      found[#found + 1] = read.context
    elseif read.missing then
      left_out[#left_out + 1] = ('%s (%s)'):format(read.word, read.missing)
    else
      return nil
    end
  end
  if #left_out > 0 then
    notify.warn('left out: ' .. table.concat(left_out, ', '))
  end
  return limit.fit(found)
end

--- A prompt whose contexts are read.
---@class (exact) co.ContextsWanted
---@field text string
---@field read co.ContextReader
---@field extra? co.Context[] contexts that are added in any case
---@field range? co.Context the context for `@selection`, instead of the last visual selection

--- Returns the contexts that a prompt names, in their order, and then the extra ones.
---@param prompt co.ContextsWanted
---@return co.WantedContext[]
local function wanted_by(prompt)
  local buf, cwd, range = last_window.buffer(), vim.fn.getcwd(), prompt.range
  ---@type table<string, boolean>
  local seen = {}
  ---@type co.WantedContext[], co.WantedContext[]
  local wanted, extra = {}, {}
  for _, context in ipairs(prompt.extra or {}) do
    seen[word_of(context)] = true
    extra[#extra + 1] = {
      word = word_of(context),
      read = function()
        return context
      end,
    }
  end
  for name, argument in words_of(prompt.text, cwd) do
    local whole = argument and ('@%s:%s'):format(name, argument) or '@' .. name
    local among = argument and readers_of_text or readers
    local reader = argument ~= '' and among[name]
    if reader and not seen[whole] then
      seen[whole] = true
      local word =
        { name = whole, argument = argument or '', cwd = cwd, buf = buf, read = prompt.read }
      wanted[#wanted + 1] = {
        word = whole,
        read = function()
          if range and word_of(range) == whole then
            return range
          end
          return reader(word)
        end,
      }
    end
  end
  return vim.list_extend(wanted, extra)
end

--- Returns the contexts for the words with `@` in a text. Waits only if other programs must answer. Returns nil if the
--- person cancels.
---@async
---@param prompt co.ContextsWanted
---@return co.Context[]? contexts
function M.gather(prompt)
  local all = async.map(wanted_by(prompt), function(wanted)
    return read_one(wanted, prompt.read)
  end, function(wanted, problem)
    -- The other contexts and the prompt still go.
    local missing = 'it cannot be read: ' .. problem:gsub('^.-:%d+: ', '')
    return { word = wanted.word, missing = missing }
  end)
  return found_among(all)
end

return M
