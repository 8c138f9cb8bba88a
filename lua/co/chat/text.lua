--- The text in the buffer of a chat. Only the backend changes it, so the buffer is never modifiable.
---
--- The module knows no chats, prompts, keys or windows.
local M = {}

local api = vim.api
local block = require('co.ui.output_block')
local bounds = require('co.chat.bounds')
local buffer = require('co.ui.buffer')
local fence = require('co.chat.fence')
local folded_answers = require('co.chat.folded_answers')
local markdown = require('co.chat.markdown')
local windows = require('co.ui.windows')

local FENCE = '````'

local messages = api.nvim_create_namespace('co.messages')
local hints = api.nvim_create_namespace('co.earlier')

---@class (exact) co.ChatText
---@field buf integer
---@field blocks table<integer, co.Block>
---@field above integer the bytes of earlier text that are not there yet
---@field bounds co.Bounds
---@field folded_answers co.FoldedAnswers
---@field markdown? co.Markdown nil if Neovim has no markdown parser
local ChatText = {}
ChatText.__index = ChatText

--- Prepares the buffer of a chat.
---@param buf integer
---@param lines? string[] the text that it begins with
---@param rows? integer[] the rows of messages in that text
---@param above? integer the bytes of earlier text that are not there yet
---@return co.ChatText
function M.new(buf, lines, rows, above)
  buffer.lock(buf)
  buffer.write(buf, function()
    api.nvim_buf_set_lines(buf, 0, -1, false, lines or {})
  end)
  local self = setmetatable({
    buf = buf,
    blocks = {},
    above = above or 0,
    bounds = bounds.new(buf),
    folded_answers = folded_answers.new(buf),
  }, ChatText)
  self:note_lines(0, lines or {})
  self:set_messages(rows or {})
  if markdown.supported() then
    self.markdown = markdown.new(buf, function(first, last, complete)
      buffer.write(buf, function()
        bounds.make_plain(buf, first, last, complete)
      end)
    end)
    self.markdown:update()
  else
    vim.bo[buf].syntax = 'markdown'
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

--- Takes in new lines, without the last one, which may grow.
---@param row integer
---@param lines string[]
function ChatText:note_lines(row, lines)
  for index = 1, #lines - 1 do
    self.bounds:note(row + index - 1, lines[index])
  end
end

--- Notes that messages begin at these rows, whose text is there.
---@param rows integer[]
function ChatText:add_messages(rows)
  for _, row in ipairs(rows) do
    -- Text that is put above the first row moves it.
    api.nvim_buf_set_extmark(self.buf, messages, row, 0, { right_gravity = true })
  end
end

--- Notes that messages begin at these rows, and at no others.
---@param rows integer[]
function ChatText:set_messages(rows)
  -- Neovim keeps extmarks of a buffer that it unloads.
  api.nvim_buf_clear_namespace(self.buf, messages, 0, -1)
  self:add_messages(rows)
end

--- Notes that a message begins with the text that follows.
function ChatText:begin_message()
  api.nvim_buf_set_extmark(self.buf, messages, self:last_row(), 0, { right_gravity = false })
end

--- Notes that the text that follows is the model's last answer.
function ChatText:begin_answer()
  self.folded_answers:begin(self:last_row())
end

--- Folds the last answer, which the model no longer sees.
function ChatText:fold_answer()
  self.folded_answers:fold_current(self.above > 0)
end

--- Shows in the first line that text above it is missing. Neovim hides a hint that is wider than the window.
---@param hint string a short one
function ChatText:show_missing(hint)
  local text = ('… %.1f MB %s'):format(self.above / 1e6, hint)
  api.nvim_buf_set_extmark(self.buf, hints, 0, 0, {
    id = 1,
    virt_text = { { text, 'CoRunSkipped' } },
    virt_text_pos = 'right_align',
  })
end

--- Notes the messages, folds and last answer of a part, which begins at the first row of the buffer.
---@param part co.TextPart
function ChatText:note_part(part)
  self:add_messages(part.messages or {})
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

--- Returns the lines of a part within the bounds, and the part with the rows of these lines.
---@param limits co.Bounds
---@param part co.TextPart
---@return string[]
---@return co.TextPart
local function bounded(limits, part)
  local lines, rows = limits:lines(part.text)
  if not rows then
    return lines, part
  end
  local function row(before)
    return rows[before + 1] or #lines - 1
  end
  ---@type co.TextPart
  local moved = {
    text = part.text,
    above = part.above,
    messages = vim.tbl_map(row, part.messages or {}),
    folds = vim.tbl_map(function(fold)
      return { row(fold[1]), row(fold[2] + 1) - 1 }
    end, part.folds or {}),
    answer = part.answer and row(part.answer),
  }
  return lines, moved
end

--- Replaces the whole text.
---@param part co.TextPart the new text, or its end
function ChatText:replace(part)
  self.bounds = bounds.new(self.buf)
  local lines
  lines, part = bounded(self.bounds, part)
  self.blocks = {}
  self.folded_answers:clear()
  buffer.write(self.buf, function()
    api.nvim_buf_set_lines(self.buf, 0, -1, false, lines)
    self:note_lines(0, lines)
  end)
  self:set_messages({})
  self:note_part(part)
  if self.markdown then
    self.markdown:restart()
  end
end

--- Puts a part above the text. The windows show the same lines as before.
---@param part co.TextPart
function ChatText:prepend(part)
  local limits = bounds.new(self.buf)
  local lines
  lines, part = bounded(limits, part)
  local rows = #lines - 1
  windows.keep_views(self.buf, rows, function()
    buffer.write(self.buf, function()
      api.nvim_buf_set_text(self.buf, 0, 0, 0, 0, lines)
      for row = 0, rows - 1 do
        limits:note(row, lines[row + 1])
      end
      limits:end_all()
    end)
  end)
  self:note_part(part)
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

--- Appends an empty block of output.
---@return co.Block
function ChatText:open_block()
  local row = self:last_row()
  local last = api.nvim_buf_get_lines(self.buf, row, row + 1, false)[1]
  local head = last == '' and row or row + 1
  local lines = { FENCE, FENCE, '' }
  if last ~= '' then
    table.insert(lines, 1, '')
  end
  api.nvim_buf_set_text(self.buf, row, -1, row, -1, lines)
  return block.new(self.buf, head, head + 1)
end

--- Makes the fence of a block longer than any fence in new lines of its output.
---@param shown co.Block
---@param lines string[]
local function lengthen_fences(shown, lines)
  local head, tail = shown:rows()
  if not head or not tail then
    return
  end
  local longest = 0
  for _, line in ipairs(lines) do
    local run = line:match('^%s*(````+)')
    longest = math.max(longest, run and #run or 0)
  end
  if longest >= #api.nvim_buf_get_lines(shown.buf, head, head + 1, false)[1] then
    local longer = ('`'):rep(longest + 1)
    api.nvim_buf_set_text(shown.buf, head, 0, head, -1, { longer })
    api.nvim_buf_set_text(shown.buf, tail, 0, tail, -1, { longer })
  end
end

--- Applies a patch to a block of output. `done` comes once. A block without a patch is not shown.
---@param id integer
---@param patch? co.Patch
---@param done boolean
---@return co.Block?
function ChatText:patch(id, patch, done)
  local shown = self.blocks[id]
  local opens = patch and not shown
  buffer.write(self.buf, function()
    if patch and not shown then
      shown = self:open_block()
      self.blocks[id] = shown
    end
    if patch then
      patch.lines = bounds.output(patch.lines)
      shown:patch(patch)
      lengthen_fences(shown, patch.lines)
    end
  end)
  if opens then
    -- Output that comes later gets the highlight of the text around it.
    self:highlight()
  end
  return shown
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

--- Returns the rows at which messages begin, from top to bottom.
---@return integer[]
function ChatText:messages()
  return vim.tbl_map(function(mark)
    return mark[2]
  end, api.nvim_buf_get_extmarks(self.buf, messages, 0, -1, {}))
end

--- Returns the lines of the code block around `row`.
---@param buf integer of a chat or a prompt
---@param row integer
---@return string[]?
function M.code_at(buf, row)
  local lines = api.nvim_buf_get_lines(buf, 0, -1, false)
  for _, fence in ipairs(fences(lines)) do
    if row + 1 >= fence.first and row + 1 <= fence.last then
      return vim.list_slice(lines, fence.first + 1, fence.last - 1)
    end
  end
end

return M
