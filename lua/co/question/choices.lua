--- The kind of question with choices: of the model, where no answer approves anything, or of an agent that asks for permission.
local command = require('co.question.command')
local focus = require('co.ui.focus')
local kind = require('co.question.kind')
local notify = require('co.ui.notify')
local printable = require('co.ui.printable')
local question_text = require('co.question.float_text')
local utf8 = require('co.ui.utf8')
local add = question_text.add

local NO_YES = 'it asks you to choose, in the float'

--- The answers to the questions so far.
---@class (exact) co.choices.Progress
---@field given co.ChosenAnswer[]
---@field marked table<integer, true> the choices of the present question, if it takes several

---@type table<co.CommandQuestion, co.choices.Progress>
local progress = setmetatable({}, { __mode = 'k' })

--- Returns the answers so far.
---@param question co.CommandQuestion
---@return co.choices.Progress
local function progress_of(question)
  progress[question] = progress[question] or { given = {}, marked = {} }
  return progress[question]
end

--- Returns the question that is shown, and its number.
---@param question co.CommandQuestion
---@return co.ChoiceQuestion
---@return integer number
local function shown(question)
  local questions = question.choices --[[@as co.ChoiceQuestion[] ]]
  local number = math.min(#progress_of(question).given + 1, #questions)
  return questions[number], number
end

--- Takes the answer to the question that is shown. Shows the next one, or sends all answers.
---@param question co.CommandQuestion
---@param answer co.ChosenAnswer
local function give(question, answer)
  local queue = require('co.question')
  local now = progress_of(question)
  now.given[#now.given + 1] = answer
  now.marked = {}
  if #now.given == #question.choices then
    queue.answer(question.id, 'chosen', { chosen = now.given })
  else
    -- A key that was typed for the last question must not answer this one.
    focus.ignore_keys('person')
    queue.show(question.id)
  end
end

--- Returns the action of a number key.
---@param number integer
---@return fun(question: co.CommandQuestion)
local function choose(number)
  return function(question)
    local asked = shown(question)
    if not asked.choices[number] then
      return
    elseif not asked.several then
      give(question, { choices = { number } })
      return
    end
    local marked = progress_of(question).marked
    marked[number] = not marked[number] or nil
    require('co.question').show(question.id)
  end
end

---@type table<string, fun(question: co.CommandQuestion)>
local question_keys = {
  n = command.keys.question.n,
  N = command.keys.question.N,
  e = function(question)
    local _, number = shown(question)
    local about = { title = 'Answer', text = '', single = true }
    require('co.question.text_input').open(about, function(text)
      local _, now = shown(question)
      local waits = vim.list_contains(require('co.question').pending(), question)
      if text == '' then
        return
      elseif not utf8.valid(text) then
        notify.error('not sent: the answer is not all UTF-8; write it otherwise')
      elseif not waits or now ~= number then
        notify.warn('nothing was sent: the question was withdrawn meanwhile')
      else
        give(question, { choices = {}, text = text })
      end
    end)
  end,
  ['<CR>'] = function(question)
    if shown(question).several then
      local numbers = vim.tbl_keys(progress_of(question).marked)
      table.sort(numbers)
      give(question, { choices = numbers })
    end
  end,
}
for number = 1, 9 do
  question_keys[tostring(number)] = choose(number)
end

--- Returns the question with its choices.
---@param question co.CommandQuestion
---@return co.QuestionText
local function text_of(question)
  ---@type co.QuestionText
  local text = { lines = {}, spans = {} }
  local asked, number = shown(question)
  local marked = progress_of(question).marked
  if #question.choices > 1 then
    add(text, ('%d of %d'):format(number, #question.choices), 'CoApprovalLabel')
  end
  for _, line in ipairs(vim.split(asked.question, '\n', { plain = true })) do
    add(text, line, 'CoApprovalCommand')
  end
  add(text, '')
  for index, choice in ipairs(asked.choices) do
    local mark = asked.several and (marked[index] and '[x] ' or '[ ] ') or ''
    local advised = choice.advised and ' (advised)' or ''
    add(text, (' %d  %s%s%s'):format(index, mark, choice.label, advised), 'CoApprovalKey', 1, 2)
    if choice.about then
      add(text, '    ' .. choice.about, 'CoApprovalLabel')
    end
  end
  return text
end

--- Returns the help page.
---@return co.QuestionText
local function help_text()
  return question_text.question_help({
    { 'n', 'do not answer' },
    { 'N', 'do not answer, with a reason for the model' },
    { 'e', 'answer in your own words' },
    { 'd', 'all of it, in a larger window' },
    { 'Y', 'list all questions' },
  })
end

return kind.new({
  keys = { question = question_keys },
  text = function(question, page)
    return page == 'help' and help_text() or text_of(question)
  end,
  footer = function(question)
    local asked = shown(question)
    local numbers = ('1-%d'):format(#asked.choices)
    local long, brief = question_text.footer({ { 'e', 'own words' }, { 'n', 'no answer' } })
    if asked.several then
      return ('%s marks · <CR> sends · %s'):format(numbers, long), numbers .. ' <CR> ' .. brief
    end
    return ('%s · %s'):format(numbers, long), numbers .. ' ' .. brief
  end,
  alone = function()
    return NO_YES
  end,
  entry = function(question)
    return {
      command = printable.line(question.command),
      about = ('chat %d'):format(question.chat),
      not_approved_because = NO_YES,
    }
  end,
  takes = { chosen = true, deny = true },
})
