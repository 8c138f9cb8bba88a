--- The reviews of changes: one file after the other is open in a tab page.
local M = {}

local api = vim.api
local focus = require('co.ui.focus')
local notify = require('co.ui.notify')
local review_items = require('co.question.review_items')
local review_page = require('co.question.review_page')
local review_words = require('co.question.review_words')

---@alias co.review.Leave 'end'|'cancel'|'close' the key `q`, the key `<C-c>`, another way

--- A set of changes that the person reviews together, and the callbacks for the answers.
---@class (exact) co.review.Source
---@field words co.review.Words
---@field items fun(): co.ReviewItem[]
---@field opened fun(item: co.ReviewItem)
---@field answered fun(item: co.ReviewItem): co.ReviewItem? takes the answers to all parts; returns the next item
---@field changed? fun(item: co.ReviewItem) the person changed an answer
---@field left fun(item: co.ReviewItem, by: co.review.Leave) the person closed the review

--- The reviews of this Neovim.
---@class (exact) co.Reviews
---@field private page? co.Review the review that is open
---@field private numbered string[] the ids of all files of this series of reviews, including the answered files
local Reviews = {}
Reviews.__index = Reviews

--- Returns the files of the questions that can be reviewed, in their order.
---@return co.ReviewItem[]
local function reviewable()
  local items = {}
  for _, question in ipairs(require('co.question').pending()) do
    vim.list_extend(items, review_items.of(question))
  end
  return items
end

--- Returns the question that an item belongs to.
---@param item co.ReviewItem
---@return co.Question
local function question_of(item)
  return item.question or item --[[@as co.Question]]
end

--- The questions about changes.
---@type co.review.Source
local queue = {
  words = review_words.question,
  items = reviewable,
  opened = function(item)
    require('co.question').put_away(question_of(item).id)
  end,
  answered = function(item)
    local question = question_of(item)
    local items = review_items.of(question)
    local other = review_items.unanswered(items, item)
    if other then
      return other
    end
    local hunks = review_items.answers(items)
    if not require('co.question').answer(question.id, 'reviewed', { hunks = hunks }) then
      notify.warn('nothing was sent: the question was withdrawn meanwhile')
    end
    review_items.forget(question.id)
    local next = reviewable()[1]
    return next and next.chat == item.chat and next or nil
  end,
  left = function(item)
    require('co.question').show(question_of(item).id)
  end,
}

---@param item co.ReviewItem
---@return co.review.Source
local function source_of(item)
  return item.source or queue
end

--- Returns the number of a file in this series of reviews, and the number of all files in it. A file keeps its number
--- after its answer. The series ends when none of its files waits.
---@param item co.ReviewItem
---@param waiting co.ReviewItem[] those without an answer
---@return integer number
---@return integer count
function Reviews:number_of(item, waiting)
  local still = vim.tbl_filter(function(other)
    return vim.list_contains(self.numbered, other.id)
  end, waiting)
  self.numbered = #still > 0 and self.numbered or {}
  for _, other in ipairs(waiting) do
    if not vim.list_contains(self.numbered, other.id) then
      self.numbered[#self.numbered + 1] = other.id
    end
  end
  for index, id in ipairs(self.numbered) do
    if id == item.id then
      return index, #self.numbered
    end
  end
  return 1, #self.numbered
end

--- Returns the review that is open.
---@return co.Review?
function Reviews:current()
  return self.page and not self.page.closed and self.page or nil
end

--- Takes the next part of the text of a file under review.
---@param part co.ReviewPart
function Reviews:receive(part)
  local review = self:current()
  if review and review.item.request == part.id and review.item.file == part.file then
    review:receive(part)
  end
end

--- Opens the review of a change. Closes the review that is open.
---@param item co.ReviewItem
---@param by? co.focus.By nil: a key for it
---@param from? integer the tab page to go back to
---@param goal? integer the part to go to; nil: the first one without an answer
function Reviews:open(item, by, from, goal)
  from = from or api.nvim_get_current_tabpage()
  local source = source_of(item)
  source.opened(item)
  local other = self:current()
  if other then
    local inside = api.nvim_get_current_buf() == other.buf
    from = inside and other.from or from
    other:close()
    if source_of(other.item) ~= source then
      source_of(other.item).left(other.item, 'close')
    end
  end
  self.page = review_page.open(item, source, self, from, goal)
  if by then
    focus.ignore_keys(by)
  end
  self.page:show()
end

--- Closes the review of an item that no longer waits, and forgets its answers.
---@param id integer|string
function Reviews:settled(id)
  review_items.forget(id)
  local review = self:current()
  if review and (review.item.id == id or question_of(review.item).id == id) then
    review:close()
    notify.warn('the review was closed: its question no longer waits')
  end
end

---@type co.Reviews
local reviews = setmetatable({ numbered = {} }, Reviews)

--- Takes the next part of the text of a file under review.
---@param part co.ReviewPart
function M.receive(part)
  reviews:receive(part)
end

--- Opens the review of a question about changes.
---@param question co.Question
---@param by? co.focus.By nil: a key for it
function M.open_question(question, by)
  local items = review_items.of(question)
  reviews:open(review_items.unanswered(items) or items[1], by)
end

--- Opens the review of a change.
---@param item co.ReviewItem
---@param by? co.focus.By nil: a key for it
function M.open(item, by)
  reviews:open(item, by)
end

--- Closes the review of an item that no longer waits, and forgets its answers.
---@param id integer|string
function M.settled(id)
  reviews:settled(id)
end

api.nvim_create_autocmd('User', {
  group = api.nvim_create_augroup('co.review', {}),
  pattern = 'CoApprovalResolved',
  callback = function(event)
    reviews:settled(event.data.id)
  end,
})

return M
