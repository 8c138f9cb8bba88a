--- The answers that the model no longer sees, because the person asked again, and the long outputs of a chat that was
--- resumed. They are folded.
---
--- The module knows the rows of one buffer. It knows no chats.
local M = {}

local api = vim.api
local folds = require('co.ui.folds')

local marks = api.nvim_create_namespace('co.answers')

---@class (exact) co.FoldedAnswers
---@field buf integer
---@field current? integer extmark at which the last answer begins
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
---@param id? integer
---@return integer
function FoldedAnswers:mark(row, id)
  row = math.min(row, api.nvim_buf_line_count(self.buf) - 1) --[[@as integer]]
  return api.nvim_buf_set_extmark(self.buf, marks, row, 0, { id = id, right_gravity = false })
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
  self.current, self.old = nil, {}
end

--- Notes that the text from `row` on is the model's last answer.
---@param row integer
function FoldedAnswers:begin(row)
  self.current = self:mark(row, self.current)
end

--- Folds the rows of an answer in all windows that show the buffer, now or later.
---@param first integer
---@param last integer
function FoldedAnswers:add(first, last)
  self.old[#self.old + 1] = { first = self:mark(first), last = self:mark(last) }
  folds.everywhere(self.buf, first, last)
end

--- Folds the last answer, which ends with the buffer.
function FoldedAnswers:fold_current()
  local first = self.current and self:row(self.current)
  self.current = nil
  local lines = first and api.nvim_buf_get_lines(self.buf, first, -1, false) or {}
  -- Neovim closes no fold of one line, so the fold takes one blank line too.
  while lines[#lines] == '' and (#lines == 1 or lines[#lines - 1] == '') do
    table.remove(lines)
  end
  if first and #lines > 0 then
    self:add(first, first + #lines - 1)
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
