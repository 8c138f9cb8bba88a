--- The review of the changes of a chat: of all changes (`/changes`), or only of the changes without an answer
--- (`/review`). co undoes the parts that the person refuses.
local M = {}

local answer = require('co.question.answer')
local backend = require('co.backend')
local focus = require('co.ui.focus')
local review = require('co.question.review')
local review_items = require('co.question.review_items')
local review_state = require('co.question.review_state')
local review_words = require('co.question.review_words')

-- The review that waits for its end.
---@type { id: integer, round: boolean, items: co.ReviewItem[] }?
local current

--- Ends the review and sends the answers. A part without an answer stays. After a cancel, all parts stay.
---
--- In a review of a round, the backend already has the answers. It keeps them if the person only closed the review.
---@param by co.review.Leave
local function finish(by)
  local done = current
  current = nil
  if not done then
    return
  elseif done.round then
    review_items.forget(('changes %d'):format(done.id))
    local decision = by == 'end' and 'reviewed' or 'deny'
    answer.send(done.id, decision)
    return
  end
  local hunks, says = review_items.answers(done.items), false
  for _, hunk in ipairs(hunks) do
    says = says or not hunk.accept or hunk.lines ~= nil or hunk.comment ~= nil
  end
  says = says and by ~= 'cancel'
  review_items.forget(('changes %d'):format(done.id))
  answer.send(done.id, says and 'reviewed' or 'deny', { hunks = says and hunks or nil })
end

---@type co.review.Source
local made = {
  words = review_words.made,
  items = function()
    return current and current.items or {}
  end,
  opened = function() end,
  answered = function(item)
    local next = review_items.unanswered(current and current.items or {}, item)
    if not next then
      finish('end')
    end
    return next
  end,
  left = function(_, by)
    finish(by)
  end,
}

---@type co.review.Source
local round = vim.tbl_extend('force', made, {
  words = review_words.round,
  changed = function(item)
    backend.send_if_running({
      type = 'keep_answers',
      id = item.request,
      file = item.file,
      answers = review_state.given(review_items.state(item)),
    })
  end,
})

--- The name of the review in a notice, without the command.
local NAME = 'the review of /%s'

---@param is_round boolean
---@return string
local function name(is_round)
  return NAME:format(is_round and 'review' or 'changes')
end

--- Opens the review. If the person does something else by now, offers the review.
---@param message co.ChangesReview
function M.open(message)
  ---@type co.ReviewItem[]
  local items = {}
  for index, change in ipairs(message.files) do
    items[index] = {
      id = ('changes %d.%d'):format(message.id, index),
      number = index == 1 and 'changes' or ('changes.%d'):format(index),
      chat = message.chat,
      change = change,
      request = message.id,
      file = index - 1,
      source = message.round and round or made,
    }
  end
  local opened = { id = message.id, round = message.round or false, items = items }
  current = opened
  focus.offer(name(opened.round), function(by)
    if current == opened then
      vim.cmd.stopinsert()
      review.open(review_items.unanswered(items) or items[1], by)
    end
  end)
end

--- Closes the review, if it no longer waits for answers.
---@param message co.Settled
function M.settle(message)
  local ended = current
  if not ended or ended.id ~= message.id then
    return
  end
  current = nil
  focus.withdraw(name(ended.round))
  for _, item in ipairs(ended.items) do
    review.settled(item.id)
  end
end

backend.on_exit(function()
  if current then
    M.settle({ type = 'settled', id = current.id, decision = 'withdrawn' })
  end
end)

return M
