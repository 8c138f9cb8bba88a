--- The answers to the hunks of a change.
local M = {}

---@class (exact) co.review.State
---@field text string[] the lines before the change
---@field hunks co.Replacement[]
---@field calls? string[] the calls that made the hunks; nil if they are proposed
---@field words co.review.Words
---@field answers table<integer, co.review.HunkState> by the numbers of the hunks

---@class (exact) co.review.HunkState
---@field accept? boolean nil: not answered
---@field lines? string[] that the person wrote
---@field comment? string

--- Returns the state of a review in which nothing is answered.
---@param change co.Change
---@param words co.review.Words
---@return co.review.State
function M.new(change, words)
  local text, lines = change.text or '', {}
  if text ~= '' and text:sub(-1) ~= '\n' then
    text = text .. '\n'
  end
  -- vim.split() takes three times as long, which shows in a long file.
  for line in text:gmatch('([^\n]*)\n') do
    lines[#lines + 1] = line
  end
  return {
    text = lines,
    hunks = change.hunks,
    calls = change.calls,
    words = words,
    answers = {},
  }
end

--- Returns the row, from 0, at which the cursor is on a hunk.
---@param state co.review.State
---@param number integer
---@return integer
function M.row(state, number)
  return math.max(0, math.min(state.hunks[number].start, #state.text - 1))
end

--- Returns the number of the hunk at a row, or else of the one before it.
---@param state co.review.State
---@param row integer from 0
---@return integer
function M.at(state, row)
  for number = #state.hunks, 1, -1 do
    if M.row(state, number) <= row then
      return number
    end
  end
  return 1
end

--- Returns what is known of the answer to a hunk.
---@param state co.review.State
---@param number integer
---@return co.review.HunkState
function M.answer(state, number)
  return state.answers[number] or {}
end

--- Changes the answer to a hunk.
---@param state co.review.State
---@param number integer
---@param fields co.review.HunkState
function M.set(state, number, fields)
  state.answers[number] = vim.tbl_extend('force', M.answer(state, number), fields)
end

--- Returns the lines that a hunk adds.
---@param state co.review.State
---@param number integer
---@return string[]
function M.lines(state, number)
  return M.answer(state, number).lines or state.hunks[number].lines
end

--- Returns the numbers of the hunks that have no answer. Those after `number` come first.
---@param state co.review.State
---@param number? integer
---@return integer[]
function M.open(state, number)
  local after, before = {}, {}
  for index in ipairs(state.hunks) do
    if M.answer(state, index).accept == nil then
      table.insert(index > (number or 0) and after or before, index)
    end
  end
  return vim.list_extend(after, before)
end

--- Returns the lines after the change, without the hunks that the person refused.
---@param state co.review.State
---@return string[]
function M.proposed(state)
  local lines, row = {}, 0
  for number, hunk in ipairs(state.hunks) do
    if M.answer(state, number).accept ~= false then
      vim.list_extend(lines, state.text, row + 1, hunk.start)
      vim.list_extend(lines, M.lines(state, number))
      row = hunk['end']
    end
  end
  return vim.list_extend(lines, state.text, row + 1)
end

--- Returns the answers for the backend. A hunk without an answer is accepted.
---@param state co.review.State
---@return co.HunkAnswer[]
function M.result(state)
  local answers = {}
  for number in ipairs(state.hunks) do
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
