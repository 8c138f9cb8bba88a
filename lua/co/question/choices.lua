--- The kind of question with choices. The model may ask it, and then no answer approves a call. An agent may ask it for
--- a permission.
local change_text = require('co.question.change_text')
local command = require('co.question.command')
local counts = require('co.question.change_rows').counts
local focus = require('co.ui.focus')
local kind = require('co.question.kind')
local notify = require('co.ui.notify')
local printable = require('co.ui.printable')
local question_text = require('co.question.float_text')
local review = require('co.question.review')
local review_items = require('co.question.review_items')
local utf8 = require('co.ui.utf8')
local add = question_text.add

local NO_YES = 'it asks you to choose, in the float'

-- The smallest size of the question's text. It keeps this size even if some choices do not fit below it.
local LEAST = { rows = 3, columns = 48 }

-- The largest number of choices that have a key. The person can type the number of another choice as an answer.
local MOST_KEYS = 9

--- The answers to the questions so far.
---@class (exact) co.choices.Progress
---@field given co.ChosenAnswer[]
---@field marked table<integer, true> the chosen choices of the current question, if it allows several

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

--- Takes the answer to the shown question. Then shows the next question, or sends the answers to all questions.
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

--- Returns the number of the choice that a plain yes, such as the key `y`, chooses; nil if only a number chooses.
---@param question co.CommandQuestion
---@return integer?
local function yes_of(question)
  for number, choice in ipairs(shown(question).choices) do
    if choice.is_yes then
      return number
    end
  end
  return nil
end

--- Returns true if the person may answer a question with a typed text.
---@param asked co.ChoiceQuestion
---@return boolean
local function takes_words(asked)
  return asked.kind == 'model' or asked.kind == 'form'
end

--- Returns the number that the person typed, if it is the number of a choice and not every choice has a key. Returns
--- nil for any other text.
---@param asked co.ChoiceQuestion
---@param text string
---@return integer?
local function typed_number(asked, text)
  local word = printable.trim(text)
  local number = #asked.choices > MOST_KEYS and word:match('^%d+$') and tonumber(word) --[[@as integer?]]
  for _, choice in ipairs(asked.choices) do
    if choice.label == word then
      return nil
    end
  end
  return number and asked.choices[number] and number or nil
end

---@type table<string, fun(question: co.CommandQuestion, float: co.Float): boolean?>
local question_keys = {
  y = function(question)
    local number = yes_of(question)
    if number then
      give(question, { choices = { number } })
    end
  end,
  n = command.keys.question.n,
  N = function(question, float)
    local asked = shown(question)
    if asked.kind == 'model' or asked.kind == 'permission' then
      command.keys.question.N(question, float)
    end
  end,
  e = function(question)
    local asked, number = shown(question)
    local words = takes_words(asked)
    if not words and #asked.choices <= MOST_KEYS then
      return
    end
    local about = { title = words and 'Answer' or 'Number', text = '', single = true }
    require('co.question.text_input').open(about, function(text)
      local _, now = shown(question)
      local chosen = typed_number(asked, text)
      local waits = vim.list_contains(require('co.question').pending(), question)
      if text == '' then
        return
      elseif not utf8.valid(text) then
        notify.error('not sent: the answer is not all UTF-8; write it otherwise')
      elseif not waits or now ~= number then
        notify.warn('nothing was sent: the question was withdrawn meanwhile')
      elseif chosen then
        choose(chosen)(question)
      elseif not words then
        notify.error(('not sent: type a number from 1 to %d'):format(#asked.choices))
      else
        give(question, { choices = {}, text = text })
      end
    end)
  end,
  d = function(question)
    if not review_items.of(question)[1] then
      return false
    end
    review.open_question(question)
    return true
  end,
  ['<CR>'] = function(question)
    if shown(question).several then
      local numbers = vim.tbl_keys(progress_of(question).marked)
      table.sort(numbers)
      give(question, { choices = numbers })
    end
  end,
}
for number = 1, MOST_KEYS do
  question_keys[tostring(number)] = choose(number)
end

--- Returns the file of a change, or the number of files, with the numbers of lines.
---@param change co.Change
---@return string
local function changed_files(change)
  local files = change.files
  local what = #files == 1 and files[1].path or ('%d files'):format(#files)
  return ('%s  %s'):format(what, counts(change))
end

--- Returns the question with its choices, and the change that it is about.
---@param question co.CommandQuestion
---@param size? { rows: integer, columns: integer } the most of the question, without its choices
---@return co.QuestionText
local function text_of(question, size)
  ---@type co.QuestionText
  local text = { lines = {}, spans = {} }
  local asked, number = shown(question)
  local marked = progress_of(question).marked
  if #question.choices > 1 then
    add(text, ('%d of %d'):format(number, #question.choices), 'CoApprovalLabel')
  end
  local most = size
    and {
      rows = math.max(size.rows, LEAST.rows),
      columns = math.max(size.columns, LEAST.columns),
    }
  question_text.add_command(text, { command = asked.question }, most)
  if not most or most.rows > LEAST.rows then
    add(text, '')
  end
  for index, choice in ipairs(asked.choices) do
    local mark = asked.several and (marked[index] and '[x] ' or '[ ] ') or ''
    local advised = choice.advised and ' (advised)' or ''
    local to = 1 + #tostring(index)
    add(text, (' %d  %s%s%s'):format(index, mark, choice.label, advised), 'CoApprovalKey', 1, to)
    if choice.about then
      add(text, '    ' .. choice.about, 'CoApprovalLabel')
    end
  end
  if question.change then
    add(text, '')
    add(text, changed_files(question.change), 'CoApprovalCommand')
    change_text.add(text, question)
  end
  return text
end

--- The keys beside the numbers for each kind of question, with their words on the help page and in the footer.
---@type table<string, { [1]: string, [2]: string, footer?: string }[]>
local other_keys = {
  model = {
    { 'e', 'answer in your own words', footer = 'own words' },
    { 'n', 'do not answer', footer = 'no answer' },
    { 'N', 'do not answer, with a reason for the model' },
  },
  form = {
    { 'e', 'answer in your own words', footer = 'own words' },
    { 'n', 'do not answer', footer = 'no answer' },
  },
  permission = {
    { 'n', 'refuse', footer = 'no' },
    { 'N', 'refuse, with words to the agent: they are the next prompt', footer = 'no, because' },
  },
  plain = { { 'n', 'do not answer', footer = 'no answer' } },
}

--- Returns the keys beside the numbers.
---@param question co.CommandQuestion
---@return { [1]: string, [2]: string, footer?: string }[]
local function keys_of(question)
  local number = yes_of(question)
  local yes = number and { { 'y', ('the same as %d'):format(number), footer = 'yes' } } or {}
  return vim.list_extend(yes, other_keys[shown(question).kind] or other_keys.plain)
end

--- Returns the help page.
---@param question co.CommandQuestion
---@return co.QuestionText
local function help_text(question)
  local entries = keys_of(question)
  local what = question.change and 'review: read each change' or 'all of it, in a larger window'
  entries[#entries + 1] = { 'd', what }
  entries[#entries + 1] = { 'Y', 'list all questions' }
  return question_text.question_help(entries)
end

return kind.new({
  keys = { question = question_keys },
  text = text_of,
  help = help_text,
  folded = text_of,
  whole = function(question)
    return table.concat(text_of(question).lines, '\n')
  end,
  footer = function(question)
    local asked = shown(question)
    local numbers = ('1-%d'):format(math.min(#asked.choices, MOST_KEYS))
    local entries = {}
    if #asked.choices > MOST_KEYS then
      entries[1] = { 'e', takes_words(asked) and 'number or own words' or 'number' }
    end
    for _, entry in ipairs(keys_of(question)) do
      if entry.footer and not (entries[1] and entry[1] == 'e') then
        entries[#entries + 1] = { entry[1], entry.footer }
      end
    end
    local long, brief = question_text.footer(entries)
    if #asked.choices == 0 then
      return long, brief
    end
    if asked.several then
      return ('%s marks · <CR> sends · %s'):format(numbers, long), numbers .. ' <CR> ' .. brief
    end
    return ('%s · %s'):format(numbers, long), numbers .. ' ' .. brief
  end,
  d = function(question)
    return review_items.of(question)[1] and 'review' or 'all'
  end,
  alone = function(question)
    return not yes_of(question) and NO_YES or nil
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
