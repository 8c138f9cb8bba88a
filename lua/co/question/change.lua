--- The kind of question about a change of a file.
local command = require('co.question.command')
local change_text = require('co.question.change_text')
local counts = require('co.question.change_rows').counts
local kind = require('co.question.kind')
local printable = require('co.ui.printable')
local question_text = require('co.question.float_text')
local review = require('co.question.review')
local review_items = require('co.question.review_items')
local add = question_text.add

--- Returns the text of the question: the file, the reasons, the facts about the change, and the diff.
---@param question co.CommandQuestion
---@return co.QuestionText
local function text_of(question)
  local change = question.change --[[@as co.Change]]
  ---@type co.QuestionText
  local text = { lines = {}, spans = {} }
  if question.tried then
    text = question_text.question(question)
    add(text, 'diff ' .. counts(change), 'CoApprovalLabel', 0, 4)
  else
    add(text, ('%s  %s'):format(question.command, counts(change)), 'CoApprovalCommand')
    for index, reason in ipairs(question.reasons) do
      add(text, (index == 1 and 'why  ' or '     ') .. reason, 'CoApprovalReason', 5)
    end
    if question.cwd ~= vim.fn.getcwd() then
      -- The chat works in another directory, such as a worktree.
      add(text, 'in   ' .. printable.path(question.cwd), 'CoApprovalLabel', 0, 4)
    end
  end
  change_text.add(text, question)
  return text
end

--- Returns the answer with the answers to parts that the person gave in the review.
---@param question co.CommandQuestion
---@param decision co.Decision
---@param details? co.AnswerDetails
---@return co.Decision
---@return co.AnswerDetails?
local function amend(question, decision, details)
  if decision == 'once' and review_items.is_begun(question) then
    return 'reviewed', { hunks = review_items.answers(review_items.of(question)) }
  end
  return decision, details
end

---@type table<co.QuestionPage, table<string, fun(question: any): boolean?>>
local keys = { question = vim.deepcopy(command.keys.question), menu = command.keys.menu }
keys.question.d = function(question)
  if not review_items.of(question)[1] then
    return false
  end
  review.open_question(question)
  return true
end
keys.question.e = keys.question.d

return kind.new({
  keys = keys,
  text = text_of,
  help = function(question)
    local parts = review_items.of(question)[1] and not question.change.whole
    return question_text.help(parts and 'review' or 'plain', question)
  end,
  footer = function(question)
    return question_text.footer(question_text.answers(question))
  end,
  d = function(question)
    return review_items.of(question)[1] and 'review' or 'all'
  end,
  entry = function(question)
    return {
      command = question.command,
      about = ('%s · %s'):format(kind.asker(question), counts(question.change)),
      not_approved_because = question.kind.alone(question) or 'read the difference first',
    }
  end,
  scopes = command.scopes,
  amend = amend,
})
