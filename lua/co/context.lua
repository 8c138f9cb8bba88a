--- What `@buffer` and the like in a prompt stand for, read from the editor.
local M = {}

local api = vim.api
local disk = require('co.disk')
local notify = require('co.notify')

-- The backend has a budget of its own; this keeps one message from being endless.
local LONGEST = 512 * 1024

-- Stands for an escaped blank; no prompt and no file's name has it.
local ESCAPED = '\1'

---@param name string
---@param text string
---@return co.Context
local function piece(name, text)
  if #text > LONGEST then
    -- Between two characters: half of one is no text.
    text = text:sub(1, LONGEST + vim.str_utf_start(text, LONGEST + 1))
      .. ('\n… cut after %d bytes'):format(LONGEST)
  end
  return { name = name, text = text }
end

---@param buf integer
---@return string
local function name_of(buf)
  local name = api.nvim_buf_get_name(buf)
  return name ~= '' and vim.fn.fnamemodify(name, ':~:.') or ('[buffer %d]'):format(buf)
end

---@param buf integer
---@param first integer
---@param last integer
---@return string
local function excerpt(buf, first, last)
  local lines = api.nvim_buf_get_lines(buf, first - 1, last, false)
  return ('%s:%d-%d\n```%s\n%s\n```'):format(
    name_of(buf),
    first,
    last,
    vim.bo[buf].filetype,
    table.concat(lines, '\n')
  )
end

--- Lines of the current buffer, as `:'<,'>Co` attaches them.
---@param first integer
---@param last integer
---@return co.Context
function M.range(first, last)
  return piece('@selection', excerpt(api.nvim_get_current_buf(), first, last))
end

---@param buf integer
---@return string?
local function selection(buf)
  local first = api.nvim_buf_get_mark(buf, '<')[1]
  local last = api.nvim_buf_get_mark(buf, '>')[1]
  if first == 0 or last == 0 then
    return nil
  end
  return excerpt(buf, first, last)
end

---@type table<integer, string>
local severities = { 'error', 'warning', 'info', 'hint' }

---@param buf integer
---@return string
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
  return #lines > 0 and table.concat(lines, '\n') or 'none'
end

---@return string
local function quickfix()
  local lines = {}
  for _, item in ipairs(vim.fn.getqflist()) do
    local where = item.bufnr > 0 and ('%s:%d:%d: '):format(name_of(item.bufnr), item.lnum, item.col)
      or ''
    lines[#lines + 1] = where .. item.text
  end
  return #lines > 0 and table.concat(lines, '\n') or 'empty'
end

--- What is not saved of a buffer yet.
---@param buf integer
---@return string
local function unsaved(buf)
  local diff = vim.bo[buf].modified and vim.diff(disk.saved(buf), disk.unsaved(buf), { ctxlen = 3 })
    or ''
  if diff == '' then
    return ('%s has no unsaved changes'):format(name_of(buf))
  end
  return ('--- %s (saved)\n+++ %s (in the editor)\n%s'):format(name_of(buf), name_of(buf), diff)
end

---@param path string
---@param cwd string
---@return string?
local function file(path, cwd)
  -- A `$` is a part of a name, such as that of a route.
  local full = vim.fs.normalize(path, { expand_env = false })
  if full:sub(1, 1) ~= '/' then
    full = cwd .. '/' .. full
  end
  local open = disk.buffer(full)
  if open then
    return table.concat(api.nvim_buf_get_lines(open, 0, -1, false), '\n')
  end
  return disk.read(full, LONGEST + 1)
end

--- The buffer a prompt speaks of: the one the chat was opened from.
---@param origin? integer
---@return integer
local function subject(origin)
  local win = origin
  if not win or not api.nvim_win_is_valid(win) then
    win = api.nvim_get_current_win()
  end
  local buf = api.nvim_win_get_buf(win)
  if not vim.bo[buf].filetype:match('^co%-') then
    return buf
  end
  local alternate = vim.fn.bufnr('#')
  return alternate > 0 and alternate or buf
end

--- The names that stand alone.
M.names = { '@buffer', '@selection', '@diagnostics', '@quickfix', '@diff' }

---@type table<string, fun(buf: integer): string?>
local readers = {
  buffer = function(buf)
    return excerpt(buf, 1, api.nvim_buf_line_count(buf))
  end,
  selection = selection,
  diagnostics = diagnostics,
  quickfix = quickfix,
  diff = unsaved,
}

--- Reads what `text` names with an `@`.
---@param text string
---@param origin? integer the person's window
---@param given? co.Context[] what goes along anyway, and is not read again
---@param range? co.Context what `@selection` stands for where it is not the last visual selection
---@return co.Context[]
function M.gather(text, origin, given, range)
  local found, seen = {}, {}
  for _, context in ipairs(given or {}) do
    seen[context.name] = true
  end
  local buf = subject(origin)
  local cwd = vim.fn.getcwd()
  ---@param name string
  ---@param content? string
  local function add(name, content)
    if seen[name] then
      return
    end
    seen[name] = true
    if content then
      found[#found + 1] = piece(name, content)
    else
      notify.warn(('%s is left out: there is none'):format(name))
    end
  end
  -- A backslash before a blank makes it a part of the name.
  local words = (' ' .. text):gsub('\\ ', ESCAPED)
  for before, word in words:gmatch('([%s(])@([%w]+:?[^%s,;)]*)') do
    local _ = before
    local path = word:gsub(ESCAPED, ' '):match('^file:(.+)$')
    local reader = readers[word:match('^%a+')]
    if path then
      path = path:gsub('[.?!]+$', function(tail)
        return vim.uv.fs_stat(path) and tail or ''
      end)
      add('@file:' .. path, file(path, cwd))
    elseif reader then
      local name = '@' .. word:match('^%a+')
      add(name, range and range.name == name and range.text or reader(buf))
    end
  end
  return vim.list_extend(found, given or {})
end

return M
