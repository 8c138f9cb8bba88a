--- Folds a long command to its first lines, and the part that co asks about.
local M = {}

---@class (exact) co.FoldedCommand
---@field lines { text: string, span?: [integer, integer] }[] with the bytes that co asks about, end exclusive
---@field more? string the amount that is left out

--- Returns the part of a span that lies in some bytes of a text.
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

--- Returns one row of the command around the start of a span.
---@param command string
---@param span [integer, integer]
---@param columns integer
---@return { text: string, span?: [integer, integer] }
local function excerpt(command, span, columns)
  local above = vim.split(command:sub(1, span[1]), '\n', { plain = true })
  local first = #above[#above]
  local line = vim.split(command:sub(span[1] - first + 1), '\n', { plain = true })[1]
  local chars = vim.fn.strchars(line:sub(1, first))
  local skipped = math.max(0, chars - math.floor(columns / 4))
  local text = vim.fn.strcharpart(line, skipped, columns - 2)
  local at = span[1] - first + #vim.fn.strcharpart(line, 0, skipped)
  local part = inside(span, at, #text)
  local mark = '… '
  return { text = mark .. text, span = part and { part[1] + #mark, part[2] + #mark } }
end

--- Returns the lines of a command.
---@param command string
---@param span? [integer, integer] the bytes that co asks about, end exclusive
---@param size? { rows: integer, columns: integer } the most rows to show, and their characters; all by default
---@return co.FoldedCommand
function M.fold(command, span, size)
  ---@type co.FoldedCommand
  local folded = { lines = {} }
  local lines = vim.split(command, '\n', { plain = true })
  local left, at = size and size.rows or #command + 1, 0
  local columns = size and size.columns or 80
  for index, line in ipairs(lines) do
    if left <= 0 then
      local count = #lines - index + 1
      folded.more = count == 1 and '1 more line' or ('%d more lines'):format(count)
      break
    end
    local chars = vim.fn.strchars(line)
    local text = line
    if chars > left * columns then
      text = vim.fn.strcharpart(line, 0, left * columns --[[@as integer]]) .. '…'
      folded.more = ('%d more characters'):format(vim.fn.strchars(command:sub(at + #text - 2)))
    end
    folded.lines[#folded.lines + 1] = { text = text, span = inside(span, at, #text) }
    if folded.more then
      break
    end
    left = left - math.max(1, math.ceil(chars / columns))
    at = at + #line + 1
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
