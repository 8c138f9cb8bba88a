--- Opens what a call of a chat is about: its file, or its output in a buffer.
local M = {}

local api = vim.api
local buffer = require('co.ui.buffer')
local guarded = require('co.ui.guarded')
local locations = require('co.ui.locations')
local output_block = require('co.ui.output_block')
local windows = require('co.ui.windows')

--- Returns the file that a line of a call names, such as `read a.lua  3-9`.
---@param text string
---@param cwd string
---@return co.Location?
local function named(text, cwd)
  local subject = text:gsub('  .*$', '')
  -- A name may have blanks.
  for _, name in ipairs({ subject, (subject:gsub('^%S+ ', '')) }) do
    local path = name:sub(1, 1) == '/' and name or cwd .. '/' .. name
    if (vim.uv.fs_stat(path) or {}).type == 'file' then
      return { path = vim.fs.normalize(path, { expand_env = false }) }
    end
  end
  local found = locations.find(text, 1, cwd)
  return found and vim.fn.isdirectory(found.path) == 0 and found or nil
end

--- Returns the place in a file that a line of a difference is about.
---@param lines string[] of the difference
---@param at integer the index of the line; less than 1 means the first change
---@param cwd string
---@return co.Location?
local function changed(lines, at, cwd)
  local path
  local line = 1
  -- The lines of the file before and after the change that are left of a hunk.
  ---@type number, number
  local old, new = 0, 0
  for index, text in ipairs(lines) do
    local sign = text:sub(1, 1)
    local in_hunk = old + new > 0 and sign ~= '\\'
    if not in_hunk then
      local name = text:match('^%+%+%+ b/(.*)')
      local removed, first, added = text:match('^@@ %-%d+,?(%d*) %+(%d+),?(%d*) @@')
      if name then
        path, line = name, 1
      elseif first then
        line = tonumber(first) --[[@as integer]]
        old, new = tonumber(removed) or 1, tonumber(added) or 1
      end
    end
    if index == at or at < 1 and in_hunk and sign ~= ' ' or index == #lines then
      local location = path and named(path, cwd)
      if location then
        location.line = math.max(line, 1)
      end
      return location
    end
    if in_hunk then
      old = old - (sign == '+' and 0 or 1)
      new = new - (sign == '-' and 0 or 1)
      line = line + (sign == '-' and 0 or 1)
    end
  end
end

--- Returns the place that the details of a call name, if the row is the title of the call.
---@param call co.ChatCall
---@param row integer
---@param cwd string
---@return co.Location?
function M.told(call, row, cwd)
  local found = row == call:row() and locations.find(call.line.details, 1, cwd) or nil
  return found and vim.fn.isdirectory(found.path) == 0 and found or nil
end

--- Returns the place in a file that a row of a call is about.
---@param call co.ChatCall
---@param row integer
---@param cwd string
---@return co.Location?
local function location_of(call, row, cwd)
  local offset = row - call:row()
  if call.line.diff then
    local at = row - call:first_output() + 1
    return changed(call:printed(), at, cwd) or named(call.line.text, cwd)
  end
  local text = offset > 0 and call.line.lead[offset - call.marked] or call.line.text
  local location = named(text, cwd)
  local told = M.told(call, row, cwd)
  if told and (not location or location.path == told.path) then
    return told
  end
  if location and not location.line then
    local range = offset > 0 and text:match('  (%d+)[^ ]*$') or call.line.details:match('^%d+')
    location.line = tonumber(range) --[[@as integer?]]
  end
  return location
end

--- Shows a buffer with an output in a new window. The key `q` closes the window.
---@param buf integer
local function show_below(buf)
  local win = windows.split(buf, { side = 'below', size = math.floor(vim.o.lines / 2) })
  windows.enter(win)
  buffer.map(buf, 'n', 'q', function()
    windows.hide(win)
  end, 'close the output')
end

--- Shows the output of a call in a window. If the chat skipped lines and a readable file has the whole output, opens
--- that file. Otherwise shows a new buffer with the lines that the chat has, and the number of skipped lines.
---@param call co.ChatCall
function M.show_output(call)
  local spill = call.line.spill
  if call.skipped > 0 and spill and vim.fn.filereadable(spill) == 1 then
    local file = vim.fn.bufadd(spill)
    vim.fn.bufload(file)
    vim.bo[file].modifiable = false
    show_below(file)
    return
  end
  local buf = api.nvim_create_buf(false, true)
  local lines = vim.deepcopy(call.line.lead)
  if call.skipped > 0 then
    lines[#lines + 1] = output_block.skipped_line(call.skipped)
  end
  buffer.set_lines(buf, 0, -1, vim.list_extend(lines, call:printed()))
  vim.bo[buf].bufhidden = 'wipe'
  guarded.set_option(buf, 'filetype', call.line.diff and 'diff' or '')
  pcall(api.nvim_buf_set_name, buf, 'co://output/' .. buf)
  buffer.lock(buf)
  show_below(buf)
end

--- Opens the file that a row of a call is about, else the output of the call.
---@param call co.ChatCall
---@param row integer
---@param cwd string
function M.open(call, row, cwd)
  local location = location_of(call, row, cwd)
  if location then
    locations.open(location)
  else
    M.show_output(call)
  end
end

return M
