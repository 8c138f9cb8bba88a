--- Replaces lines of a buffer, so that it has exactly the approved text.
local M = {}

local api = vim.api
local disk = require('co.ui.file_text')

--- The lines of a text, and whether the last one ends with a line break.
---@class (exact) co.BufferLines
---@field lines string[]
---@field final boolean

--- Returns the number of bytes that two strings have in common at their starts.
---@param one string
---@param other string
---@return integer
local function common(one, other)
  local length = 0
  while length < #one and one:byte(length + 1) == other:byte(length + 1) do
    length = length + 1
  end
  return length
end

--- Replaces only the characters of a line that differ, so that marks and the cursor stay.
---@param buf integer
---@param row integer
---@param new string
local function replace_in_line(buf, row, new)
  local old = api.nvim_buf_get_lines(buf, row, row + 1, true)[1]
  local start = common(old, new)
  if start == #old and start == #new then
    return
  end
  if start < #old then
    start = start + vim.str_utf_start(old, start + 1)
  end
  local old_rest, new_rest = old:sub(start + 1), new:sub(start + 1)
  local kept = common(old_rest:reverse(), new_rest:reverse())
  -- Only whole characters are kept.
  while kept > 0 and vim.str_utf_start(old_rest, #old_rest - kept + 1) ~= 0 do
    kept = kept - 1
  end
  local text = new_rest:sub(1, #new_rest - kept)
  api.nvim_buf_set_text(buf, row, start, row, #old - kept, { text })
end

--- Returns the lines of a buffer. An empty last line without a line break is the line break of the line before.
---@param buf integer
---@return co.BufferLines
local function lines_of(buf)
  local lines, final = api.nvim_buf_get_lines(buf, 0, -1, true), vim.bo[buf].endofline
  if disk.is_empty(buf) then
    return { lines = {}, final = true }
  end
  if not final and lines[#lines] == '' then
    lines[#lines] = nil
    final = true
  end
  return { lines = lines, final = final }
end

--- Returns lines after replacements.
---@param old string[]
---@param replacements co.Replacement[]
---@return string[]
local function replaced(old, replacements)
  local new, at = {}, 0
  for _, one in ipairs(replacements) do
    vim.list_extend(new, old, at + 1, one.start)
    vim.list_extend(new, one.lines)
    at = one['end']
  end
  return vim.list_extend(new, old, at + 1)
end

--- Gives a buffer a whole text.
---@param buf integer
---@param text co.BufferLines
local function set_all(buf, text)
  api.nvim_buf_set_lines(buf, 0, -1, true, text.lines)
  vim.bo[buf].endofline = text.final
end

--- Returns the marks that a person set in a buffer, by their rows. Neovim drops the marks of a line that it replaces in part.
---@param buf integer
---@return table<integer, { name: string, column: integer }[]>
local function marks_of(buf)
  local marks = {}
  for _, mark in ipairs(vim.list_extend(vim.fn.getmarklist(buf), vim.fn.getmarklist())) do
    local name = mark.mark:match("^'(%a)$")
    if name and mark.pos[1] == buf then
      local row = mark.pos[2] - 1
      marks[row] = marks[row] or {}
      table.insert(marks[row], { name = name, column = mark.pos[3] - 1 })
    end
  end
  return marks
end

--- Replaces lines of a buffer, from the last to the first.
---@param buf integer
---@param replacements co.Replacement[]
local function set_some(buf, replacements)
  local marks = marks_of(buf)
  for index = #replacements, 1, -1 do
    local first, last = replacements[index].start, replacements[index]['end']
    local lines = replacements[index].lines
    local both = math.min(last - first, #lines)
    api.nvim_buf_set_lines(buf, first + both, last, true, vim.list_slice(lines, both + 1))
    for offset = 0, both - 1 do
      local row, line = first + offset, lines[offset + 1]
      replace_in_line(buf, row, line)
      for _, mark in ipairs(marks[row] or {}) do
        api.nvim_buf_set_mark(buf, mark.name, row + 1, math.min(mark.column, #line), {})
      end
    end
  end
end

--- Replaces lines of a buffer. If the buffer then does not have the text that it must have, puts the old text back.
---@param buf integer
---@param replacements co.Replacement[]
---@param final boolean whether the new text ends with a line break
---@return string? problem
function M.replace(buf, replacements, final)
  local old, modified = lines_of(buf), vim.bo[buf].modified
  local new = { lines = replaced(old.lines, replacements), final = final }
  local ok, problem = pcall(function()
    if #old.lines == 0 or #new.lines == 0 then
      set_all(buf, new)
      return
    end
    if #old.lines < api.nvim_buf_line_count(buf) then
      api.nvim_buf_set_lines(buf, -2, -1, true, {})
    end
    set_some(buf, replacements)
    if vim.bo[buf].endofline ~= final then
      vim.bo[buf].endofline = final
    end
  end)
  local now = lines_of(buf)
  if ok and (now.final == final or #new.lines == 0) and vim.deep_equal(now.lines, new.lines) then
    return nil
  end
  set_all(buf, old)
  vim.bo[buf].modified = modified
  if not ok then
    error(problem, 0)
  end
  return 'its buffer took another text than the approved one, so the old text is back'
end

return M
