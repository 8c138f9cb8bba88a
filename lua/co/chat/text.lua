--- The text in the buffer of a chat. Only the backend changes it, so the buffer is never modifiable.
---
--- The module knows no chats, prompts, keys or windows.
local M = {}

local api = vim.api
local bounds = require('co.chat.bounds')
local buffer = require('co.ui.buffer')
local call = require('co.chat.call')
local fence = require('co.chat.fence')
local folded_answers = require('co.chat.folded_answers')
local guarded = require('co.ui.guarded')
local markdown = require('co.chat.markdown')
local messages = require('co.chat.messages')
local printable = require('co.ui.printable')
local spinner = require('co.chat.spinner')
local windows = require('co.ui.windows')

local hints = api.nvim_create_namespace('co.earlier')

-- The starts of lines that hang when they are wrapped: lists, quotes and calls.
local HANGING = [[^\s*\%(\d\+[.)]\s\+\|[-*+•]\s\+\|\%(>\s\?\)\+\)\|^  \S ]]

-- Rules beside those of the syntax of markdown, which shows the marks of code and knows no calls.
local WITHOUT_PARSERS = [[
  syntax region CoCode matchgroup=markdownCodeDelimiter start=/`\+/ end=/`\+/ oneline concealends
  syntax region CoFence matchgroup=markdownCodeDelimiter start=/^\s*```.*$/ end=/^\s*```\s*$/ concealends
  highlight default link CoCode markdownCode
  highlight default link CoFence markdownCodeBlock
  syntax match CoCall /^  \S .*$\|^    .*$/ contains=NONE
]]

---@class (exact) co.ChatText
---@field buf integer
---@field calls co.ChatCall[] from top to bottom
---@field live table<integer, co.ChatCall> the calls that this backend may change, by number
---@field blocks table<integer, co.ChatCall> the calls whose output is not complete, by block
---@field above integer the number of bytes of earlier text that are not in the buffer yet
---@field bounds co.Bounds
---@field folded_answers co.FoldedAnswers
---@field messages co.Messages
---@field markdown? co.Markdown nil if Neovim has no markdown parser
local ChatText = {}
ChatText.__index = ChatText

--- Prepares the buffer of a chat.
---@param buf integer
---@param lines? string[] the text that it begins with
---@param begun? co.MessageRow[] the messages in that text
---@param above? integer the bytes of earlier text that are not there yet
---@return co.ChatText
function M.new(buf, lines, begun, above)
  buffer.lock(buf)
  buffer.write(buf, function()
    api.nvim_buf_set_lines(buf, 0, -1, false, lines or {})
  end)
  call.clear(buf)
  local self = setmetatable({
    buf = buf,
    calls = {},
    live = {},
    blocks = {},
    above = above or 0,
    bounds = bounds.new(buf),
    folded_answers = folded_answers.new(buf),
    messages = messages.new(buf),
  }, ChatText)
  self:note_lines(0, lines or {})
  self.messages:add(begun or {})
  vim.bo[buf].formatlistpat = HANGING
  if markdown.supported() then
    self.markdown = markdown.new(buf, function(first, last, complete)
      buffer.write(buf, function()
        bounds.make_plain(buf, first, last, complete)
      end)
    end, function(first, last)
      return self:call_rows(first, last)
    end)
    self.markdown:update()
  else
    guarded.set_option(buf, 'syntax', 'markdown')
    api.nvim_buf_call(buf, function()
      vim.cmd(WITHOUT_PARSERS)
    end)
  end
  return self
end

--- Highlights new text.
function ChatText:highlight()
  if self.markdown then
    self.markdown:update()
  end
end

--- Returns the row of the last line.
---@return integer
function ChatText:last_row()
  return api.nvim_buf_line_count(self.buf) - 1
end

--- Appends text.
---@param text string
function ChatText:append(text)
  local row = self:last_row()
  local before = api.nvim_buf_get_lines(self.buf, row, row + 1, false)[1]
  local lines = self.bounds:lines(text, before)
  buffer.write(self.buf, function()
    api.nvim_buf_set_text(self.buf, row, -1, row, -1, lines)
    lines[1] = before .. lines[1]
    self:note_lines(row, lines)
  end)
  self:highlight()
end

--- Notes new lines. Ignores the last line, because it may still grow.
---@param row integer
---@param lines string[]
function ChatText:note_lines(row, lines)
  for index = 1, #lines - 1 do
    self.bounds:note(row + index - 1, lines[index])
  end
end

--- Notes that a message begins with the text that follows.
---@param at? integer its time
function ChatText:begin_message(at)
  self.messages:begin(self:last_row(), at)
end

--- Notes that the text that follows is the model's last answer.
function ChatText:begin_answer()
  self.folded_answers:begin(self:last_row())
end

--- Puts a blank line above the last answer, which ends its turn after calls.
function ChatText:separate_answer()
  local row = self.folded_answers:answer()
  if row then
    buffer.write(self.buf, function()
      api.nvim_buf_set_lines(self.buf, row, row, false, { '' })
    end)
    self.folded_answers:begin(row + 1)
  end
end

--- Folds the last answer, which the model no longer sees.
function ChatText:fold_answer()
  self.folded_answers:fold_current(self.above > 0)
end

--- Shows in the first line that text above it is missing. Neovim hides a hint that is wider than the window.
---@param hint string a short one
function ChatText:show_missing(hint)
  local text = ('… %s %s'):format(printable.size(self.above), hint)
  api.nvim_buf_set_extmark(self.buf, hints, 0, 0, {
    id = 1,
    virt_text = { { text, 'CoRunSkipped' } },
    virt_text_pos = 'right_align',
  })
end

--- Notes the messages, folds and last answer of a part, which begins at the first row of the buffer.
---@param part co.TextPart
function ChatText:note_part(part)
  self.messages:add(part.messages or {})
  for _, rows in ipairs(part.folds or {}) do
    self.folded_answers:add(rows[1], rows[2])
  end
  if part.answer then
    self.folded_answers:begin_resumed(part.answer)
  end
  self.above = part.above or 0
  if self.above > 0 then
    self:show_missing('of earlier text are loading')
  else
    api.nvim_buf_clear_namespace(self.buf, hints, 0, -1)
  end
end

--- A part of the text as it looks in the buffer.
---@class (exact) co.text.LaidPart
---@field lines string[]
---@field part co.TextPart the part with the rows of these lines
---@field calls { row: integer, place: fun(buf: integer, row: integer): co.ChatCall }[]
---@field note_prose fun() notes the bounds of the lines that are no calls, once they begin the buffer

--- Lays a part out within the bounds, with its calls as they look.
---@param limits co.Bounds
---@param part co.TextPart
---@return co.text.LaidPart
local function lay_out(limits, part)
  local before = vim.split(part.text, '\n', { plain = true })
  ---@type string[], integer[]
  local lines, rows = {}, {}
  local placed, prose = {}, {}
  local next = 1
  local function add_prose(last)
    if last < next then
      return
    end
    local text = table.concat(before, '\n', next, last)
    local bounded, moved = limits:lines(text)
    for index = next, last do
      rows[index] = #lines + (moved and moved[index - next + 1] or index - next)
    end
    prose[#prose + 1] = { row = #lines, lines = bounded }
    vim.list_extend(lines, bounded)
  end
  for _, one in ipairs(part.calls or {}) do
    local first = math.min(math.max(one.row, next - 1), #before - 1)
    local after = math.min(first + 1 + one.output, #before)
    add_prose(first)
    for index = first + 1, after do
      rows[index] = #lines
    end
    local laid, place = call.lay_out(one, vim.list_slice(before, first + 2, after))
    placed[#placed + 1] = { row = #lines, place = place }
    vim.list_extend(lines, laid)
    next = after + 1
  end
  add_prose(#before)
  local function row(index)
    return rows[index + 1] or #lines - 1
  end
  ---@type co.TextPart
  local moved = {
    text = part.text,
    above = part.above,
    messages = vim.tbl_map(function(message)
      return { row = row(message.row), at = message.at }
    end, part.messages or {}),
    folds = vim.tbl_map(function(fold)
      local first = row(fold[1])
      local after = rows[fold[2] + 2] or fold[2] + 1 - #before + #lines
      return { first, math.max(first, after - 1) }
    end, part.folds or {}),
    answer = part.answer and row(part.answer),
  }
  return {
    lines = lines,
    part = moved,
    calls = placed,
    note_prose = function()
      for _, piece in ipairs(prose) do
        for index = 1, #piece.lines - 1 do
          limits:note(piece.row + index - 1, piece.lines[index])
        end
      end
    end,
  }
end

--- Adds the calls of a part. The lines of the part are already in the buffer, from the first row on.
---@param placed { row: integer, place: fun(buf: integer, row: integer): co.ChatCall }[]
function ChatText:add_calls(placed)
  local added = vim.tbl_map(function(one)
    return one.place(self.buf, one.row)
  end, placed)
  for _, one in ipairs(added) do
    one:fold()
  end
  self.calls = vim.list_extend(added, self.calls)
end

--- Replaces the whole text.
---@param part co.TextPart the new text, or its end
function ChatText:replace(part)
  self.bounds = bounds.new(self.buf)
  local laid = lay_out(self.bounds, part)
  self:end_calls()
  self.calls = {}
  call.clear(self.buf)
  self.folded_answers:clear()
  buffer.write(self.buf, function()
    api.nvim_buf_set_lines(self.buf, 0, -1, false, laid.lines)
    laid.note_prose()
  end)
  self.messages = messages.new(self.buf)
  self:add_calls(laid.calls)
  self:note_part(laid.part)
  if self.markdown then
    self.markdown:restart()
  end
end

--- Puts a part above the text. The windows show the same lines as before.
---@param part co.TextPart
function ChatText:prepend(part)
  local limits = bounds.new(self.buf)
  local laid = lay_out(limits, part)
  local rows = #laid.lines - 1
  windows.keep_views(self.buf, rows, function()
    buffer.write(self.buf, function()
      api.nvim_buf_set_text(self.buf, 0, 0, 0, 0, laid.lines)
      laid.note_prose()
      limits:end_all()
    end)
    self:add_calls(laid.calls)
  end)
  self:note_part(laid.part)
  if self.markdown then
    self.markdown:prepend(rows)
  end
end

--- Shows that the earlier text comes later, because the backend ended. The next backend sends the text again.
function ChatText:stop_loading()
  if self.above > 0 then
    self:show_missing('come with the next prompt')
  end
end

--- Shows a new call at the end of the text, or the new state of a call.
---@param message co.CallMessage
function ChatText:call(message)
  local shown = self.live[message.call]
  buffer.write(self.buf, function()
    if shown then
      shown:set(message)
    else
      shown = call.append(self.buf, message)
      self.live[message.call] = shown
      self.calls[#self.calls + 1] = shown
      -- The text above is complete.
      self:highlight()
    end
  end)
  if message.block then
    self.blocks[message.block] = shown
  end
end

--- Applies a patch to the output of a call. `done` comes once.
---@param id integer
---@param patch? co.Patch
---@param done boolean
function ChatText:patch(id, patch, done)
  local shown = self.blocks[id]
  if shown and patch then
    buffer.write(self.buf, function()
      shown:patch(patch)
    end)
  end
  if done then
    self.blocks[id] = nil
  end
end

--- Notes that no call can change any more, because another backend numbers its own calls or the buffer is unloaded.
function ChatText:end_calls()
  for _, shown in pairs(self.live) do
    spinner.stop(self.buf, shown.head)
  end
  self.live, self.blocks = {}, {}
end

--- Returns the index of the first call with a line at a row or below it.
---
--- To ask Neovim for the last extmark of a call above a row would take as long as the text has extmarks of any kind.
---@param row integer
---@return integer
function ChatText:first_call(row)
  local first, after = 1, #self.calls + 1
  while first < after do
    local middle = math.floor((first + after) / 2)
    if self.calls[middle]:last() > row then
      after = middle
    else
      first = middle + 1
    end
  end
  return first
end

--- Returns the ranges of rows between `first` and `last` that belong to calls. `after` is the row after a range.
---@param first integer
---@param last integer
---@return { first: integer, after: integer }[]
function ChatText:call_rows(first, last)
  local found = {}
  for index = self:first_call(first), #self.calls do
    local shown = self.calls[index]
    local row = shown:row()
    if row > last then
      break
    end
    found[#found + 1] = {
      first = math.max(row, first),
      after = math.min(shown:last(), last + 1),
    }
  end
  return found
end

--- Returns the call in whose lines a row is.
---@param row integer
---@return co.ChatCall?
function ChatText:call_at(row)
  local shown = self.calls[self:first_call(row)]
  return shown and row >= shown:row() and shown or nil
end

--- Closes the folds of all calls in a window that now shows the text.
---@param win integer
function ChatText:fold_in(win)
  for _, shown in ipairs(self.calls) do
    shown:fold(win)
  end
  self.folded_answers:fold_in(win)
end

--- Returns the first and last lines of the code blocks in `lines`. The last block may be open.
---@param lines string[]
---@return { first: integer, last: integer }[]
local function fences(lines)
  local found = {}
  local first, open
  for index, line in ipairs(lines) do
    local after = fence.after(open, line)
    if after and not open then
      first = index
    elseif open and not after then
      found[#found + 1] = { first = first, last = index }
    end
    open = after
  end
  if open then
    found[#found + 1] = { first = first, last = #lines + 1 }
  end
  return found
end

--- Returns the lines of the code block around `row`.
---@param buf integer of a chat or a prompt
---@param row integer
---@return string[]?
function M.code_at(buf, row)
  local lines = api.nvim_buf_get_lines(buf, 0, -1, false)
  for _, block in ipairs(fences(lines)) do
    if row + 1 >= block.first and row + 1 <= block.last then
      return vim.list_slice(lines, block.first + 1, block.last - 1)
    end
  end
end

return M
