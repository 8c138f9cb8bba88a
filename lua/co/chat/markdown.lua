--- Highlights markdown that grows at its end, in pieces, with the same result as treesitter for the whole text. Languages
--- inside the code of a block are the exception.
---
--- Treesitter's highlighter parses the whole buffer after each change. For long chats that takes longer than a frame.
--- This module parses only the last piece again, because text after a piece cannot change its highlights. It knows
--- nothing of the meaning of the text.
local M = {}

local api = vim.api
local fence = require('co.chat.fence')
local languages = require('co.chat.languages')
local painter = require('co.chat.piece')

local places = api.nvim_create_namespace('co.markdown.places')

-- Folds, text objects and other plugins find the parser by the filetype.
vim.treesitter.language.register('markdown', { 'co-chat', 'co-prompt' })

-- The most lines of one piece. A longer piece is cut; the highlights after the cut may be wrong.
local LONGEST = 200
-- Milliseconds between two updates of the end. New text is first shown without highlights.
local PACE = 100
-- Milliseconds of one step of work, and of the pause after it, in which Neovim handles keys.
local SLICE, PAUSE = 2, 5
-- The most lines and bytes of short pieces that are parsed together if many wait.
local TOGETHER, TOGETHER_BYTES = 25, 4096

---@class (exact) co.Markdown
---@field buf integer
---@field open integer extmark of the first line whose highlights may still change
---@field inside? string the fence of a code block without highlights, in which that line is
---@field due boolean a timer for the next update runs
---@field stale boolean new text came while a piece was being highlighted
---@field painted number the time of the last update, in milliseconds
---@field pace number the least milliseconds between two updates
---@field rest integer[] extmarks of the lines without highlights, the newest last
---@field busy boolean a timer for these lines runs
---@field work? co.PieceWork the piece that is being highlighted
---@field plain boolean the last piece took too long and is shown plain
---@field earlier table<integer, true> extmarks of rows that were put above, and that no window has shown yet
---@field on_plain fun(first: integer, last: integer, complete: boolean) gets the rows of a piece that took too long
---@field calls fun(first: integer, last: integer): { first: integer, after: integer }[] returns the rows that are no markdown
local Markdown = {}
Markdown.__index = Markdown

---@type table<integer, co.Markdown> by buffer
local active = setmetatable({}, { __mode = 'v' })

---@class (exact) co.markdown.Piece
---@field first integer index of its first line
---@field last integer
---@field bytes integer
---@field raw boolean code without a language, or too long: it is not parsed
---@field inside? string the fence of the raw code block in which it begins

--- Splits lines into pieces that are parsed independently: paragraphs, lists, code blocks.
---@param lines string[]
---@param inside? string the fence of the raw code block in which they begin
---@return co.markdown.Piece[]
---@return string? open the fence of the code block in which they end
function M.pieces(lines, inside)
  ---@type co.markdown.Piece[]
  local found = {}
  ---@type co.markdown.Piece?
  local piece = inside and { first = 1, last = 1, bytes = 0, raw = true, inside = inside } or nil
  found[1] = piece
  local open = inside
  -- `blank`: the line before is empty. `ended`: it closed a fence without indent.
  local blank, ended = true, false
  local fenced = inside ~= nil
  for index, line in ipairs(lines) do
    local after = fence.after(open, line)
    local most = open and painter.LONGEST_CODE or painter.LONGEST
    local long = piece and (index - piece.first >= LONGEST or piece.bytes + #line > most) or false
    if open and piece then
      piece.raw = piece.raw or long
      ended = fenced and not after
    else
      local opens = after ~= nil
      local margin = line:find('^%S') ~= nil and (blank or opens)
      if not piece or ended or margin or long then
        local plain = opens and not line:find('^[`~]+%s*[^%s`~]')
        local raw = plain or #line > painter.LONGEST
        piece = { first = index, last = index, bytes = 0, raw = raw }
        found[#found + 1] = piece
        fenced = opens
      end
      ended = false
    end
    piece.last, piece.bytes = index, piece.bytes + #line + 1
    open, blank = after, line == ''
  end
  return found, open
end

--- Splits the lines from a row on into pieces. Lines of calls belong to none, and end the piece above.
---@param self co.Markdown
---@param from integer
---@param lines string[]
---@param inside? string the fence of the raw code block in which they begin
---@return co.markdown.Piece[]
---@return string? open the fence of the code block in which they end
---@return boolean grows the last piece is not complete
local function split(self, from, lines, inside)
  local calls = self.calls(from, from + #lines - 1)
  if #calls == 0 then
    local found, open = M.pieces(lines, inside)
    return found, open, true
  end
  calls[#calls + 1] = { first = from + #lines, after = from + #lines }
  ---@type co.markdown.Piece[]
  local found = {}
  local first, open = 1, nil
  for _, one in ipairs(calls) do
    local last = one.first - from
    if last >= first then
      local pieces
      pieces, open = M.pieces(vim.list_slice(lines, first, last), first == 1 and inside or nil)
      for _, piece in ipairs(pieces) do
        piece.first, piece.last = piece.first + first - 1, piece.last + first - 1
        found[#found + 1] = piece
      end
    end
    first = one.after - from + 1
  end
  local last = found[#found]
  return found, open, last ~= nil and last.last == #lines
end

--- Loads the languages of markdown in small steps.
function M.prepare()
  languages.prepare('markdown')
  languages.prepare('markdown_inline')
end

--- Returns whether Neovim has a markdown parser. Released versions have one.
---@return boolean
function M.supported()
  return (pcall(vim.treesitter.get_string_parser, '', 'markdown'))
end

--- Removes all highlights.
---@param self co.Markdown
local function start(self)
  if self.work then
    self.work:cancel()
  end
  painter.clear(self.buf)
  api.nvim_buf_clear_namespace(self.buf, places, 0, -1)
  self.open = api.nvim_buf_set_extmark(self.buf, places, 0, 0, { right_gravity = false })
  self.rest, self.earlier = {}, {}
  self.work, self.inside, self.plain, self.stale = nil, nil, false, false
end

--- Highlights `buf`.
---@param buf integer
---@param on_plain fun(first: integer, last: integer, complete: boolean) gets the rows of a piece that took too long
---@param calls fun(first: integer, last: integer): { first: integer, after: integer }[] returns the rows that are no markdown
---@return co.Markdown
function M.new(buf, on_plain, calls)
  local self = setmetatable({
    buf = buf,
    due = false,
    painted = 0,
    pace = PACE,
    busy = false,
    on_plain = on_plain,
    calls = calls,
  }, Markdown) --[[@as co.Markdown]]
  start(self)
  active[buf] = self
  M.prepare()
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
  elseif self.work then
    self.stale = true
    return
  end
  local since = vim.uv.hrtime() / 1e6 - self.painted
  if since >= self.pace and languages.ready() then
    self:paint()
    return
  end
  self.due = true
  vim.defer_fn(function()
    self.due = false
    if api.nvim_buf_is_loaded(self.buf) then
      self:update()
    end
  end, math.max(PAUSE, math.ceil(self.pace - since)))
end

--- Highlights lines as one piece, now or soon. Only one piece is in work at a time.
---@param row integer
---@param lines string[]
---@param after? fun(work: co.PieceWork, too_long: boolean) the lines are the last piece, which may grow
function Markdown:highlight(row, lines, after)
  local finished = false
  local work = painter.paint(self.buf, row, lines, function(work, first, too_long)
    finished = true
    local later = self.work ~= nil
    self.work = nil
    if too_long then
      self.on_plain(first, first + #lines - 1, after == nil)
    end
    if after then
      after(work, too_long)
    end
    if later then
      self:resume()
    end
  end)
  if not finished then
    self.work = work
  end
end

--- Goes on after the work for a piece that took several steps.
function Markdown:resume()
  if self.stale then
    self.stale = false
    self:update()
  end
  self:catch_up()
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
      self:postpone(row, lines, (split(self, row, lines)))
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

--- Highlights the last piece and the pieces in front of it, the newest first.
function Markdown:paint()
  local from = api.nvim_buf_get_extmark_by_id(self.buf, places, self.open, {})[1] or 0
  local lines = api.nvim_buf_get_lines(self.buf, from, -1, false)
  languages.prepare_fences(lines)
  if not languages.ready() then
    self:update()
    return
  end
  local began = vim.uv.hrtime()
  self.painted = began / 1e6
  local pieces, open, grows = split(self, from, lines, self.inside)
  ---@type co.markdown.Piece?
  local last = grows and table.remove(pieces) or nil
  if not grows then
    -- The text ends with a call: all above it is complete.
    self:postpone(from, lines, pieces)
    self.inside, self.plain = nil, false
    local end_row = from + #lines - 1
    api.nvim_buf_set_extmark(
      self.buf,
      places,
      end_row,
      0,
      { id = self.open, right_gravity = false }
    )
  end
  if last then
    local plain = self.plain and table.remove(pieces, 1) or nil
    self:postpone(from, lines, pieces)
    self:paint_last(from, lines, last, open)
    if plain then
      -- Last, as it may get more rows.
      self.on_plain(from, from + plain.last - 1, true)
    end
  end
  self:catch_up(began)
end

--- Highlights the last piece, which may grow.
---@param from integer row of the first line
---@param lines string[]
---@param last co.markdown.Piece
---@param open? string the fence of the code block in which it ends
function Markdown:paint_last(from, lines, last, open)
  if last.first > 1 then
    self.inside, self.plain = nil, false
  end
  local row = from + last.first - 1
  lines = vim.list_slice(lines, last.first, last.last)
  if last.raw or self.plain then
    painter.paint_raw(self.buf, row, lines, last.inside)
    if last.raw and open and #lines > 1 then
      -- The rest of the code block is raw too. Its first lines need no look again.
      row, self.inside = row + #lines - 1, open
    end
  else
    self:highlight(row, lines, function(work, too_long)
      self.plain = too_long
      self.pace = math.max(PACE, 3 * work.took)
    end)
  end
  api.nvim_buf_set_extmark(self.buf, places, row, 0, { id = self.open, right_gravity = false })
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
      painter.paint_raw(self.buf, row, vim.list_slice(lines, piece.first, last), piece.inside)
    else
      local more, bytes = pieces[index], piece.bytes
      while
        more
        and not more.raw
        -- A call may be between two pieces.
        and more.first == last + 1
        and more.last - piece.first < TOGETHER
        and bytes + more.bytes <= TOGETHER_BYTES
      do
        last, index, bytes = more.last, index + 1, bytes + more.bytes
        more = pieces[index]
      end
      local place = { end_row = from + last - 1 }
      self.rest[#self.rest + 1] = api.nvim_buf_set_extmark(self.buf, places, row, 0, place)
    end
  end
end

--- Highlights marked pieces, the newest first, for a short time.
---@param began? integer the start of this slice of work, now by default
function Markdown:catch_up(began)
  began = began or vim.uv.hrtime()
  while
    #self.rest > 0
    and not self.work
    and languages.ready()
    and vim.uv.hrtime() - began < SLICE * 1e6
  do
    local id = table.remove(self.rest)
    local place = api.nvim_buf_get_extmark_by_id(self.buf, places, id, { details = true })
    local last = place[3] and place[3].end_row
    if last then
      local lines = api.nvim_buf_get_lines(self.buf, place[1], last + 1, false)
      api.nvim_buf_del_extmark(self.buf, places, id)
      self:highlight(place[1], lines)
    end
  end
  if self.busy or self.work or #self.rest == 0 then
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
