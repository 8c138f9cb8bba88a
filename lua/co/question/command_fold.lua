--- Shortens a long command to its first lines and the part that co asks about.
local M = {}

local printable = require('co.ui.printable')

-- The largest number of rows of a command in the large window, and the number of characters in a row.
local LARGE = { rows = 800, columns = 80 }
-- The largest number of bytes of a text whose lines are counted. For a longer text, its size is shown.
local COUNTED = 128 * 1024

---@class (exact) co.FoldedCommand
---@field lines { text: string, span?: [integer, integer] }[] with the bytes that co asks about, end exclusive
---@field more? string the amount that was left out

--- Returns the part of a span that lies in `length` bytes of a text from the byte `at` on. Returns nil if there is
--- none.
---@param span? [integer, integer] bytes of the whole text
---@param at integer the first byte
---@param length integer
---@return [integer, integer]? bytes from `at` on
local function inside(span, at, length)
  if not span then
    return nil
  end
  local from, to = math.max(span[1] - at, 0), math.min(span[2] - at, length)
  return from < to and { from, to } or nil
end

--- Returns the amount of a command after the byte `at`: the number of lines or characters, or the size of a long text.
---@param command string
---@param at integer
---@param unit 'line'|'character'
---@return string
local function rest_of(command, at, unit)
  if #command - at > COUNTED then
    return printable.size(#command - at) .. ' more'
  end
  local rest = command:sub(at + 1)
  local count = unit == 'line' and select(2, rest:gsub('\n', '')) + 1
    or #rest - select(2, rest:gsub('[\128-\191]', ''))
  return ('%d more %s%s'):format(count, unit, count == 1 and '' or 's')
end

--- Returns one row of the command around the start of a span.
---@param command string
---@param span [integer, integer]
---@param columns integer
---@return { text: string, span?: [integer, integer] }
local function excerpt(command, span, columns)
  -- A character has at most four bytes. The rest of a long line is not needed.
  local start = math.max(0, span[1] - columns * 4)
  local before = command:sub(start + 1, span[1])
  local lines = vim.split(before, '\n', { plain = true })
  before = lines[#lines]:gsub('^[\128-\191]+', ''):gsub('%z', '\1')
  local chars = vim.fn.strchars(before)
  local skipped = math.max(0, chars - math.floor(columns / 4))
  local after = vim.split(command:sub(span[1] + 1, span[1] + columns * 4), '\n', { plain = true })
  local line = before .. after[1]:gsub('%z', '\1')
  local text = vim.fn.strcharpart(line, skipped, columns - 2)
  local at = span[1] - #before + #vim.fn.strcharpart(line, 0, skipped)
  local part = inside(span, at, #text)
  local mark = '… '
  return { text = mark .. text, span = part and { part[1] + #mark, part[2] + #mark } }
end

--- Returns the first lines of a command.
---@param command string
---@param span? [integer, integer] the bytes that co asks about, end exclusive
---@param size? { rows: integer, columns: integer } the most rows to show, and their characters
---@return co.FoldedCommand
function M.fold(command, span, size)
  ---@type co.FoldedCommand
  local folded = { lines = {} }
  local rows, columns = (size or LARGE).rows, (size or LARGE).columns
  -- The bytes before the line.
  local at = 0
  while at <= #command and not folded.more do
    if rows <= 0 then
      folded.more = rest_of(command, at, 'line')
      break
    end
    local stop = command:find('\n', at + 1, true) or #command + 1
    -- A character has at most four bytes.
    local most = rows * columns * 4
    local text = printable.head(command:sub(at + 1, math.min(stop - 1, at + most + 4)), most)
    -- A function of Vim gets no NUL.
    text = text:gsub('%z', '\1')
    local chars = vim.fn.strchars(text)
    if chars > rows * columns or #text < stop - 1 - at then
      text = vim.fn.strcharpart(text, 0, rows * columns --[[@as integer]])
      folded.more = rest_of(command, at + #text, 'character')
      text = text .. '…'
    end
    folded.lines[#folded.lines + 1] = { text = text, span = inside(span, at, #text) }
    rows = rows - math.max(1, math.ceil(chars / columns))
    at = stop
  end
  local marked = vim.tbl_filter(function(line)
    return line.span ~= nil
  end, folded.lines)
  if span and span[1] < span[2] and folded.more and #marked == 0 then
    folded.lines[#folded.lines + 1] = excerpt(command, span, columns)
  end
  return folded
end

return M
