--- The text in the buffer of one chat: the transcript above and the prompt below.
---
--- The module knows no chats, keys or windows.
local M = {}

local api = vim.api
local block = require('co.ui.output_block')
local buffer = require('co.ui.buffer')
local fence = require('co.chat.fence')
local folded_answers = require('co.chat.folded_answers')
local markdown = require('co.chat.markdown')

local prompts = api.nvim_create_namespace('co.prompt')

local FENCE = '````'

---@class (exact) co.ChatText
---@field buf integer
---@field mark integer extmark of the prompt's first line
---@field blocks table<integer, co.Block>
---@field folded_answers co.FoldedAnswers
---@field markdown? co.Markdown nil if Neovim has no markdown parser
local ChatText = {}
ChatText.__index = ChatText

--- Sets the extmark of the prompt, with the line above it.
---@param buf integer
---@param at integer row
---@param id? integer
---@return integer
local function mark_prompt(buf, at, id)
  return api.nvim_buf_set_extmark(buf, prompts, at, 0, {
    id = id,
    right_gravity = false,
    virt_lines = { { { ('─'):rep(24) .. ' prompt ' .. ('─'):rep(8), 'CoPromptRule' } } },
    virt_lines_above = true,
  })
end

--- Prepares an empty buffer for a chat.
---@param buf integer
---@return co.ChatText
function M.new(buf)
  buffer.write(buf, function()
    api.nvim_buf_set_lines(buf, 0, -1, false, { '', '' })
  end)
  local self = setmetatable(
    { buf = buf, mark = mark_prompt(buf, 1), blocks = {}, folded_answers = folded_answers.new(buf) },
    ChatText
  )
  if markdown.supported() then
    self.markdown = markdown.new(buf, function()
      return self:prompt_row()
    end)
  else
    vim.bo[buf].syntax = 'markdown'
  end
  return self
end

--- Highlights new text and the prompt.
function ChatText:highlight()
  if self.markdown then
    self.markdown:update()
  end
end

--- Returns the row of the prompt's first line. It restores the line if the person deleted it.
---@return integer
function ChatText:prompt_row()
  local row = api.nvim_buf_get_extmark_by_id(self.buf, prompts, self.mark, {})[1]
  local count = api.nvim_buf_line_count(self.buf)
  if row and row >= 1 and row < count then
    return row
  end
  buffer.write(self.buf, function()
    if row == 0 then
      -- The text above the prompt was deleted.
      api.nvim_buf_set_lines(self.buf, 0, 0, false, { '' })
      row = 1
    else
      api.nvim_buf_set_lines(self.buf, count, count, false, { '' })
      row = count
    end
  end)
  mark_prompt(self.buf, row, self.mark)
  return row
end

--- Returns the lines of the prompt.
---@return string[]
function ChatText:prompt()
  return api.nvim_buf_get_lines(self.buf, self:prompt_row(), -1, false)
end

--- Replaces the prompt.
---@param lines string[]
function ChatText:set_prompt(lines)
  local row = self:prompt_row()
  buffer.write(self.buf, function()
    api.nvim_buf_set_lines(self.buf, row, -1, false, #lines > 0 and lines or { '' })
  end)
end

--- Appends text to the transcript.
---@param text string
function ChatText:append(text)
  local row = self:prompt_row() - 1
  buffer.write(self.buf, function()
    api.nvim_buf_set_text(self.buf, row, -1, row, -1, vim.split(text, '\n', { plain = true }))
  end)
  self:highlight()
end

--- Notes that the text that follows is the model's last answer.
function ChatText:begin_answer()
  self.folded_answers:begin(self:prompt_row() - 1)
end

--- Folds the last answer, which the model no longer sees.
function ChatText:fold_answer()
  self.folded_answers:fold_current(self:prompt_row())
end

--- Replaces the transcript.
---@param text string
function ChatText:replace(text)
  local row = self:prompt_row()
  self.blocks = {}
  self.folded_answers:clear()
  buffer.write(self.buf, function()
    -- The change excludes the first line of the prompt, so its extmark and the cursors in it stay.
    api.nvim_buf_set_text(self.buf, 0, 0, row - 1, -1, vim.split(text, '\n', { plain = true }))
  end)
  if self.markdown then
    self.markdown:restart()
  end
end

--- Appends an empty block of output to the transcript.
---@return co.Block
function ChatText:open_block()
  local row = self:prompt_row() - 1
  local last = api.nvim_buf_get_lines(self.buf, row, row + 1, false)[1]
  local head = last == '' and row or row + 1
  local lines = { FENCE, FENCE, '' }
  if last ~= '' then
    table.insert(lines, 1, '')
  end
  -- The change ends before the line break. Else it would move the extmark of the prompt.
  api.nvim_buf_set_text(self.buf, row, -1, row, -1, lines)
  return block.new(self.buf, head, head + 1)
end

--- Makes the fence of a complete block longer than any fence in its output.
---@param done co.Block
local function lengthen_fences(done)
  local head, tail = done:rows()
  if not head or not tail then
    return
  end
  local longest = #FENCE - 1
  for _, line in ipairs(api.nvim_buf_get_lines(done.buf, head + 1, tail, false)) do
    local run = line:match('^%s*(`+)')
    longest = math.max(longest, run and #run or 0)
  end
  if longest >= #FENCE then
    local fence = ('`'):rep(longest + 1)
    api.nvim_buf_set_text(done.buf, head, 0, head, -1, { fence })
    api.nvim_buf_set_text(done.buf, tail, 0, tail, -1, { fence })
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
      shown:patch(patch)
    end
    if done and shown then
      lengthen_fences(shown)
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

--- Returns the rows of the headings `## You` and `## Co`.
---@return integer[]
function ChatText:headings()
  local lines = api.nvim_buf_get_lines(self.buf, 0, self:prompt_row(), false)
  local inside = {}
  for _, fence in ipairs(fences(lines)) do
    for index = fence.first, fence.last do
      inside[index] = true
    end
  end
  local rows = {}
  for index, line in ipairs(lines) do
    if not inside[index] and line:match('^## ') then
      rows[#rows + 1] = index - 1
    end
  end
  return rows
end

--- Returns the lines of the code block around `row`.
---@param row integer
---@return string[]?
function ChatText:code_at(row)
  local lines = api.nvim_buf_get_lines(self.buf, 0, -1, false)
  for _, fence in ipairs(fences(lines)) do
    if row + 1 >= fence.first and row + 1 <= fence.last then
      return vim.list_slice(lines, fence.first + 1, fence.last - 1)
    end
  end
end

return M
