--- Highlights markdown that grows at its end, in pieces, with the same result as treesitter for the whole text.
---
--- Treesitter's highlighter parses the whole buffer after each change. For long chats that takes longer than a frame.
--- This module parses only the last piece again, because text after a piece cannot change its highlights. It knows
--- nothing of the meaning of the text.
local M = {}

local api = vim.api
local fence = require('co.chat.fence')
local languages = require('co.chat.languages')

local colours = api.nvim_create_namespace('co.markdown')
local places = api.nvim_create_namespace('co.markdown.places')

-- Folds, text objects and other plugins find the parser by the filetype.
vim.treesitter.language.register('markdown', { 'co-chat', 'co-prompt' })

-- The most lines of one piece. A longer piece is cut; the highlights after the cut may be wrong.
local LONGEST = 200
-- Milliseconds between two updates of the end. New text is first shown without highlights.
local PACE = 100
-- Milliseconds of one step of work, and of the pause after it, in which Neovim handles keys.
local SLICE, PAUSE = 2, 5
-- Lines that are parsed together if many wait.
local TOGETHER = 25

---@class (exact) co.Markdown
---@field buf integer
---@field open integer extmark of the first line whose highlights may still change
---@field due boolean a timer for the next update runs
---@field painted integer the time of the last update, in nanoseconds
---@field rest integer[] extmarks of the lines without highlights, the newest last
---@field busy boolean a timer for these lines runs
---@field earlier table<integer, true> extmarks of rows that were put above, and that no window has shown yet
local Markdown = {}
Markdown.__index = Markdown

---@type table<integer, co.Markdown> by buffer
local active = setmetatable({}, { __mode = 'v' })

---@class (exact) co.markdown.Piece
---@field first integer index of its first line
---@field last integer
---@field raw boolean code without a language, or too long: it is not parsed

--- Splits lines into pieces that are parsed independently: paragraphs, lists, code blocks.
---@param lines string[]
---@return co.markdown.Piece[]
function M.pieces(lines)
  ---@type co.markdown.Piece[]
  local found = {}
  ---@type co.markdown.Piece?
  local piece
  ---@type string?
  local open
  -- `blank`: the line before is empty. `ended`: it closed a fence without indent.
  local blank, ended = true, false
  local fenced = false
  for index, line in ipairs(lines) do
    local after = fence.after(open, line)
    local long = piece and index - piece.first >= LONGEST or false
    if open and piece then
      piece.raw = piece.raw or long
      ended = fenced and not after
    else
      local opens = after ~= nil
      local margin = line:find('^%S') ~= nil and (blank or opens)
      if not piece or ended or margin or long then
        piece = { first = index, last = index, raw = opens and not line:find('^[`~]+%s*[^%s`~]') }
        found[#found + 1] = piece
        fenced = opens
      end
      ended = false
    end
    piece.last = index
    open, blank = after, line == ''
  end
  return found
end

---@class (exact) co.markdown.Stretch
---@field buf integer
---@field row integer of the buffer, at which the text's first line is
---@field text string
---@field lines string[]

--- Returns the end of a highlight. One that ends at column 0 ends in the line before instead: an update of the next
--- line would delete it.
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

--- Sets the extmarks for the syntax tree of one language.
---@param stretch co.markdown.Stretch
---@param tree TSTree
---@param lang string
---@param depth integer the number of languages around it
local function mark_tree(stretch, tree, lang, depth)
  local highlights = languages.query(lang, 'highlights')
  if not highlights then
    return
  end
  for id, node, metadata in highlights:iter_captures(tree:root(), stretch.text, 0, -1) do
    local name = highlights.captures[id]
    local own = metadata[id] or {}
    if not (vim.startswith(name, '_') or name == 'spell' or name == 'nospell') then
      local range = vim.treesitter.get_range(node, stretch.text, own)
      local row, column = ends(stretch.lines, range[4], range[5])
      ---@type integer
      local priority = math.floor(tonumber(metadata.priority or own.priority) or 100)
      api.nvim_buf_set_extmark(stretch.buf, colours, stretch.row + range[1], range[2], {
        end_row = stretch.row + row,
        end_col = column,
        hl_group = '@' .. name .. '.' .. lang,
        -- An injected language has a higher priority.
        priority = priority + depth,
        conceal = metadata.conceal or own.conceal,
        strict = false,
      })
    end
  end
end

--- Sets the extmarks for the syntax trees of a parser and of injected languages.
---@param stretch co.markdown.Stretch
---@param parser vim.treesitter.LanguageTree
---@param depth integer
local function mark(stretch, parser, depth)
  for _, tree in pairs(parser:trees()) do
    mark_tree(stretch, tree, parser:lang(), depth)
  end
  for _, child in pairs(parser:children()) do
    mark(stretch, child, depth + 1)
  end
end

--- Highlights the lines from `row` on as one piece.
---@param buf integer
---@param row integer
---@param lines string[]
---@param raw boolean
local function paint(buf, row, lines, raw)
  api.nvim_buf_clear_namespace(buf, colours, row, row + #lines)
  if raw then
    api.nvim_buf_set_extmark(buf, colours, row, 0, {
      end_row = row + #lines - 1,
      end_col = #lines[#lines],
      hl_group = '@markup.raw.block.markdown',
      priority = 90,
      strict = false,
    })
    return
  end
  -- The first line is empty: `---` in the first line would start metadata.
  lines = vim.list_extend({ '' }, lines)
  local text = table.concat(lines, '\n') .. '\n'
  local parser = vim.treesitter.get_string_parser(text, 'markdown')
  parser:parse(true)
  mark({ buf = buf, row = row - 1, text = text, lines = lines }, parser, 0)
end

--- Returns whether Neovim has a markdown parser. Released versions have one.
---@return boolean
function M.supported()
  return (pcall(vim.treesitter.get_string_parser, '', 'markdown'))
end

--- Removes all highlights.
---@param self co.Markdown
local function start(self)
  api.nvim_buf_clear_namespace(self.buf, colours, 0, -1)
  api.nvim_buf_clear_namespace(self.buf, places, 0, -1)
  self.open = api.nvim_buf_set_extmark(self.buf, places, 0, 0, { right_gravity = false })
  self.rest, self.earlier = {}, {}
end

--- Highlights `buf`.
---@param buf integer
---@return co.Markdown
function M.new(buf)
  local self = setmetatable({
    buf = buf,
    due = false,
    painted = 0,
    busy = false,
  }, Markdown) --[[@as co.Markdown]]
  start(self)
  active[buf] = self
  languages.prepare('markdown')
  languages.prepare('markdown_inline')
  return self
end

--- Highlights new text at the end, now or soon.
function Markdown:update()
  if vim.treesitter.highlighter.active[self.buf] then
    -- Another plugin started it. It would parse the whole text again after each change.
    vim.treesitter.stop(self.buf)
  end
  if self.due then
    return
  end
  local since = (vim.uv.hrtime() - self.painted) / 1e6
  if since >= PACE and languages.ready() then
    self:paint()
    return
  end
  self.due = true
  vim.defer_fn(function()
    self.due = false
    if api.nvim_buf_is_loaded(self.buf) then
      self:update()
    end
  end, math.max(PAUSE, math.ceil(PACE - since)))
end

--- Highlights the whole text again, after it was replaced.
function Markdown:restart()
  start(self)
  self:update()
end

--- Notes that rows were put above the first one. They are highlighted when a window shows them: in a long text, most rows
--- are never shown.
---@param rows integer
function Markdown:prepend(rows)
  local set = api.nvim_buf_set_extmark
  if api.nvim_buf_get_extmark_by_id(self.buf, places, self.open, {})[1] == 0 then
    -- Text at the place of this mark does not move it.
    set(self.buf, places, rows, 0, { id = self.open, right_gravity = false })
  end
  self.earlier[set(self.buf, places, 0, 0, { end_row = rows })] = true
end

--- Highlights the shown rows that were put above, before all other rows that wait.
---@param first integer
---@param last integer
function Markdown:reveal(first, last)
  local function shown()
    local options = { details = true, overlap = true }
    return api.nvim_buf_get_extmarks(self.buf, places, { first, 0 }, { last, -1 }, options)
  end
  for _, place in ipairs(shown()) do
    local id, row, below = place[1], place[2], place[4] and place[4].end_row
    if below and self.earlier[id] then
      local lines = api.nvim_buf_get_lines(self.buf, row, below, false)
      languages.prepare_fences(lines)
      self.earlier[id] = nil
      api.nvim_buf_del_extmark(self.buf, places, id)
      self:postpone(row, lines, M.pieces(lines))
    end
  end
  for _, place in ipairs(shown()) do
    if place[1] ~= self.open then
      self.rest[#self.rest + 1] = place[1]
    end
  end
  self:catch_up()
end

--- Calls `reveal` for the rows that a window shows, if rows that were put above wait for it.
---@param buf integer
---@param first integer
---@param last integer
local function on_win(_, _, buf, first, last)
  local self = active[buf]
  if not self or next(self.earlier) == nil then
    return false
  end
  -- Extmarks cannot be set while Neovim draws.
  vim.schedule(function()
    if active[buf] == self and api.nvim_buf_is_loaded(buf) then
      self:reveal(first, math.min(last, api.nvim_buf_line_count(buf) - 1))
    end
  end)
  return false
end

api.nvim_set_decoration_provider(places, { on_win = on_win })

--- Highlights the last piece and the pieces after it, the newest first.
function Markdown:paint()
  local from = api.nvim_buf_get_extmark_by_id(self.buf, places, self.open, {})[1] or 0
  local lines = api.nvim_buf_get_lines(self.buf, from, -1, false)
  languages.prepare_fences(lines)
  if not languages.ready() then
    self:update()
    return
  end
  self.painted = vim.uv.hrtime()
  local pieces = M.pieces(lines)
  ---@type co.markdown.Piece?
  local last = table.remove(pieces)
  if last then
    self:postpone(from, lines, pieces)
    local row = from + last.first - 1
    api.nvim_buf_set_extmark(self.buf, places, row, 0, { id = self.open, right_gravity = false })
    paint(self.buf, row, vim.list_slice(lines, last.first, last.last), last.raw)
  end
  self:catch_up()
end

--- Marks pieces for later and joins short ones.
---@param from integer row of the first line
---@param lines string[]
---@param pieces co.markdown.Piece[]
function Markdown:postpone(from, lines, pieces)
  local index = 1
  while pieces[index] do
    local piece, last = pieces[index], pieces[index].last
    local row = from + piece.first - 1
    index = index + 1
    if piece.raw then
      paint(self.buf, row, vim.list_slice(lines, piece.first, last), true)
    else
      local more = pieces[index]
      while more and not more.raw and more.last - piece.first < TOGETHER do
        last, index = more.last, index + 1
        more = pieces[index]
      end
      local place = { end_row = from + last - 1 }
      self.rest[#self.rest + 1] = api.nvim_buf_set_extmark(self.buf, places, row, 0, place)
    end
  end
end

--- Highlights marked pieces, the newest first, for a short time.
function Markdown:catch_up()
  local began = vim.uv.hrtime()
  while #self.rest > 0 and languages.ready() and vim.uv.hrtime() - began < SLICE * 1e6 do
    local id = table.remove(self.rest)
    local place = api.nvim_buf_get_extmark_by_id(self.buf, places, id, { details = true })
    local last = place[3] and place[3].end_row
    if last then
      local lines = api.nvim_buf_get_lines(self.buf, place[1], last + 1, false)
      api.nvim_buf_del_extmark(self.buf, places, id)
      paint(self.buf, place[1], lines, false)
    end
  end
  if self.busy or #self.rest == 0 then
    return
  end
  self.busy = true
  vim.defer_fn(function()
    self.busy = false
    if api.nvim_buf_is_loaded(self.buf) then
      self:catch_up()
    end
  end, PAUSE)
end

return M
