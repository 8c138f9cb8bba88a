--- Folds the answers that the model no longer sees because the person asked again. Also folds the long outputs of a
--- resumed chat.
---
--- The module knows the rows of one buffer. It knows no chats.
local M = {}

local api = vim.api
local folds = require('co.ui.folds')

local marks = api.nvim_create_namespace('co.answers')

---@class (exact) co.FoldedAnswers
---@field buf integer
---@field current? integer extmark at which the last answer begins
---@field unbegun? integer extmark of the last row of an answer to fold, if the buffer does not have its first row yet
---@field old { first: integer, last: integer }[] extmarks of answers to fold
local FoldedAnswers = {}
FoldedAnswers.__index = FoldedAnswers

--- Creates the list of answers of a buffer.
---@param buf integer
---@return co.FoldedAnswers
function M.new(buf)
  return setmetatable({ buf = buf, old = {} }, FoldedAnswers)
end

--- Creates or moves an extmark at a row.
---@param row integer
---@param options? { id?: integer, moves?: boolean } `moves`: text that is put at the start of the row moves it
---@return integer
function FoldedAnswers:mark(row, options)
  options = options or {}
  row = math.min(row, api.nvim_buf_line_count(self.buf) - 1) --[[@as integer]]
  return api.nvim_buf_set_extmark(
    self.buf,
    marks,
    row,
    0,
    { id = options.id, right_gravity = options.moves or false }
  )
end

--- Returns the row of an extmark.
---@param mark integer
---@return integer?
function FoldedAnswers:row(mark)
  return api.nvim_buf_get_extmark_by_id(self.buf, marks, mark, {})[1]
end

--- Forgets all answers.
function FoldedAnswers:clear()
  api.nvim_buf_clear_namespace(self.buf, marks, 0, -1)
  self.current, self.unbegun, self.old = nil, nil, {}
end

--- Notes that the text that follows in `row` is the model's last answer.
---@param row integer
function FoldedAnswers:begin(row)
  self.current = self:mark(row, { id = self.current })
end

--- Returns the row at which the last answer begins.
---@return integer?
function FoldedAnswers:answer()
  return self.current and self:row(self.current)
end

--- Notes that the text from `row` on was the model's last answer when the chat was resumed.
---@param row integer
function FoldedAnswers:begin_resumed(row)
  local last = self.unbegun and self:row(self.unbegun)
  if last then
    self.unbegun = nil
    self:add(row, last)
  elseif not self.current then
    self.current = self:mark(row, { moves = true })
  end
end

--- Folds the rows of an answer in all windows that show the buffer, now or later.
---@param first integer
---@param last integer
function FoldedAnswers:add(first, last)
  self.old[#self.old + 1] = { first = self:mark(first, { moves = true }), last = self:mark(last) }
  folds.everywhere(self.buf, first, last)
end

--- Folds the last answer, which ends with the buffer.
---@param may_begin_above boolean its first row may not be there yet
function FoldedAnswers:fold_current(may_begin_above)
  local first = self.current and self:row(self.current)
  self.current = nil
  local last = api.nvim_buf_line_count(self.buf) - 1
  local function blank(row)
    return api.nvim_buf_get_lines(self.buf, row, row + 1, false)[1] == ''
  end
  while last >= (first or 1) and blank(last) do
    last = last - 1
  end
  if first and last >= first then
    self:add(first, last)
  elseif not first and may_begin_above then
    self.unbegun = self:mark(last)
  end
end

--- Folds the answers in a window that now shows the buffer.
---@param win integer
function FoldedAnswers:fold_in(win)
  for _, answer in ipairs(self.old) do
    local first, last = self:row(answer.first), self:row(answer.last)
    if first and last and first <= last then
      folds.close(win, first, last)
    end
  end
end

return M
