--- The messages that `:Co /log` shows: Lua errors, notices in full, and the standard error of the backend.
local M = {}

local printable = require('co.ui.printable')

local KEPT = 500
-- The most bytes of a text.
local LONGEST = 64 * 1024

---@type string[]
local lines = {}

--- Adds each line of `text` with the time and its source. A long line takes several. The oldest lines go.
---@param source string
---@param text string
function M.add(source, text)
  local stamp = ('%s %s: '):format(os.date('%H:%M:%S'), source)
  local count = 0
  for line in printable.head(text, LONGEST):gmatch('[^\n]+') do
    while line ~= '' and count < KEPT do
      local part = printable.head(line, printable.LONGEST_LINE)
      lines[#lines + 1], count = stamp .. part, count + 1
      line = line:sub(#part + 1)
    end
  end
  if #lines > KEPT then
    lines = vim.list_slice(lines, #lines - KEPT + 1)
  end
end

--- Returns the messages, the oldest first.
---@return string[]
function M.lines()
  return lines
end

return M
