--- The questions that wait for the person, in their order. The queue knows no window.
local M = {}

local focus = require('co.ui.focus')

---@class (exact) co.Queue
---@field private questions co.Question[]
---@field private newest integer the number of the newest question; a late `/approve 3` must not hit another question
---@field private came_at table<co.Question, integer> the number of keys that the person had pressed when each question came
---@field private lost_at? integer the number of pressed keys when the question on the screen went without an answer of the person
local Queue = {}
Queue.__index = Queue

--- Returns an empty queue.
---@return co.Queue
function M.new()
  return setmetatable({
    questions = {},
    newest = 0,
    came_at = setmetatable({}, { __mode = 'k' }),
  }, Queue)
end

--- Returns the first question.
---@return co.Question?
function Queue:first()
  return self.questions[1]
end

--- Returns the questions in their order.
---@return co.Question[]
function Queue:all()
  return vim.list_slice(self.questions)
end

--- Returns the question with an id.
---@param id integer
---@return co.Question?
function Queue:find(id)
  for _, question in ipairs(self.questions) do
    if question.id == id then
      return question
    end
  end
end

--- Adds a question.
---@param question co.Question
function Queue:add(question)
  self.newest = self.newest + 1
  question.number = self.newest
  focus.count_presses(true)
  self.came_at[question] = focus.presses()
  -- A refused edit comes back to the place of its question.
  table.insert(self.questions, question.refused_edit and 1 or #self.questions + 1, question)
end

--- Moves hidden questions that no turn waits for to the end of the queue.
function Queue:sort()
  local first, last = {}, {}
  for _, question in ipairs(self.questions) do
    table.insert(question.hidden and not question.kind.holds_turn and last or first, question)
  end
  self.questions = vim.list_extend(first, last)
end

--- Removes settled questions.
---@param settled table<integer, any> by the ids of the questions
---@return integer[] ids of the questions that were there
function Queue:remove(settled)
  local gone = {}
  self.questions = vim.tbl_filter(function(question)
    if settled[question.id] == nil then
      return true
    end
    gone[#gone + 1] = question.id
    return false
  end, self.questions)
  if #gone > 0 then
    focus.count_presses(self.questions[1] ~= nil)
  end
  return gone
end

--- Removes all questions and returns them.
---@return co.Question[]
function Queue:clear()
  local gone = self.questions
  self.questions = {}
  focus.count_presses(false)
  return gone
end

--- Notes that the question on the screen is removed, and that the person did not answer it.
function Queue:note_loss()
  self.lost_at = focus.presses()
end

--- Returns true if a question has replaced another one on the screen, and the person now presses the first key since
--- then.
---@param question co.Question
---@return boolean
function Queue:has_replaced(question)
  local before = focus.presses() - 1
  return self.lost_at ~= nil and self.lost_at >= before and self.came_at[question] >= before
end

return M
