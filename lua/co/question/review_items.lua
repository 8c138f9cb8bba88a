--- The files that reviews are about, and the answers to their hunks.
local M = {}

local backend = require('co.backend')
local review_state = require('co.question.review_state')
local review_words = require('co.question.review_words')

--- A change that is reviewed: that of a question, one of its files, or a file of `/changes`.
---@class co.ReviewItem
---@field id integer|string
---@field number integer|string for the name of the buffer
---@field chat? integer
---@field change? co.Change
---@field question? co.Question the question about several files, of which this is one
---@field source? co.review.Source nil: it belongs to a question of the queue

-- The files of questions about several.
---@type table<co.Question, co.ReviewItem[]>
local files = setmetatable({}, { __mode = 'k' })

-- The answers to items that still wait, by the ids of the items.
---@type table<integer|string, co.review.State>
local states = {}

--- Returns the items of a question: one for each file that it changes; none if they have no hunks to review.
---@param question co.Question
---@return co.ReviewItem[]
function M.of(question)
  local item = question --[[@as co.ReviewItem]]
  if not files[question] then
    local items = { item }
    for index, change in ipairs(item.change and item.change.files or {}) do
      items[index] = {
        id = ('%d.%d'):format(question.id, index),
        number = question.number,
        chat = item.chat,
        change = change,
        question = question,
      }
    end
    local possible = true
    for _, each in ipairs(items) do
      local change = each.change
      possible = possible and change ~= nil and change.text ~= nil and change.hunks[1] ~= nil
    end
    files[question] = possible and items or {}
  end
  return files[question]
end

--- Returns the answers to an item, with those that the person gave before.
---@param item co.ReviewItem
---@return co.review.State
function M.state(item)
  local words = item.source and item.source.words or review_words.question
  states[item.id] = states[item.id] or review_state.new(item.change --[[@as co.Change]], words)
  return states[item.id]
end

--- Returns the number of answered hunks of an item.
---@param item co.ReviewItem
---@return integer
function M.count(item)
  local state = states[item.id]
  return state and #state.hunks - #review_state.open(state) or 0
end

--- Returns the first of some items whose hunks are not all answered.
---@param items co.ReviewItem[]
---@return co.ReviewItem?
function M.unanswered(items)
  for _, item in ipairs(items) do
    local change = item.change --[[@as co.Change]]
    if M.count(item) < #change.hunks then
      return item
    end
  end
end

--- Returns the answers to the hunks of all these items, in their order. A hunk without an answer is accepted.
---@param items co.ReviewItem[]
---@return co.HunkAnswer[]
function M.answers(items)
  local hunks = {}
  for _, item in ipairs(items) do
    vim.list_extend(hunks, review_state.result(M.state(item)))
  end
  return hunks
end

--- Returns whether the person has answered parts of a question.
---@param question co.Question
---@return boolean
function M.is_begun(question)
  for _, item in ipairs(M.of(question)) do
    local state = states[item.id]
    if state and next(state.answers) then
      return true
    end
  end
  return false
end

--- Forgets the answers to an item, or to all files of a question.
---@param id integer|string
function M.forget(id)
  for key in pairs(states) do
    if key == id or vim.startswith(tostring(key), id .. '.') then
      states[key] = nil
    end
  end
end

backend.on_exit(function()
  states = {}
end)

return M
