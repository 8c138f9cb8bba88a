--- The kind of question about sending the text of a file to the model.
local kind = require('co.question.kind')
local printable = require('co.ui.printable')
local texts = require('co.question.float_text')
local add = texts.add

local READ_FIRST = 'its text goes to the model: read it first'
local SERVERS_READ_FIRST = 'it names programs that co starts, or addresses: read it first'

--- Returns the path and the size of the file.
---@param question co.TrustQuestion
---@return string
local function place(question)
  return ('%s · %s'):format(printable.path(question.path), printable.size(question.size))
end

--- Returns the words for when the model gets the text.
---@param question co.TrustQuestion
---@return string
local function occasion(question)
  if question.slash and vim.startswith(question.slash, '@skill:') then
    return 'when its work fits this skill'
  end
  return 'with each ' .. (question.slash or 'prompt')
end

--- Returns whether the file is not sent, but names tool servers.
---@param question co.TrustQuestion
---@return boolean
local function names_servers(question)
  return question.slash == '/mcp'
end

--- Returns the sentence that the person answers.
---@param question co.TrustQuestion
---@return string
local function sentence(question)
  if question.context then
    return ('Send %s to the model? A prompt names this file.'):format(question.name)
  end
  if names_servers(question) then
    return ('Start the tool servers that %s names, with each chat here?'):format(question.name)
  end
  return ('Send the text of %s to the model %s?'):format(question.name, occasion(question))
end

--- Returns the question with the whole text of the file.
---@param question co.TrustQuestion
---@return co.QuestionText
local function question_text(question)
  ---@type co.QuestionText
  local text = { lines = {}, spans = {} }
  add(text, sentence(question))
  add(text, 'file ' .. place(question), 'CoApprovalLabel', 0, 4)
  for _, note in ipairs(question.notes) do
    add(text, 'note ' .. note, 'CoApprovalReason', 5)
  end
  add(text, '')
  texts.add_text(text, question.text)
  return text
end

--- Returns the help page.
---@param question co.TrustQuestion
---@return co.QuestionText
local function help_text(question)
  return texts.key_list({
    {
      'y',
      question.context and 'yes: the model gets it, now and with later prompts of this chat'
        or names_servers(question) and 'yes: co uses them from the next prompt on'
        or ('yes: the model gets this text %s here'):format(occasion(question)),
    },
    {
      'n',
      question.context and 'no: the prompt goes without it'
        or 'no: co asks again when the text changes',
    },
    { 'd', 'all of it, in a larger window' },
    { 'Y', 'list all questions' },
    { 'gN', 'no to all other questions, but for those about trust in a file' },
    { 'q', 'hide: it still waits, :Co /approve brings it back' },
    { 'g?', 'back' },
  })
end

--- Returns the action that gives an answer.
---@param decision co.Decision
---@return fun(question: co.TrustQuestion)
local function answer(decision)
  return function(question)
    require('co.question').answer(question.id, decision)
  end
end

return kind.new({
  holds_turn = false,
  keys = { question = { y = answer('once'), n = answer('deny') } },
  title = function(question)
    return question.name
  end,
  text = question_text,
  help = help_text,
  whole = function(question)
    return question.text
  end,
  footer = function(question)
    return texts.footer({ { 'y', question.context and 'send it' or 'trust it' }, { 'n', 'no' } })
  end,
  -- co asks about a context if it is outside the workspace or may be a secret.
  alone = function(question)
    return question.context and READ_FIRST or nil
  end,
  entry = function(question)
    return {
      command = printable.line(question.command),
      about = place(question),
      not_approved_because = names_servers(question) and SERVERS_READ_FIRST or READ_FIRST,
    }
  end,
})
