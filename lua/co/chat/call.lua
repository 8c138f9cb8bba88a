--- A call in the text of a chat: a line, and below it the rest of a command, the output, and remarks.
---
--- Only this module changes these lines, so it can count them. The line may change until the call has ended.
local M = {}

local api = vim.api
local bounds = require('co.chat.bounds')
local config = require('co.config')
local folds = require('co.ui.folds')
local highlight = require('co.ui.highlight')
local output_block = require('co.ui.output_block')
local piece = require('co.chat.piece')
local spinner = require('co.chat.spinner')

local heads = api.nvim_create_namespace('co.calls')
local details = api.nvim_create_namespace('co.calls.details')
local bodies = api.nvim_create_namespace('co.calls.bodies')
local colours = api.nvim_create_namespace('co.calls.colours')

local SIGN_INDENT, INDENT = '  ', '    '
-- The line above and below an output that is slow to parse as markdown. The output is indented more, so it cannot end the
-- fence.
local FENCE = SIGN_INDENT .. '````'
-- The largest number of signs of markup in a paragraph of output outside of a fence. A markdown parser may take seconds
-- for more.
local MOST_SIGNS = 100
-- The most lines of a difference that get colours.
local MOST_COLOURED = 2000

local SIGNS = {
  waits = { '?', '?', 'CoCallWaits' },
  runs = { '~', '~', 'CoCallWaits' },
  looks = { '·', '.', 'CoCallLooks' },
  done = { '✓', '+', 'CoCallDone' },
  failed = { '✗', 'x', 'CoCallFailed' },
}

---@class (exact) co.ChatCall
---@field buf integer
---@field head integer extmark of its line
---@field line co.CallLine
---@field skipped integer lines of the output before the first line that is shown
---@field output integer the shown lines of output, including the line with the number of skipped lines
---@field opened integer 1 if a fence is above the output
---@field closed? integer the number of lines of output below the closing fence; nil if there is no closing fence
---@field marked integer 1 if a line tells how many lines are folded
local ChatCall = {}
ChatCall.__index = ChatCall

--- Returns the sign of a state, and its highlight group.
---@param state co.CallState
---@return string
---@return string
local function sign_of(state)
  local sign = SIGNS[state] or SIGNS.done
  return config.get().ascii and sign[2] or sign[1], sign[3]
end

--- Returns the line of a call.
---@param line co.CallLine
---@return string
local function head_line(line)
  return SIGN_INDENT .. sign_of(line.state) .. ' ' .. bounds.line(line.text)
end

--- Returns lines below the line of a call.
---@param lines string[]
---@return string[]
local function indented(lines)
  return vim.tbl_map(function(line)
    return INDENT .. line:gsub('[%z\n]', ' ')
  end, bounds.output(lines))
end

--- Returns whether the first paragraph of some lines would be slow to parse as markdown.
---@param lines string[]
---@return boolean
local function is_slow(lines)
  local count = 0
  for _, line in ipairs(lines) do
    if not line:find('%S') then
      return false
    end
    local _, signs = line:gsub('[%[*_~<`$]', '')
    -- A long paragraph is slow to parse too.
    count = count + signs + 1
    if count > MOST_SIGNS then
      return true
    end
  end
  return false
end

-- Neovim 0.10 has no place at the right edge that leaves a wrapped line readable.
local RIGHT = vim.fn.has('nvim-0.11') == 1 and 'eol_right_align' or 'right_align'

---@class (exact) co.CallPlan
---@field hidden integer the first lines below the line of the call that are folded
---@field below integer the lines of output below the folded lines; 0 if no line is folded
---@field marked integer 1 if a line tells how many lines are folded

--- Returns which lines of an ended call are folded.
---@param line co.CallLine
---@param output integer lines of output
---@return co.CallPlan
local function plan(line, output)
  local all = #line.lead + output
  if line.whole then
    return { hidden = all > (line.kept or 0) and all or 0, below = 0, marked = 0 }
  end
  local hidden = #line.lead + math.max(0, output - (line.kept or output)) --[[@as integer]]
  if hidden <= 1 then
    -- A fold takes a line itself.
    return { hidden = 0, below = 0, marked = 0 }
  end
  return { hidden = hidden, below = all - hidden, marked = 1 }
end

--- Returns the number of lines of output below the closing fence. If the visible lines are quick to parse, the fence
--- goes above them.
---@param visible string[]
---@return integer
local function below_fence(visible)
  return is_slow(visible) and 0 or #visible
end

--- Returns the line above the folded lines.
---@param count integer
---@return string
local function folded_line(count)
  return ('%s… %d lines'):format(INDENT, count)
end

--- Returns a call whose line is at a row.
---@param buf integer
---@param row integer
---@param line co.CallLine
---@return co.ChatCall
local function at(buf, row, line)
  return setmetatable({
    buf = buf,
    -- Text that is put above the first row moves it.
    head = api.nvim_buf_set_extmark(buf, heads, row, 0, { right_gravity = true }),
    line = line,
    skipped = 0,
    output = 0,
    opened = 0,
    marked = 0,
  }, ChatCall)
end

--- Returns the row of its line.
---@return integer
function ChatCall:row()
  return api.nvim_buf_get_extmark_by_id(self.buf, heads, self.head, {})[1]
end

--- Returns the row after its last line.
---@return integer
function ChatCall:last()
  return self:row() + self:height()
end

--- Returns the number of its lines.
---@return integer
function ChatCall:height()
  return 1
    + self.marked
    + #self.line.lead
    + self.opened
    + self.output
    + (self.closed and 1 or 0)
    + #self.line.remarks
end

--- Returns the row of its first line of output.
---@return integer
function ChatCall:first_output()
  return self:row() + 1 + self.marked + #self.line.lead + self.opened
end

--- Returns the rows of its fences.
---@return integer[]
function ChatCall:fences()
  local first = self:first_output()
  ---@type integer[]
  local rows = {}
  if self.opened == 1 then
    rows[1] = first - 1
  end
  if self.closed then
    rows[#rows + 1] = first + self.output - self.closed
  end
  return rows
end

--- Starts or stops the turning of its sign: the sign turns while the call runs.
function ChatCall:spin()
  if self.line.state == 'runs' and not self.line.kept then
    spinner.start(self.buf, self.head, #SIGN_INDENT, function()
      return self:row()
    end)
  else
    spinner.stop(self.buf, self.head)
  end
end

--- Highlights its line and the lines below it.
function ChatCall:paint()
  local row = self:row()
  local _, group = sign_of(self.line.state)
  local head = api.nvim_buf_get_lines(self.buf, row, row + 1, false)[1] or ''
  local sign = #SIGN_INDENT + #sign_of(self.line.state)
  local last = self:last()
  api.nvim_buf_clear_namespace(self.buf, details, row, last)
  local function mark(first, column, options)
    api.nvim_buf_set_extmark(self.buf, details, first, column, options)
  end
  mark(row, 0, { end_col = sign, hl_group = group })
  mark(row, sign, { end_col = #head, hl_group = 'CoCall' })
  if self.line.details ~= '' then
    mark(row, 0, {
      virt_text = { { bounds.line(self.line.details), 'CoCallDetail' } },
      virt_text_pos = RIGHT,
      hl_mode = 'combine',
    })
  end
  for _, fence in ipairs(self:fences()) do
    piece.hide_fence(self.buf, details, fence, #FENCE)
  end
  self:paint_body()
  if self.line.diff then
    self:paint_diff()
  end
end

--- Highlights the lines below its line, below the colours of the output itself.
function ChatCall:paint_body()
  api.nvim_buf_set_extmark(self.buf, bodies, self:row() + 1, 0, {
    id = self.head,
    end_row = self:last(),
    hl_group = 'CoCallOutput',
    priority = 100,
    strict = false,
  })
end

--- Colours the lines of a difference.
function ChatCall:paint_diff()
  local first = self:first_output()
  local count = math.min(self.output, MOST_COLOURED)
  local lines = api.nvim_buf_get_lines(self.buf, first, first + count, false)
  for index, line in ipairs(lines) do
    local sign = line:sub(#INDENT + 1, #INDENT + 1)
    local group = sign == '+' and 'CoDiffAdded' or sign == '-' and 'CoDiffRemoved' or nil
    if group then
      local row = first + index - 1
      api.nvim_buf_set_extmark(self.buf, details, row, 0, { end_col = #line, hl_group = group })
    end
  end
end

--- Appends a call to the text, whose last row is empty.
---@param buf integer
---@param line co.CallLine
---@return co.ChatCall
function M.append(buf, line)
  local row = api.nvim_buf_line_count(buf) - 1
  local lines = { head_line(line) }
  vim.list_extend(lines, indented(line.lead))
  vim.list_extend(lines, indented(line.remarks))
  lines[#lines + 1] = ''
  api.nvim_buf_set_lines(buf, row, row + 1, false, lines)
  local self = at(buf, row, line)
  self:paint()
  self:spin()
  if line.kept then
    self:finish()
  end
  return self
end

--- Replaces some of its lines.
---@param first integer
---@param after integer the row after them
---@param lines string[]
function ChatCall:replace(first, after, lines)
  if after > first or #lines > 0 then
    api.nvim_buf_set_lines(self.buf, first, after, false, lines)
  end
end

--- Shows its new state.
---@param line co.CallLine
function ChatCall:set(line)
  self:unfold()
  local old, row = self.line, self:row()
  if old.block and line.block and line.block ~= old.block then
    -- It ran again.
    self:patch({ skipped = 0, from = 0, lines = {}, styles = {} })
  end
  local head = head_line(line)
  local before = api.nvim_buf_get_lines(self.buf, row, row + 1, false)[1]
  if head ~= before then
    -- The lines stay, so that marks and folds stay.
    api.nvim_buf_set_text(self.buf, row, 0, row, #before, { head })
  end
  if not vim.deep_equal(line.lead, old.lead) then
    self:replace(row + 1, row + 1 + #old.lead, indented(line.lead))
    self.line = vim.tbl_extend('force', old, { lead = line.lead })
  end
  if not vim.deep_equal(line.remarks, old.remarks) then
    local last = self:last()
    self:replace(last - #old.remarks, last, indented(line.remarks))
  end
  self.line = line
  self:paint()
  self:spin()
  if line.kept then
    self:finish()
  end
end

--- Applies a patch to its output. A patch that changes `skipped` replaces all lines.
---@param patch co.Patch
function ChatCall:patch(patch)
  self:open_fence(patch)
  local first = self:first_output()
  local from = patch.from + (patch.skipped > 0 and 1 or 0)
  local lines = indented(patch.lines)
  if patch.skipped ~= self.skipped then
    from = 0
    if patch.skipped > 0 then
      table.insert(lines, 1, INDENT .. output_block.skipped_line(patch.skipped))
    end
    self.skipped = patch.skipped
  end
  from = math.min(from, self.output)
  api.nvim_buf_clear_namespace(self.buf, colours, first + from, first + self.output)
  self:replace(first + from, first + self.output, lines)
  self.output = from + #lines
  local styled = first + self.output - #patch.lines
  highlight.set_styles(self.buf, colours, styled, patch.styles, #INDENT)
  self:paint_body()
end

--- Returns the lines of its output that are shown, without the indent, at most so many.
---@param most? integer
---@return string[]
function ChatCall:printed(most)
  local first = self:first_output()
  local last = first + math.min(self.output, most or self.output)
  local from = first + (self.skipped > 0 and 1 or 0)
  return vim.tbl_map(function(line)
    return line:sub(#INDENT + 1)
  end, api.nvim_buf_get_lines(self.buf, from, last, false))
end

--- Puts a fence above the output if it would be slow to parse as markdown.
---@param patch co.Patch of the output, which follows
function ChatCall:open_fence(patch)
  if self.opened == 0 then
    local lines = self:printed(math.min(patch.from, MOST_SIGNS))
    if is_slow(vim.list_extend(lines, patch.lines)) then
      local first = self:first_output()
      self:replace(first, first, { FENCE })
      self.opened = 1
    end
  end
end

--- Folds the less important lines of a call that has ended.
function ChatCall:finish()
  local fold = plan(self.line, self.output)
  local first = self:row() + 1
  if fold.marked == 1 then
    self:replace(first, first, { folded_line(fold.hidden) })
    self.marked = 1
  end
  if self.opened == 1 and not is_slow(self:printed()) then
    -- A line that made it slow was printed anew.
    self:replace(self:first_output() - 1, self:first_output(), {})
    self.opened = 0
  elseif self.opened == 1 then
    local after = self:first_output() + self.output
    local visible = api.nvim_buf_get_lines(self.buf, after - fold.below, after, false)
    local below = below_fence(visible)
    self:replace(after - below, after - below, { FENCE })
    self.closed = below
  end
  self:paint()
  self:fold()
end

--- Removes the fold of an ended call, because its lines change.
function ChatCall:unfold()
  local first = self:folded()
  if first then
    folds.delete(self.buf, first)
  end
  if self.closed then
    local below = self:first_output() + self.output - self.closed
    self:replace(below, below + 1, {})
    self.closed = nil
  end
  if self.marked == 1 then
    self:replace(self:row() + 1, self:row() + 2, {})
    self.marked = 0
  end
end

--- Returns the rows of its fold, if it has one.
---@return integer? first
---@return integer? last
function ChatCall:folded()
  if not self.line.kept then
    return nil, nil
  end
  local fold = plan(self.line, self.output)
  if fold.hidden == 0 then
    return nil, nil
  end
  local row, whole = self:row(), self.line.whole
  local closed = self.closed and (whole or self.closed > 0) and 1 or 0
  return whole and row or row + 1, row + self.marked + fold.hidden + self.opened + closed
end

--- Closes its fold.
---@param win? integer the only window; all windows that show the chat by default
function ChatCall:fold(win)
  local first, last = self:folded()
  if not first or not last then
    return
  end
  if win then
    folds.close(win, first, last)
  else
    folds.everywhere(self.buf, first, last)
  end
end

--- Returns the lines of an ended call with its output. They are the same lines as after `finish`.
---@param rows co.CallRows
---@param output string[]
---@return string[] lines
---@return fun(buf: integer, row: integer): co.ChatCall place makes the call of the lines, once they are in the buffer
function M.lay_out(rows, output)
  local fenced = is_slow(output)
  if rows.skipped > 0 then
    output = vim.list_extend({ output_block.skipped_line(rows.skipped) }, output)
  end
  local line, fold = rows, plan(rows, #output)
  ---@type string[]
  local lines = { head_line(line) }
  if fold.marked == 1 then
    lines[#lines + 1] = folded_line(fold.hidden)
  end
  vim.list_extend(lines, indented(line.lead))
  local shown = indented(output)
  local below
  if fenced then
    below = below_fence(vim.list_slice(output, #output - fold.below + 1))
    table.insert(shown, #shown - below + 1, FENCE)
    table.insert(shown, 1, FENCE)
  end
  vim.list_extend(lines, shown)
  vim.list_extend(lines, indented(line.remarks))
  return lines,
    function(buf, row)
      local call = at(buf, row, line)
      call.output, call.skipped, call.marked = #output, rows.skipped, fold.marked
      call.opened, call.closed = fenced and 1 or 0, below
      call:paint()
      return call
    end
end

--- Forgets all calls of a buffer. Neovim keeps extmarks of a buffer that it unloads.
---@param buf integer
function M.clear(buf)
  for _, namespace in ipairs({ heads, details, bodies, colours }) do
    api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  end
end

return M
