--- The files that reviews are about, and the answers to their hunks.
local M = {}

local backend = require('co.backend')
local review_state = require('co.question.review_state')
local review_words = require('co.question.review_words')

--- A file that is reviewed: a file of a question, of `/changes` or of `/review`.
---@class co.ReviewItem
---@field id string
---@field number string for the name of the buffer
---@field chat? integer|string the chat, or the run of the person
---@field change co.FileChange
---@field request integer the id of the message that has the file
---@field file integer its place in that message, from 0
---@field whole? boolean the person cannot answer single parts, only the question about all changes
---@field question? co.Question
---@field source? co.review.Source nil: it belongs to a question of the queue

-- The files of questions.
---@type table<co.Question, co.ReviewItem[]>
local files = setmetatable({}, { __mode = 'k' })

-- The answers to items that still wait, by the ids of the items.
---@type table<string, co.review.State>
local states = {}

--- Returns the items of a question: one item for each file of the change. The list is empty if the change has too many
--- files for a review.
---@param question co.Question
---@return co.ReviewItem[]
function M.of(question)
  local asked = question --[[@as co.CommandQuestion]]
  local change = asked.change
  if not files[question] then
    local items = {}
    for index, file in ipairs(change and change.files or {}) do
      items[index] = {
        id = ('%d.%d'):format(question.id, index),
        number = index == 1 and tostring(question.number)
          or ('%d.%d'):format(question.number, index),
        chat = asked.chat or asked.agent or asked.run and 'run ' .. asked.run,
        change = file,
        request = question.id,
        file = index - 1,
        whole = change and change.whole,
        question = question,
      }
    end
    files[question] = items
  end
  return files[question]
end

--- Returns the state of the answers to an item, including the answers that the person gave before.
---@param item co.ReviewItem
---@return co.review.State
function M.state(item)
  local words = item.source and item.source.words or review_words.question
  words = item.whole and review_words.whole or words
  states[item.id] = states[item.id] or review_state.new(item.change, words)
  return states[item.id]
end

--- Returns the number of answered parts of an item.
---@param item co.ReviewItem
---@return integer
function M.count(item)
  local state = M.state(item)
  return state.parts - #review_state.open(state)
end

--- Returns the first of some items whose parts are not all answered.
---@param items co.ReviewItem[]
---@param after? co.ReviewItem those behind it come first
---@return co.ReviewItem?
function M.unanswered(items, after)
  ---@type co.ReviewItem?
  local first
  local behind = not after
  for _, item in ipairs(items) do
    local open = M.count(item) < item.change.parts
    if open and behind then
      return item
    end
    first = first or open and item or nil
    behind = behind or item.id == (after --[[@as co.ReviewItem]]).id
  end
  return first
end

--- Returns the answers to the parts of all these items, in their order. A part without an answer is accepted.
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
