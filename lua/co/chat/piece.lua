--- Highlights one piece of markdown, in short steps between which Neovim handles keys, or not at all if it takes too long.
---
--- A parser may take minutes for a few thousand bytes of the wrong text.
local M = {}

local api = vim.api
local fence = require('co.chat.fence')
local languages = require('co.chat.languages')
local parse_in_steps = require('co.ui.parse_in_steps')

local colours = api.nvim_create_namespace('co.markdown')
local anchors = api.nvim_create_namespace('co.markdown.anchors')

-- Neovim can hide whole lines since 0.11.
local HIDES_LINES = vim.fn.has('nvim-0.11') == 1

local INTERRUPTS = parse_in_steps.INTERRUPTS
-- The most bytes of a piece of text, and of a block of code.
M.LONGEST = INTERRUPTS and 8 * 1024 or 2000
M.LONGEST_CODE = INTERRUPTS and 16 * 1024 or 2000
-- The most signs of emphasis and links in a piece of text. For more, the parser may not heed interruptions.
local MOST_SIGNS = 1200
-- In milliseconds: the longest time of the parser for a piece, and of all work on the piece. Usual text takes a tenth
-- of this time.
local MOST_PARSING, MOST = 60, 200
-- The most highlights of one piece. The rest is left out.
local MOST_MARKS = 8000
-- Captures or highlights between two looks at the clock.
local TOGETHER = 16

---@class (exact) co.PieceMark
---@field row integer of the piece
---@field column integer
---@field end_row integer
---@field options vim.api.keyset.set_extmark

--- The work for one piece.
---@class (exact) co.PieceWork
---@field buf integer
---@field anchor integer extmark of the first line
---@field row integer of the first line
---@field lines string[]
---@field text string
---@field marks co.PieceMark[]
---@field took number the milliseconds of work so far
---@field cancelled boolean
---@field done fun(work: co.PieceWork, first: integer, too_long: boolean) gets the row of the first line
local Work = {}
Work.__index = Work

--- Returns the end of a highlight. If the highlight ends at column 0, returns the end of the line before. Otherwise an
--- update of the next line would delete the highlight.
---@param lines string[]
---@param row integer
---@param column integer
---@return integer row
---@return integer column
local function ends(lines, row, column)
  if column == 0 and row > 0 then
    return row - 1, #(lines[row] or '')
  end
  return row, column
end

--- Finds the highlights of the syntax tree of one language. It yields now and then.
---@param tree TSTree
---@param lang string
---@param depth integer the number of languages around it
---@async
function Work:find_in_tree(tree, lang, depth)
  local highlights = languages.query(lang, 'highlights')
  if not highlights then
    return
  end
  local count = 0
  for id, node, metadata in highlights:iter_captures(tree:root(), self.text, 0, -1) do
    local name = highlights.captures[id]
    local own = metadata[id] or {}
    if not (vim.startswith(name, '_') or name == 'spell' or name == 'nospell') then
      local range = vim.treesitter.get_range(node, self.text, own)
      local row, column = ends(self.lines, range[4], range[5])
      ---@type integer
      local priority = math.floor(tonumber(metadata.priority or own.priority) or 100)
      local hides_line = metadata.conceal_lines or own.conceal_lines
      self.marks[#self.marks + 1] = {
        row = range[1],
        column = range[2],
        end_row = row,
        options = {
          end_col = column,
          hl_group = '@' .. name .. '.' .. lang,
          -- An injected language has a higher priority.
          priority = priority + depth,
          conceal = metadata.conceal or own.conceal,
          conceal_lines = HIDES_LINES and hides_line and '' or nil,
          strict = false,
        },
      }
    end
    count = count + 1
    if #self.marks >= MOST_MARKS then
      return
    elseif count % TOGETHER == 0 then
      coroutine.yield()
    end
  end
end

--- Finds the highlights of the syntax trees of a parser and of injected languages.
---@param parser vim.treesitter.LanguageTree
---@param depth integer
---@async
function Work:find(parser, depth)
  for _, tree in pairs(parser:trees()) do
    self:find_in_tree(tree, parser:lang(), depth)
  end
  for _, child in pairs(parser:children()) do
    self:find(child, depth + 1)
  end
end

--- Sets the highlights. It yields now and then.
---@async
function Work:set_marks()
  api.nvim_buf_clear_namespace(self.buf, colours, self.row, self.row + #self.lines - 1)
  for index, mark in ipairs(self.marks) do
    -- The text begins with an empty line.
    local row = self.row - 1
    mark.options.end_row = row + mark.end_row
    api.nvim_buf_set_extmark(
      self.buf,
      colours,
      math.max(row + mark.row, 0),
      mark.column,
      mark.options
    )
    if index % TOGETHER == 0 then
      coroutine.yield()
    end
  end
end

--- Ends the work.
---@param too_long boolean
function Work:finish(too_long)
  api.nvim_buf_del_extmark(self.buf, anchors, self.anchor)
  if too_long then
    M.paint_raw(self.buf, self.row, vim.list_slice(self.lines, 2))
  end
  self.done(self, self.row, too_long)
end

--- Returns whether the lines are still there, and notes their row: text may have been put above them.
---@return boolean
function Work:goes_on()
  local alive = not self.cancelled and api.nvim_buf_is_loaded(self.buf)
  local row = alive and api.nvim_buf_get_extmark_by_id(self.buf, anchors, self.anchor, {})[1]
  self.row = row or self.row
  return row ~= nil and row ~= false
end

--- Parses the text and sets its highlights, or gives up.
function Work:start()
  parse_in_steps.start({
    lines = self.lines,
    lang = 'markdown',
    injections = true,
    most_parsing = MOST_PARSING,
    most = MOST,
    goes_on = function()
      return self:goes_on()
    end,
    work = function(parser)
      self:find(parser, 0)
      self:set_marks()
    end,
    done = function(complete, took)
      self.took = took
      self:finish(not complete)
    end,
  })
end

--- Hides a line that is a fence of a code block.
---@param buf integer
---@param namespace integer
---@param row integer
---@param length integer bytes of the line
function M.hide_fence(buf, namespace, row, length)
  api.nvim_buf_set_extmark(buf, namespace, row, 0, {
    end_col = length,
    conceal = '',
    conceal_lines = HIDES_LINES and '' or nil,
    strict = false,
  })
end

--- Highlights the lines from `row` on as code without a language. The last line has a separate highlight, because an
--- update that begins in this line would delete a highlight that ends there.
---@param buf integer
---@param row integer
---@param lines string[]
---@param inside? string the fence of the code block in which they begin
function M.paint_raw(buf, row, lines, inside)
  api.nvim_buf_clear_namespace(buf, colours, row, row + #lines)
  local function mark(first, last)
    api.nvim_buf_set_extmark(buf, colours, row + first - 1, 0, {
      end_row = row + last - 1,
      end_col = #lines[last],
      hl_group = '@markup.raw.block.markdown',
      priority = 90,
      strict = false,
    })
  end
  if #lines > 1 then
    mark(1, #lines - 1)
  end
  mark(#lines, #lines)
  local open = inside
  for index, line in ipairs(lines) do
    local after = fence.after(open, line)
    if (open == nil) ~= (after == nil) then
      M.hide_fence(buf, colours, row + index - 1, #line)
    end
    open = after
  end
end

--- Removes all highlights.
---@param buf integer
function M.clear(buf)
  api.nvim_buf_clear_namespace(buf, colours, 0, -1)
  api.nvim_buf_clear_namespace(buf, anchors, 0, -1)
end

--- Highlights the lines from `row` on, now or soon.
---@param buf integer
---@param row integer
---@param lines string[]
---@param done fun(work: co.PieceWork, first: integer, too_long: boolean) gets the row of the first line
---@return co.PieceWork
function M.paint(buf, row, lines, done)
  -- The first line is empty: `---` in the first line would start metadata.
  lines = vim.list_extend({ '' }, lines)
  local self = setmetatable({
    buf = buf,
    anchor = api.nvim_buf_set_extmark(buf, anchors, row, 0, { right_gravity = true }),
    row = row,
    lines = lines,
    text = table.concat(lines, '\n') .. '\n',
    marks = {},
    took = 0,
    cancelled = false,
    done = done,
  }, Work) --[[@as co.PieceWork]]
  local _, signs = self.text:gsub('[*_~%[]', '')
  if signs > MOST_SIGNS and not fence.after(nil, lines[2]) then
    self:finish(true)
  else
    self:start()
  end
  return self
end

--- Cancels the work.
function Work:cancel()
  self.cancelled = true
end

return M
