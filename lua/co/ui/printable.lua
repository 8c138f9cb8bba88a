--- Text from outside, in a form that every part of Neovim takes.
local M = {}

--- The most bytes of a line that co shows. Neovim takes long to measure and to draw a longer one.
M.LONGEST_LINE = 2000

-- A line of a buffer has no line break, and a function of Vim gets no NUL.
local ESCAPES = { ['\n'] = '\\n', ['\r'] = '\\r', ['\0'] = '\\0' }

--- Returns the first bytes of a text. A character is not cut.
---@param text string
---@param most integer
---@return string
function M.head(text, most)
  if #text <= most then
    return text
  end
  -- A character of UTF-8 has at most three bytes after the first one.
  for last = most, most - 3, -1 do
    local next = text:byte(last + 1)
    if next < 128 or next >= 192 then
      return text:sub(1, last)
    end
  end
  return text:sub(1, most)
end

--- Returns a text as one line, cut if it is too long.
---@param text string
---@param most? integer bytes
---@return string
function M.line(text, most)
  local line = M.head(text, most or M.LONGEST_LINE)
  local cut = #line < #text
  if line:find('[%z\n\r]') then
    line = line:gsub('[%z\n\r]', ESCAPES)
  end
  return cut and line .. '…' or line
end

--- Returns the first line of a text, cut if it is too long.
---@param text string
---@return string
function M.first_line(text)
  local stop = text:find('\n', 1, true) or #text + 1
  return M.line(text:sub(1, math.min(stop - 1, M.LONGEST_LINE + 1)))
end

--- Returns a path as one line, relative to the home directory.
---@param path string
---@return string
function M.path(path)
  return vim.fn.fnamemodify(M.line(path), ':~')
end

--- Returns a number of bytes for the person.
---@param bytes integer
---@return string
function M.size(bytes)
  if bytes < 1024 then
    return bytes == 1 and '1 byte' or ('%d bytes'):format(bytes)
  elseif bytes < 1024 * 1024 then
    return ('%.1f KiB'):format(bytes / 1024)
  end
  return ('%.1f MiB'):format(bytes / 1024 / 1024)
end

return M
