--- The messages that `:Co /log` shows: Lua errors, notices in full, and the standard error of the backend.
local M = {}

local KEPT = 500
-- The most bytes of a line.
local LONGEST = 4000

---@type string[]
local lines = {}

--- Adds each line of `text` with the time and its source. The oldest lines go.
---@param source string
---@param text string
function M.add(source, text)
  local stamp = os.date('%H:%M:%S')
  for line in vim.gsplit(text, '\n', { trimempty = true }) do
    local cut = #line > LONGEST and line:sub(1, LONGEST) .. ' …' or line
    lines[#lines + 1] = ('%s %s: %s'):format(stamp, source, cut)
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
