--- The answers to the parts of a change.
local M = {}

---@class (exact) co.review.State
---@field parts integer the number of parts
---@field words co.review.Words
---@field answers table<integer, co.review.PartState> by the numbers of the parts
---@field rows table<integer, table<integer, true>> for each part, its rows that were on the screen
---@field seen table<integer, true> the parts of which all rows were on the screen

---@class (exact) co.review.PartState
---@field accept? boolean nil: not answered
---@field lines? string[] that the person wrote
---@field comment? string

--- Returns the state of a review in which nothing is answered.
---@param change co.FileChange
---@param words co.review.Words
---@return co.review.State
function M.new(change, words)
  local state = { parts = change.parts, words = words, answers = {}, rows = {}, seen = {} }
  for _, answer in ipairs(change.answers or {}) do
    state.answers[answer.part] =
      { accept = answer.accept, lines = answer.lines, comment = answer.comment }
  end
  return state
end

--- Returns the answers that the person gave, one for each answered part.
---@param state co.review.State
---@return co.PartAnswer[]
function M.given(state)
  local given = {}
  for number = 1, state.parts do
    local answer = M.answer(state, number)
    if next(answer) then
      given[#given + 1] = {
        part = number,
        accept = answer.accept,
        lines = answer.lines,
        comment = answer.comment,
      }
    end
  end
  return given
end

--- Returns the state of the answer to a part.
---@param state co.review.State
---@param number integer
---@return co.review.PartState
function M.answer(state, number)
  return state.answers[number] or {}
end

--- Changes the answer to a part.
---@param state co.review.State
---@param number integer
---@param fields co.review.PartState
function M.set(state, number, fields)
  state.answers[number] = vim.tbl_extend('force', M.answer(state, number), fields)
end

--- Returns the numbers of the parts that have no answer. The parts after `number` come first.
---@param state co.review.State
---@param number? integer
---@return integer[]
function M.open(state, number)
  local after, before = {}, {}
  for index = 1, state.parts do
    if M.answer(state, index).accept == nil then
      table.insert(index > (number or 0) and after or before, index)
    end
  end
  return vim.list_extend(after, before)
end

--- Notes that rows of a part are on the screen.
---@param state co.review.State
---@param number integer
---@param count integer its rows
---@param first integer the first one on the screen, from 0
---@param last integer
function M.note_shown(state, number, count, first, last)
  local rows = state.rows[number] or {}
  state.rows[number] = rows
  for row = math.max(first, 0), math.min(last, count - 1) do
    rows[row] = true
  end
  if vim.tbl_count(rows) == count then
    state.seen[number] = true
  end
end

--- Returns the numbers of the parts that have no answer and that the screen has not shown as a whole.
---@param state co.review.State
---@return integer[]
function M.unseen(state)
  return vim.tbl_filter(function(number)
    return not state.seen[number]
  end, M.open(state))
end

--- Returns the answers for the backend. A part without an answer is accepted.
---@param state co.review.State
---@return co.HunkAnswer[]
function M.result(state)
  local answers = {}
  for number = 1, state.parts do
    local answer = M.answer(state, number)
    local accept = answer.accept ~= false
    answers[number] = {
      accept = accept,
      lines = accept and answer.lines or nil,
      comment = answer.comment,
    }
  end
  return answers
end

return M
