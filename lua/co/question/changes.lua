--- The review of what a chat has changed (`/changes`). The parts that the person refuses are taken back.
local M = {}

local backend = require('co.backend')
local review = require('co.question.review')
local review_words = require('co.question.review_words')

-- The review that waits for its end.
---@type { id: integer, items: co.ReviewItem[] }?
local current

--- Sends the answers. Hunks without an answer stay; after a cancel, all do.
---@param cancelled? boolean
local function finish(cancelled)
  local done = current
  current = nil
  if not done then
    return
  end
  local hunks, says = {}, false
  for _, item in ipairs(done.items) do
    for _, hunk in ipairs(review.take(item)) do
      hunks[#hunks + 1] = hunk
      says = says or not hunk.accept or hunk.lines ~= nil or hunk.comment ~= nil
    end
  end
  says = says and not cancelled
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
    for _, item in ipairs(current and current.items or {}) do
      if not review.is_answered(item) then
        return item
      end
    end
    finish()
  end,
  left = function(_, cancelled)
    finish(cancelled)
  end,
}

--- Opens the review.
---@param message co.ChangesReview
function M.open(message)
  ---@type co.ReviewItem[]
  local items = {}
  for index, change in ipairs(message.files) do
    items[index] = {
      id = ('changes %d.%d'):format(message.id, index),
      number = 'changes',
      chat = message.chat,
      change = change,
      source = source,
    }
  end
  current = { id = message.id, items = items }
  vim.cmd.stopinsert()
  review.open(items[1])
end

--- Closes the review, if it no longer waits for answers.
---@param message co.Settled
function M.settle(message)
  local ended = current
  if not ended or ended.id ~= message.id then
    return
  end
  current = nil
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
