--- The kind of question about a command, or about text for the input of a job.
local kind = require('co.question.kind')
local printable = require('co.ui.printable')
local question_text = require('co.question.float_text')

-- The longest command that the person can edit, in bytes: no shell takes a longer one.
local LONGEST_EDITED = 128 * 1024

--- Answers a question, if it still waits.
---@param question co.CommandQuestion
---@param decision co.Decision
---@param extra? co.AnswerDetails
---@return boolean
local function answer(question, decision, extra)
  return require('co.question').answer(question.id, decision, extra)
end

--- Answers the question for which the person wrote a text. A notice tells if it was withdrawn meanwhile.
---@param question co.CommandQuestion
---@param decision co.Decision
---@param extra co.AnswerDetails
local function answer_with(question, decision, extra)
  if not answer(question, decision, extra) then
    require('co.ui.notify').warn('nothing was sent: the question was withdrawn meanwhile')
  end
end

---@type table<string, fun(question: co.CommandQuestion, float: co.Float)>
local question_keys = {
  y = function(question)
    answer(question, 'once')
  end,
  n = function(question)
    answer(question, 'deny')
  end,
  N = function(question)
    local about = { title = 'No, because', text = '', single = true }
    require('co.question.text_input').open(about, function(reason)
      answer_with(question, 'deny', { reason = reason ~= '' and reason or nil })
    end)
  end,
  a = function(question, float)
    if question.only_once then
      require('co.ui.notify').info('no answer holds for later calls here: each one asks')
    else
      float:show_page('menu')
    end
  end,
  t = function(question)
    if question.may_try then
      answer(question, 'try')
    end
  end,
  T = function(question)
    if question.may_try then
      answer(question, 'try_first')
    end
  end,
  r = function(question)
    if question.tried then
      answer(question, 'real')
    end
  end,
  e = function(question)
    if question.job then
      -- The model must know the text that is typed into its job. With N the person tells it.
      return
    end
    local refused = question.refused_edit
    local text = refused and refused.command or question.command
    if #text > LONGEST_EDITED then
      require('co.ui.notify').info('the command is too long to be edited here')
      return
    end
    local about = { title = 'Run instead', text = text, single = false }
    require('co.question.text_input').open(about, function(command)
      if printable.trim(command) ~= '' then
        answer_with(question, 'edited', { command = command })
      end
    end)
  end,
}

--- Returns the action of a key of the menu of `always`, for all kinds of question.
---@param key string
---@return fun(question: co.CommandQuestion)
local function choose_scope(key)
  return function(question)
    for _, scope in ipairs(question.kind.scopes(question)) do
      if scope.key == key then
        answer(question, 'always', { scope = scope.scope })
        return
      end
    end
  end
end

---@type table<string, fun(question: co.CommandQuestion)>
local menu_keys = {}
for _, key in ipairs({ 'c', 'p', 's', 'm', 'M', 'f', 'E' }) do
  menu_keys[key] = choose_scope(key)
end

return kind.new({
  keys = { question = question_keys, menu = menu_keys },
  text = question_text.question,
  help = function(question)
    return question_text.help('edit', question)
  end,
  folded = question_text.question,
  footer = function(question)
    local entries = question_text.answers(question)
    if question.may_try then
      entries[#entries + 1] = { 't', 'try first' }
    end
    if not question.job then
      entries[#entries + 1] = { 'e', 'edit' }
    end
    return question_text.footer(entries)
  end,
  entry = function(question)
    local about = { ('chat %d'):format(question.chat), question_text.place(question) }
    about[#about + 1] = question_text.conditions(question)
    if question.job then
      about[#about + 1] = ('typed into job %d'):format(question.job)
    end
    return {
      command = question.command,
      about = table.concat(about, ' · '),
      not_approved_because = question.kind.alone(question),
    }
  end,
  scopes = question_text.scopes,
})
