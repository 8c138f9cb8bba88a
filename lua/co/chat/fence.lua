--- The fences of code in markdown, line by line.
local M = {}

--- The fence that is open after `line`, where `open` was before it; nil is none.
---@param open? string
---@param line string
---@return string?
function M.after(open, line)
  -- What follows backticks may hold none: that would be code within a line.
  local mark = line:match('^%s*(```+)[^`]*$') or line:match('^%s*(~~~+)')
  if not open then
    return mark
  end
  local closes = mark and vim.startswith(mark, open) and vim.trim(line) == mark
  return not closes and open or nil
end

return M
