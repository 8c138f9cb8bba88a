--- The kind of question whether an agent in a terminal of Neovim may use the tools of co.
local kind = require('co.question.kind')
local printable = require('co.ui.printable')
local texts = require('co.question.float_text')
local add = texts.add

--- Returns the question: who asks, and what it gets.
---@param question co.CommandQuestion
---@return co.QuestionText
local function text_of(question)
  ---@type co.QuestionText
  local text = { lines = {}, spans = {} }
  local sentence = 'Let %s, in a terminal, use co in %s?'
  add(text, sentence:format(question.agent, printable.path(question.cwd)), 'CoApprovalCommand')
  add(text, '')
  local see = 'see  open files, cursor, diagnostics, quickfix, symbols, references'
  add(text, see, 'CoApprovalLabel', 0, 4)
  add(text, 'do   rename a symbol; co asks you each time', 'CoApprovalLabel', 0, 4)
  add(text, 'note no secrets, and nothing outside this directory', 'CoApprovalLabel', 0, 4)
  return text
end

--- Returns the help page.
---@return co.QuestionText
local function help_text()
  return texts.question_help({
    { 'y', 'yes: it may, in this directory, until the backend of co ends' },
    { 'n', 'no: it may not, until it is started again' },
    { 'N', 'no, with a reason for the agent' },
    { 'Y', 'list all questions' },
  })
end

---@type table<string, fun(question: any): boolean?>
local keys = {}
for _, key in ipairs({ 'y', 'n', 'N' }) do
  keys[key] = require('co.question.command').keys.question[key]
end

return kind.new({
  holds_turn = false,
  keys = { question = keys },
  text = function(question, page)
    return page == 'help' and help_text() or text_of(question)
  end,
  whole = function(question)
    return table.concat(text_of(question).lines, '\n')
  end,
  footer = function()
    return texts.footer({ { 'y', 'yes' }, { 'n', 'no' }, { 'N', 'no, because' } })
  end,
  entry = function(question)
    return {
      command = question.command,
      about = ('in a terminal · %s'):format(printable.path(question.cwd)),
      not_approved_because = 'read first what it would see',
    }
  end,
})
