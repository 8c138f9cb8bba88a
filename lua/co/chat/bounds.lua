--- Bounds for text that goes into the buffer of a chat, so that it neither crashes nor blocks Neovim.
---
--- Any plugin may parse the buffer as markdown at any time. So the text itself stays within the bounds: it is changed before
--- it is in the buffer. The transcript keeps it as it was.
---
--- The module knows no highlights, chats or windows.
local M = {}

local api = vim.api
local printable = require('co.ui.printable')

-- The largest number of open images `![` in a paragraph. Each open image doubles the time of Neovim's parser.
local OPEN_IMAGES = 6
-- The largest number of bytes of a line. At each change, Neovim draws the whole line again, and plugins parse it again.
local LONGEST_LINE = 4000
-- The number of bytes at the end of a piece in which co looks for a space. The line is cut at such a space.
local NEAR = 200
-- The most bytes of a code block with a language. A parser of the language may take seconds for more.
local LONGEST_BLOCK = 16 * 1024
-- The most bytes of a prompt that is parsed.
local LONGEST_PROMPT = 64 * 1024

local marks = api.nvim_create_namespace('co.bounds')

--- Returns a line whose lists and quotes are not nested too deep.
---@param line string
---@param before string the text in front of it in the same row
---@return string
local function flat(line, before)
  local at = printable.too_deep(before .. line)
  if not at then
    return line
  end
  at = math.max(at - #before, 1) --[[@as integer]]
  return line:sub(1, at - 1) .. '\\' .. line:sub(at)
end

--- Splits a line into pieces that are short enough, and adds all pieces to `into`.
---@param into string[]
---@param line string
---@param used integer the bytes that its row has already
local function add_pieces(into, line, used)
  local from = 1
  local room = math.max(LONGEST_LINE - used, 0) --[[@as integer]]
  while #line - from + 1 > room do
    local last = from + room - 1
    local near = math.max(from, last - NEAR) --[[@as integer]]
    local head = line:sub(near, last):match('^.* ')
    if head then
      last = near + #head - 1
    elseif room > 0 then
      -- Not within a character.
      last = last + vim.str_utf_start(line:sub(near, last + 1), last - near + 2)
    end
    into[#into + 1] = line:sub(from, last)
    from, room = last + 1, LONGEST_LINE
  end
  into[#into + 1] = line:sub(from)
end

--- Returns whether some lines of a prompt may be parsed as they are.
---@param buf integer
---@param first integer
---@param last integer the row after them
---@return boolean
function M.may_parse(buf, first, last)
  if api.nvim_buf_get_offset(buf, api.nvim_buf_line_count(buf)) > LONGEST_PROMPT then
    return false
  end
  for _, line in ipairs(api.nvim_buf_get_lines(buf, first, last, false)) do
    if #line > LONGEST_LINE then
      return false
    end
    for part in line:gmatch('[^\r]+') do
      if printable.too_deep(part) then
        return false
      end
    end
  end
  return true
end

--- Returns the lines of an output within the bounds. The number of lines stays the same. The backend limits the length
--- of lines.
---@param lines string[]
---@return string[]
function M.output(lines)
  return vim.tbl_map(function(line)
    return flat(line:find('\r', 1, true) and line:gsub('\r', ' ') or line, '')
  end, lines)
end

--- Returns the parts of a line that may begin or end a block of code: the indent and the markers of lists and quotes in
--- front of the fence, the fence and what follows it.
---@param line string
---@return { prefix: string, fence: string, info: string }?
local function fence_of(line)
  if not (line:find('```', 1, true) or line:find('~~~', 1, true)) then
    return nil
  end
  local prefix = line:match('^[%s>*+%-%d.)]*') or ''
  local fence = line:match('^```+', #prefix + 1) or line:match('^~~~+', #prefix + 1)
  if not fence then
    return nil
  end
  local info = printable.trim(line:sub(#prefix + #fence + 1))
  if fence:sub(1, 1) == '`' and info:find('`', 1, true) then
    return nil
  end
  return { prefix = prefix, fence = fence, info = info }
end

---@class (exact) co.CodeBlock
---@field mark integer extmark of its first line
---@field prefix string the indent and the markers of lists and quotes in front of its fence
---@field fence string
---@field start integer the bytes of text above its content

--- A text that grows at its end.
---@class (exact) co.Bounds
---@field buf integer
---@field images integer the open images of the complete lines of its last paragraph
---@field open co.CodeBlock[] blocks with a language that may be open at the end of the text, the first one first
---@field bytes integer the bytes of complete lines so far
local Bounds = {}
Bounds.__index = Bounds

--- Returns the bounds of a text that is still empty.
---@param buf integer
---@return co.Bounds
function M.new(buf)
  return setmetatable({ buf = buf, images = 0, open = {}, bytes = 0 }, Bounds)
end

--- Escapes images in a line so that at most `OPEN_IMAGES` images are open. `open` is the number of open images in the
--- lines above of the same paragraph.
---@param line string
---@param before string the text in front of it in the same row
---@param open integer
---@return string line
---@return integer open the number of open images at the end of the line
local function with_few_images(line, before, open)
  if line == '' and before == '' then
    return line, 0
  elseif open == 0 and not line:find('[', 1, true) then
    return line, open
  end
  local whole, at = before .. line, 1
  ---@type string[]
  local parts = {}
  local from = #before + 1
  while true do
    local sign = whole:find('[%[%]]', at)
    if not sign then
      break
    elseif whole:byte(sign) == 0x5D then
      open = math.max(open - 1, 0)
    elseif whole:sub(sign - 1, sign - 1) == '!' then
      if open >= OPEN_IMAGES and sign >= from then
        parts[#parts + 1] = whole:sub(from, sign - 1) .. '\\'
        from = sign
      else
        open = open + 1
      end
    end
    at = sign + 1
  end
  parts[#parts + 1] = whole:sub(from)
  return table.concat(parts), open
end

--- Returns a text within the bounds as one line.
---@param text string
---@return string
function M.line(text)
  local line = printable.line(text)
  return (with_few_images(flat(line, ''), '', 0))
end

--- Returns the lines of a text within the bounds. A longer line is cut into several.
---@param text string
---@param before? string the text in front of it in the same row
---@return string[]
---@return integer[]? rows the index of each line before the cuts in the lines after them, from 0; nil if nothing was cut
function Bounds:lines(text, before)
  before = before or ''
  if text:find('[\r%z]') then
    -- The parser takes a carriage return for the end of a line, and a NUL for the end of the text.
    text = text:gsub('\r\n', '\n'):gsub('\r$', ''):gsub('\r', '␍'):gsub('%z', '␀')
  end
  local whole = vim.split(text, '\n', { plain = true })
  ---@type string[], integer[]
  local lines, rows = {}, {}
  for index, line in ipairs(whole) do
    rows[index] = #lines
    local first = #lines + 1
    add_pieces(lines, line, index == 1 and #before or 0)
    for at = first, #lines do
      local front = at == 1 and before or ''
      local images
      lines[at], images = with_few_images(flat(lines[at], front), front, self.images)
      if at < #lines or index < #whole then
        self.images = images
      end
    end
  end
  return lines, #lines > #whole and rows or nil
end

--- Removes the language of a code block, so that no parser of the language gets its text. The person still reads its name.
---@param buf integer
---@param row integer
local function remove_language(buf, row)
  local line = api.nvim_buf_get_lines(buf, row, row + 1, false)[1]
  local found = line and fence_of(line)
  if not found or found.info == '' then
    return
  end
  local from = #found.prefix + #found.fence
  api.nvim_buf_set_text(buf, row, from, row, #line, { '' })
  api.nvim_buf_set_extmark(buf, marks, row, from, {
    virt_text = { { found.info:sub(1, 40), 'CoRunSkipped' } },
    virt_text_pos = 'overlay',
  })
end

--- Hides some rows from every parser: removes the languages of code blocks, and puts other text in a code block if it is
--- complete.
---@param buf integer
---@param first integer
---@param last integer
---@param complete boolean no text will be added to the last row
function M.make_plain(buf, first, last, complete)
  local lines = api.nvim_buf_get_lines(buf, first, last + 1, false)
  local longest = 2
  for index, line in ipairs(lines) do
    remove_language(buf, first + index - 1)
    for run in line:gmatch('`+') do
      longest = math.max(longest, #run)
    end
  end
  local found = fence_of(lines[1])
  if complete and not (found and found.prefix == '') then
    local fence = ('`'):rep(longest + 1)
    -- Extmarks of the row below must move.
    api.nvim_buf_set_text(buf, last, -1, last, -1, { '', fence })
    api.nvim_buf_set_text(buf, first, 0, first, 0, { fence, '' })
  end
end

--- Returns whether a line ends a code block in every parser.
---@param block co.CodeBlock
---@param line { prefix: string, fence: string, info: string }
---@return boolean
local function closes(block, line)
  local same = vim.startswith(line.fence, block.fence) and line.info == ''
  local indent = line.prefix:find('^ ? ? ?$') ~= nil
  return same and (indent or line.prefix:gsub('%S', ' ') == block.prefix:gsub('%S', ' '))
end

--- Removes the languages of blocks that are longer than the bound.
---@param first? integer the number of the first blocks whose language goes in any case
function Bounds:limit(first)
  while self.open[1] and (self.bytes - self.open[1].start > LONGEST_BLOCK or (first or 0) > 0) do
    local block = table.remove(self.open, 1)
    local row = api.nvim_buf_get_extmark_by_id(self.buf, marks, block.mark, {})[1]
    api.nvim_buf_del_extmark(self.buf, marks, block.mark)
    if row then
      remove_language(self.buf, row)
    end
    first = (first or 0) - 1
  end
end

--- Forgets the open blocks that meet a condition.
---@param ends fun(block: co.CodeBlock): boolean
---@return boolean found
function Bounds:close(ends)
  local found = false
  for index = #self.open, 1, -1 do
    if ends(self.open[index]) then
      api.nvim_buf_del_extmark(self.buf, marks, self.open[index].mark)
      table.remove(self.open, index)
      found = true
    end
  end
  return found
end

-- The most blocks that may be open. Lines that look like the first line of one may be the text of another.
local MOST_OPEN = 20

--- Takes in a complete line, which is in the buffer.
---@param row integer
---@param line string
function Bounds:note(row, line)
  self.bytes = self.bytes + #line + 1
  if self.open[1] then
    if line:find('^[^%s>]') then
      -- It ends lists and quotes around a block.
      self:close(function(block)
        return block.prefix:find('%S') ~= nil or #block.prefix > 3
      end)
    end
    self:limit()
  end
  local found = fence_of(line)
  if not found then
    return
  end
  local closed = self:close(function(block)
    return closes(block, found)
  end)
  if not closed and found.info ~= '' then
    self.open[#self.open + 1] = {
      mark = api.nvim_buf_set_extmark(self.buf, marks, row, 0, { right_gravity = true }),
      prefix = found.prefix,
      fence = found.fence,
      start = self.bytes,
    }
    self:limit(#self.open - MOST_OPEN)
  end
end

--- Removes the languages of all blocks that may be open, because the text does not contain the ends of these blocks.
function Bounds:end_all()
  self:limit(#self.open)
end

return M
