--- Text from outside, in a form that every part of Neovim takes, and other plugins too.
local M = {}

--- The most bytes of a line that co shows. Neovim takes long to measure and to draw a longer one.
M.LONGEST_LINE = 2000

-- The most open lists and quotes. Neovim's parser for markdown crashes at about 250.
local NESTING = 80

-- A line of a buffer has no line break, and a function of Vim gets no NUL.
local ESCAPES = { ['\n'] = '\\n', ['\r'] = '\\r', ['\0'] = '\\0' }

-- The control, zero-width and bidirectional characters of more than one byte, as ranges of code points. The backend has the same
-- (`is_hidden` of co_text).
local HIDDEN = {
  { 0x80, 0xa0 },
  { 0xad, 0xad },
  { 0x34f, 0x34f },
  { 0x61c, 0x61c },
  { 0x115f, 0x1160 },
  { 0x1680, 0x1680 },
  { 0x17b4, 0x17b5 },
  { 0x180b, 0x180f },
  { 0x2000, 0x200f },
  { 0x2028, 0x202f },
  { 0x205f, 0x206f },
  { 0x2800, 0x2800 },
  { 0x3000, 0x3000 },
  { 0x3164, 0x3164 },
  { 0xfe00, 0xfe0f },
  { 0xfeff, 0xfeff },
  { 0xffa0, 0xffa0 },
  { 0xfff0, 0xfffb },
  { 0x1d173, 0x1d17a },
  { 0xe0000, 0xe0fff },
}

-- A character of HIDDEN in UTF-8 begins with one of these bytes.
local MAYBE_HIDDEN = '[\194\205\216\225-\227\239\240\243][\128-\191]+'

--- Returns the escape of a control character.
---@param char string a byte
---@return string
local function escape(char)
  return ('\\u{%x}'):format(char:byte())
end

--- Returns the escape of a character of more than one byte; nil if the character is not hidden.
---@param char string
---@return string?
local function escape_hidden(char)
  local code = vim.fn.char2nr(char, true)
  for _, range in ipairs(HIDDEN) do
    if code >= range[1] and code <= range[2] then
      return ('\\u{%x}'):format(code)
    end
  end
end

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

--- Returns a text as one line for a list, a menu or a winbar: control, zero-width and bidirectional characters are escaped, as the
--- backend escapes them. See `line`.
---@param text string
---@return string
function M.label(text)
  local line = M.line(text)
  if not line:find('[%c\128-\255]') then
    return line
  end
  return (line:gsub('[\1-\8\11-\31\127]', escape):gsub(MAYBE_HIDDEN, escape_hidden))
end

--- Returns the first line of a text, cut if it is too long.
---@param text string
---@return string
function M.first_line(text)
  local stop = text:find('\n', 1, true) or #text + 1
  return M.line(text:sub(1, math.min(stop - 1, M.LONGEST_LINE + 1)))
end

--- Returns the first lines of a text, each as `line` makes it.
---@param text string
---@param rows number the most lines
---@param bytes integer the most bytes of all lines
---@return string[]
---@return integer left the bytes of the text after these lines
---@return boolean cut one of these lines is not whole
function M.lines(text, rows, bytes)
  ---@type string[]
  local lines = {}
  local last, at, cut = #text - (text:sub(-1) == '\n' and 1 or 0), 1, false
  while at <= last + 1 and #lines < rows and bytes > 0 do
    local stop = math.min(text:find('\n', at, true) or last + 1, last + 1)
    local length, most = stop - at, math.min(bytes, M.LONGEST_LINE)
    -- One byte more than it shows tells that there is more.
    lines[#lines + 1] = M.line(text:sub(at, at + math.min(length, most + 4) - 1), most)
    cut = cut or length > most
    at, bytes = stop + 1, bytes - math.min(length, most) - 1
  end
  return lines,
    math.max(last - at + 1, 0), --[[@as integer]]
    cut
end

--- Returns the byte of a line in front of which a backslash ends its nested lists and quotes, if there are too many.
---
--- A line opens at most as many as it has markers, below those that its indent continues.
---@param line string
---@return integer?
function M.too_deep(line)
  if #line < NESTING or not line:find('^[%s>*+%-%d]') then
    return nil
  end
  ---@type number, integer
  local depth, at = 0, 1
  while true do
    local _, last = line:find('^[ \t]+', at)
    if last then
      local _, tabs = line:sub(at, last):gsub('\t', '')
      depth = depth + (last - at + 1) / 2 + tabs * 1.5
      at = last + 1
    end
    local _, sign = line:find('^>', at)
    if not sign then
      _, sign = line:find('^[-*+]', at)
      sign = sign or select(2, line:find('^%d+[.)]', at))
      if not sign or line:find('^[^ \t]', sign + 1) then
        return nil
      end
    end
    if depth >= NESTING then
      return sign
    end
    depth, at = depth + 1, sign + 1
  end
end

--- Returns a text as one line for functions that other plugins replace, such as `vim.notify`: a `label`. They may take it for
--- markdown, whose parser neither crashes at this line nor takes long.
---@param text string
---@return string
function M.for_plugins(text)
  local line = M.label(text):gsub('!%[', '!\\[')
  local deep = M.too_deep(line)
  return deep and line:sub(1, deep - 1) .. '\\' .. line:sub(deep) or line
end

--- Returns a path as one line, relative to the home directory.
---@param path string
---@return string
function M.path(path)
  return vim.fn.fnamemodify(M.line(path), ':~')
end

--- Returns a text without the blanks at its ends. Unlike `vim.trim`, it takes no time that grows with the square of their number.
---@param text string
---@return string
function M.trim(text)
  return text:find('^%s*$') and '' or text:match('^%s*(.*%S)') --[[@as string]]
end

--- Returns a size as text, in the largest unit that fits, such as '1.5 KiB'. The backend uses the same form.
---@param bytes integer
---@return string
function M.size(bytes)
  for index, unit in ipairs({ 'TiB', 'GiB', 'MiB', 'KiB' }) do
    local of_unit = 1024 ^ (5 - index)
    if bytes >= of_unit then
      return (('%.1f'):format(bytes / of_unit):gsub('%.0$', '')) .. ' ' .. unit
    end
  end
  return bytes == 1 and '1 byte' or ('%d bytes'):format(bytes)
end

return M
