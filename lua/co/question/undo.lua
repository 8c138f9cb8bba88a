--- The kind of question of `/undo` and `/redo`: the files that would change.
local change = require('co.question.change')
local kind = require('co.question.kind')
local question_text = require('co.question.float_text')

--- Returns the help page.
---@return co.QuestionText
local function help_text()
  return question_text.question_help({
    { 'y', 'yes: make these changes' },
    { 'n', 'no' },
    { 'd', 'all of it, file by file' },
    { 'Y', 'list all questions' },
  })
end

return kind.new({
  keys = {
    question = {
      y = change.keys.question.y,
      n = change.keys.question.n,
      d = change.keys.question.d,
    },
  },
  text = function(question, page)
    return page == 'help' and help_text() or change.text(question, page)
  end,
  footer = function()
    return question_text.footer({ { 'y', 'yes' }, { 'n', 'no' } })
  end,
  d = change.d,
  entry = change.entry,
})
