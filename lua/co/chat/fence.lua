--- The fences of code blocks in markdown.
local M = {}

local printable = require('co.ui.printable')

--- Returns the fence that is open after `line`; nil if no fence is open. `open` is the fence that is open before
--- `line`.
---@param open? string
---@param line string
---@return string?
function M.after(open, line)
  if not (line:find('```', 1, true) or line:find('~~~', 1, true)) then
    return open
  end
  -- A line with more backticks after the fence is inline code.
  local mark = line:match('^%s*(```+)[^`]*$') or line:match('^%s*(~~~+)')
  if not open then
    return mark
  end
  local closes = mark and vim.startswith(mark, open) and printable.trim(line) == mark
  return not closes and open or nil
end

return M
