--- The kind of question whether an agent in a terminal of Neovim may use the tools of co.
local command = require('co.question.command')
local kind = require('co.question.kind')
local printable = require('co.ui.printable')
local texts = require('co.question.float_text')
local add = texts.add

--- Returns the text of the question: the agent that asks, and the tools that it would get.
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

return kind.new({
  holds_turn = false,
  keys = { question = kind.keys_of(command, { 'y', 'n', 'N' }) },
  text = text_of,
  help = {
    { 'y', 'yes: it may, in this directory, until the backend of co ends' },
    { 'n', 'no: it may not, until it is started again' },
    { 'N', 'no, with a reason for the agent' },
    { 'Y', 'list all questions' },
  },
  whole = function(question)
    return table.concat(text_of(question).lines, '\n')
  end,
  footer = { { 'y', 'yes' }, { 'n', 'no' }, { 'N', 'no, because' } },
  entry = function(question)
    return {
      command = question.command,
      about = ('in a terminal · %s'):format(printable.path(question.cwd)),
      not_approved_because = 'read first what it would see',
    }
  end,
})
