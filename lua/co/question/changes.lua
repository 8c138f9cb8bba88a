--- The review of what a chat has changed (`/changes`). The parts that the person refuses are taken back.
local M = {}

local backend = require('co.backend')
local focus = require('co.ui.focus')
local review = require('co.question.review')
local review_items = require('co.question.review_items')
local review_words = require('co.question.review_words')

-- The review that waits for its end.
---@type { id: integer, items: co.ReviewItem[] }?
local current

--- Sends the answers. Parts without an answer stay; after a cancel, all do.
---@param cancelled? boolean
local function finish(cancelled)
  local done = current
  current = nil
  if not done then
    return
  end
  local hunks, says = review_items.answers(done.items), false
  for _, hunk in ipairs(hunks) do
    says = says or not hunk.accept or hunk.lines ~= nil or hunk.comment ~= nil
  end
  says = says and not cancelled
  review_items.forget(('changes %d'):format(done.id))
  backend.send_if_running({
    type = 'answer',
    id = done.id,
    decision = says and 'reviewed' or 'deny',
    hunks = says and hunks or nil,
  })
end

---@type co.review.Source
local source = {
  words = review_words.made,
  items = function()
    return current and current.items or {}
  end,
  opened = function() end,
  answered = function()
    local next = review_items.unanswered(current and current.items or {})
    if not next then
      finish()
    end
    return next
  end,
  left = function(_, cancelled)
    finish(cancelled)
  end,
}

--- The name of the review in a notice.
local NAME = 'the review of /changes'

--- Opens the review, or offers it to a person who does something else by now.
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
      source = source,
    }
  end
  local opened = { id = message.id, items = items }
  current = opened
  focus.offer(NAME, function(by)
    if current == opened then
      vim.cmd.stopinsert()
      review.open(items[1], by)
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
  focus.withdraw(NAME)
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
