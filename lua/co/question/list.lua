--- The list of all questions. `y` approves the questions about commands that are not destructive.
local M = {}

local command_fold = require('co.question.command_fold')
local float_keys = require('co.question.float_keys')
local question_text = require('co.question.float_text')
local windows = require('co.ui.windows')

-- The largest number of rows of a command in the list, and the number of characters in a row.
local SIZE = { rows = 200, columns = 80 }
local TOO_LONG = 'it is too long for this list: answer it alone'

--- The rows of a question in the list.
---@class (exact) co.question_list.Rows
---@field id integer
---@field first integer
---@field last integer
---@field approvable boolean

---@class (exact) co.QuestionList
---@field text co.QuestionText its first line is the heading
---@field rows co.question_list.Rows[]
---@field displayed table<integer, true> the rows that were on the screen
---@field seen table<integer, true> the ids of the questions that were on the screen as a whole
---@field approved integer[] the ids of the questions that `y` approves

--- Adds an entry to the text of the list. Returns whether `y` in the list may approve it.
---@param text co.QuestionText
---@param number integer
---@param entry co.ListEntry
---@return boolean
local function add_entry(text, number, entry)
  local folded = command_fold.fold(entry.command, nil, SIZE)
  local alone = entry.not_approved_because or folded.more and TOO_LONG
  question_text.add(text, '')
  local group = alone and 'CoApprovalDestructive' or 'CoApprovalCommand'
  for index, line in ipairs(folded.lines) do
    local mark = index == 1 and alone and '! ' or '  '
    question_text.put(text, mark .. line.text, group)
  end
  question_text.add(
    text,
    ('%-4s%s'):format((' #%d '):format(number), entry.about),
    'CoApprovalLabel'
  )
  if alone then
    question_text.add(text, '    ' .. alone, 'CoApprovalDestructive')
  end
  return not alone
end

--- Notes the questions that `y` approves, and writes the heading.
---@param list co.QuestionList
local function update_heading(list)
  local ids, unseen, marked = {}, false, false
  for _, rows in ipairs(list.rows) do
    if not rows.approvable then
      marked = true
    elseif list.seen[rows.id] then
      ids[#ids + 1] = rows.id
    else
      unseen = true
    end
  end
  list.approved = ids
  local count = #list.rows
  local y = float_keys.name('y') or 'a yes'
  if #ids == count then
    local these = count == 1 and 'this one' or ('all %d of these'):format(count)
    list.text.lines[1] = ('%s approves %s'):format(y, these)
    return
  end
  local amount = #ids == 0 and 'none of these' or ('%d of these %d'):format(#ids, count)
  local how = {}
  if unseen then
    how[#how + 1] = 'scroll to see the rest'
  end
  if marked then
    how[#how + 1] = 'answer those with ! one by one'
  end
  list.text.lines[1] = ('%s approves %s: %s'):format(y, amount, table.concat(how, ', '))
end

--- Returns the list of these questions. It keeps the rows and ids that an older list has shown.
---@param questions co.Question[]
---@param older? co.QuestionList
---@return co.QuestionList
function M.new(questions, older)
  ---@type co.QuestionList
  local list = {
    text = { lines = { '' }, spans = {} },
    rows = {},
    displayed = {},
    seen = older and older.seen or {},
    approved = {},
  }
  for index, question in ipairs(questions) do
    local entry = question.kind.entry(question)
    local first = #list.text.lines + 1
    local approvable = add_entry(list.text, question.number, entry)
    list.rows[index] = {
      id = question.id,
      first = first,
      last = #list.text.lines,
      approvable = approvable,
    }
  end
  if older and vim.deep_equal(older.rows, list.rows) then
    list.displayed = older.displayed
  end
  update_heading(list)
  return list
end

--- Notes the rows that the window shows: `y` approves only questions that were visible. Returns the heading if it changes.
---@param list co.QuestionList
---@param win integer
---@return string?
function M.note_displayed(list, win)
  local first, last = windows.whole_lines(win)
  if not first then
    return nil
  end
  for number = first, last do
    list.displayed[number] = true
  end
  for _, rows in ipairs(list.rows) do
    local whole = true
    for number = rows.first, rows.last do
      whole = whole and list.displayed[number] ~= nil
    end
    list.seen[rows.id] = list.seen[rows.id] or whole or nil
  end
  local before = #list.approved
  update_heading(list)
  return #list.approved ~= before and list.text.lines[1] or nil
end

return M
