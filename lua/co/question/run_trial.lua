--- The kind of question about a command of the person that ran as a trial (`:Co! ++try`).
local change = require('co.question.change')
local counts = require('co.question.change_rows').counts
local kind = require('co.question.kind')
local question_text = require('co.question.float_text')

--- Returns the keys for the answers, with their meaning for a question.
---@param question co.CommandQuestion
---@return [string, string][]
local function answers(question)
  local own = { y = true, n = true, r = true }
  return vim.tbl_filter(function(answer)
    return own[answer[1]] == true
  end, question_text.answers(question))
end

--- Returns the help page.
---@param question co.CommandQuestion
---@return co.QuestionText
local function help_text(question)
  local parts = question.change and not question.change.whole
  local again = question.tried and question.tried.runs_again
  return question_text.question_help({
    { 'y', again and 'yes: run it for real' or 'yes: keep all changes' },
    { 'n', 'no: drop what the trial changed' },
    { 'r', 'run it for real; what the trial changed is dropped' },
    { 'd', parts and 'review: answer each change' or 'all of it, in a larger window' },
    { 'Y', 'list all questions' },
  })
end

return kind.new({
  keys = { question = kind.keys_of(change, { 'y', 'n', 'r', 'd' }) },
  title = function(question)
    return ('run %d'):format(question.run)
  end,
  text = function(question)
    return question.change and change.text(question) or question_text.question(question)
  end,
  help = help_text,
  footer = function(question)
    return question_text.footer(answers(question))
  end,
  d = change.d,
  entry = function(question)
    local what = question.change and counts(question.change) or 'not kept'
    return {
      command = question.command,
      about = ('run %d · tried · %s'):format(question.run, what),
      not_approved_because = question.change and 'read the difference first'
        or 'it would run for real',
    }
  end,
})
