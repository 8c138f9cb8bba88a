--- Finds and opens the files that output and answers name.
local M = {}

local api = vim.api
local disk = require('co.ui.file_text')
local focus = require('co.ui.focus')
local guarded = require('co.ui.guarded')
local notify = require('co.ui.notify')
local printable = require('co.ui.printable')
local windows = require('co.ui.windows')

-- Characters that neither begin nor end a name of a file if they stand beside another one.
local NAME = '^[%w_/.~%%+$\128-\255-]'
-- Searches end after so many places where a name may begin or end, and so many positions such as `:12`.
local MOST_EDGES, MOST_POSITIONS = 40, 20
-- The most bytes of a position.
local LONGEST_POSITION = 24

-- The start of the title of each list of `/review`.
local REVIEW = 'Co /review:'

---@class (exact) co.Location
---@field path string absolute
---@field line? integer
---@field column? integer

--- Returns the absolute path if the file exists.
---@param path string
---@param cwd string
---@return string? absolute
local function resolve(path, cwd)
  if path:sub(1, 1) == '~' then
    path = vim.fs.normalize(path, { expand_env = false })
  elseif path:sub(1, 1) ~= '/' then
    path = cwd .. '/' .. path
  end
  return vim.uv.fs_stat(path) and vim.fs.normalize(path, { expand_env = false }) or nil
end

--- Reads the position after a path: `:12:5`, `(12,5)`, `", line 12`, or `#L12` as in links to lines of a forge.
---@param text string
---@param after integer the byte after the path
---@return integer? line
---@return integer? column
---@return integer stop the last byte of the position
local function position(text, after)
  for _, pattern in ipairs({
    '^[:(](%d+)[:,](%d+)%)?',
    '^[:(](%d+)%)?',
    '^"?,? line (%d+)',
    '^#L(%d+)C(%d+)',
    '^#L(%d+)',
  }) do
    local _, stop, line, column = text:find(pattern, after)
    if stop then
      local number, offset = tonumber(line), tonumber(column)
      ---@cast number integer?
      ---@cast offset integer?
      return number, offset, stop
    end
  end
  return nil, nil, after - 1
end

--- Returns the bytes near `at` where a name of a file may begin or end. The name may have any characters in it.
---@param text string
---@param at integer
---@param step 1|-1 the direction of the search
---@return integer[] edges the nearest first
local function edges(text, at, step)
  local found = {}
  while at >= 1 and at <= #text and #found < MOST_EDGES do
    local here = text:sub(at, at)
    local beyond = text:sub(at + step, at + step)
    -- The mark at the end of a sentence is no part of a name.
    local ends = step == 1 and beyond == '.'
    if not here:find('^[%s%c]') and (ends or not beyond:find(NAME)) then
      found[#found + 1] = at
    end
    at = at + step
  end
  return found
end

--- Returns the longest part of the text that is the path of an existing file and has the byte `at` in it or in its
--- position.
---@param text string
---@param at integer
---@param cwd string
---@return co.Location?
function M.find_at(text, at, cwd)
  local best
  local longest = 0
  local starts = edges(text, at, -1)
  for _, stop in ipairs(edges(text, math.max(1, at - LONGEST_POSITION), 1)) do
    local line, column, reach = position(text, stop + 1)
    for index = #starts, 1, -1 do
      local length = stop - starts[index] + 1
      if reach < at or length <= longest then
        break
      end
      local path = resolve(text:sub(starts[index], stop), cwd)
      if path then
        best, longest = { path = path, line = line, column = column }, length
      end
    end
  end
  return best
end

--- Returns the existing file that `text` names at the byte `at`, else the first one with a line number.
---@param text string
---@param at integer 1-based
---@param cwd string
---@return co.Location?
function M.find(text, at, cwd)
  local found = M.find_at(text, at, cwd)
  if found then
    return found
  end
  local from = 1
  for _ = 1, MOST_POSITIONS do
    local start = text:find('["]?[:(,#][ L]?[%dl]', from)
    if not start then
      return nil
    end
    local location = start > 1 and M.find_at(text, start - 1, cwd)
    if location and location.line then
      return location
    end
    from = start + 1
  end
end

--- Returns a window of this tab page that shows a file of the person, or a new window.
---@return integer
local function target_window()
  local previous = vim.fn.win_getid(vim.fn.winnr('#'))
  local candidates = vim.list_extend({ previous }, api.nvim_tabpage_list_wins(0))
  for _, win in ipairs(candidates) do
    if win ~= 0 and api.nvim_win_is_valid(win) and not windows.is_float(win) then
      local buf = api.nvim_win_get_buf(win)
      local stays = vim.bo[buf].modified and not vim.o.hidden and vim.bo[buf].bufhidden ~= 'hide'
      if vim.bo[buf].buftype == '' and not vim.wo[win].winfixbuf and not stays then
        return win
      end
    end
  end
  return windows.split(
    api.nvim_create_buf(true, false),
    { side = 'right', size = math.floor(vim.o.columns / 2) }
  )
end

--- Opens a location in a window that shows files of the person.
---@param location co.Location
function M.open(location)
  -- `:edit` refuses a modified buffer and reads other buffers again.
  local buf = disk.buffer(location.path)
  local win = buf and windows.in_tabpage(buf) or target_window()
  guarded.go_to_window(win)
  local ok, problem
  if buf then
    ok, problem = pcall(guarded.set_buf, win, buf)
  else
    ok, problem = pcall(vim.cmd.edit, vim.fn.fnameescape(location.path))
  end
  if not ok then
    notify.error((tostring(problem):gsub('^.-:(E%d+:)', '%1')))
    return
  end
  if location.line then
    local last = api.nvim_buf_line_count(0)
    vim.cmd("normal! m'")
    api.nvim_win_set_cursor(
      0,
      { math.min(location.line, last), math.max((location.column or 1) - 1, 0) }
    )
  end
end

--- Opens the file under the cursor. Relative paths are relative to `cwd`.
---@param cwd string
---@return boolean opened
function M.open_at_cursor(cwd)
  local at = api.nvim_win_get_cursor(0)[2] + 1
  local location = M.find(api.nvim_get_current_line(), at, cwd)
  if not location then
    notify.info('no file under the cursor that exists below ' .. vim.fn.fnamemodify(cwd, ':~'))
    return false
  end
  M.open(location)
  return true
end

--- Returns true if a buffer has the name of a file, and not a name such as `term://` that a plugin or Neovim handles.
---
--- `term://` runs a command, even if there is a directory `term:`. 'errorformat' takes any word before a colon for a
--- name.
---@param buf integer
---@return boolean
local function names_file(buf)
  local name = buf > 0 and api.nvim_buf_get_name(buf) or ''
  return not name:find('^%a[%w+.-]*:')
end

--- Returns the locations in `lines`, parsed by 'errorformat', as entries of a quickfix list.
---@param lines string[]
---@param cwd string
---@param errorformat string
---@return vim.quickfix.entry[]
function M.parse(lines, cwd, errorformat)
  -- Neovim makes a blob of a string with a NUL byte.
  lines = vim.tbl_map(function(line)
    return (line:gsub('%z', ' '))
  end, lines)
  -- This entry makes relative paths relative to `cwd`.
  local parsed = vim.fn.getqflist({
    lines = vim.list_extend({ 'co: Entering directory `' .. cwd .. "'" }, lines),
    efm = "%Dco: Entering directory `%f'," .. errorformat,
  }).items
  return vim.tbl_filter(function(item)
    item.text = printable.line(item.text)
    return item.valid == 1 and names_file(item.bufnr)
  end, parsed)
end

--- Fills the quickfix list and opens it. If the person does something else by now, their window keeps the focus.
---@param title string
---@param items vim.quickfix.entry[]
function M.open_list(title, items)
  vim.fn.setqflist({}, ' ', { title = title, items = items })
  local here = not focus.awaited() and api.nvim_get_current_win()
  vim.cmd('botright copen')
  if here then
    guarded.go_to_window(here)
  end
end

--- Shows entries of the backend.
---@param message co.Quickfix
function M.list(message)
  local items = vim.tbl_map(function(entry)
    return { filename = entry.file, lnum = entry.line, text = printable.line(entry.text) }
  end, message.entries)
  local title = printable.line(message.title)
  if not message.update then
    M.open_list(title, items)
  elseif vim.startswith(vim.fn.getqflist({ title = 0 }).title, REVIEW) then
    vim.fn.setqflist({}, 'r', { title = title, items = items })
  end
end

return M
