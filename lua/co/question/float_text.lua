--- The texts of the approval float.
local M = {}

local change_rows = require('co.question.change_rows')
local command_fold = require('co.question.command_fold')
local float_keys = require('co.question.float_keys')
local printable = require('co.ui.printable')

-- The most lines and bytes of a text of a question: Neovim draws the float at once.
local MOST_LINES = 500
local MOST_BYTES = 64 * 1024

-- The largest number of command rows that no blank line follows.
local TIGHT = 2

M.DESTRUCTIVE = 'this may delete or overwrite something for good'

--- Adds a line that is printable. The bytes from `from` to `to` get a highlight group.
---@param text co.QuestionText
---@param line string
---@param group? string
---@param from? integer
---@param to? integer
function M.put(text, line, group, from, to)
  text.lines[#text.lines + 1] = line
  if group then
    text.spans[#text.spans + 1] =
      { row = #text.lines - 1, from = from or 0, to = to or #line, group = group }
  end
end

local put = M.put

--- Adds a line of any text, like `put`. A line break in it is shown as `\n`.
---@param text co.QuestionText
---@param line string
---@param group? string
---@param from? integer
---@param to? integer
function M.add(text, line, group, from, to)
  put(text, printable.line(line), group, from, to)
end

local add = M.add

--- Adds a line with the amount of text that was left out, and the key that shows the whole text.
---@param text co.QuestionText
---@param more string
local function add_more(text, more)
  text.partial = true
  local d = float_keys.name('d')
  local how = d and (': %s shows all'):format(d) or ''
  add(text, ('… %s%s'):format(more, how), 'CoApprovalLabel')
end

--- Adds the rows of a change.
---@param text co.QuestionText
---@param change co.Change
function M.add_change(text, change)
  text.rows = {}
  for line in change.excerpt:gmatch('[^\n]+') do
    for index, row in ipairs(change_rows.rows_of(line:sub(2))) do
      put(text, printable.line(row, change_rows.LONGEST_ROW))
      text.rows[#text.rows + 1] =
        { row = #text.lines - 1, kind = line:sub(1, 1), continues = index > 1 }
    end
  end
  if change.more > 0 then
    add_more(text, change.more == 1 and '1 more line' or ('%d more lines'):format(change.more))
  end
end

--- Adds the first lines of a text that may be of any length.
---@param text co.QuestionText
---@param source string
function M.add_text(text, source)
  local lines, left, cut = printable.lines(source, MOST_LINES, MOST_BYTES)
  for _, line in ipairs(lines) do
    put(text, line)
  end
  text.cut = cut or left > 0
  text.partial = text.partial or cut
  if left > 0 then
    add_more(text, printable.size(left) .. ' more')
  end
end

--- Adds a command, and underlines the part that co asks about.
---@param text co.QuestionText
---@param question { command: string, span?: [integer, integer] }
---@param size? { rows: integer, columns: integer } the most of the command
function M.add_command(text, question, size)
  local folded = command_fold.fold(question.command, question.span, size)
  for _, line in ipairs(folded.lines) do
    put(text, line.text, 'CoApprovalCommand')
    if line.span then
      local row, from, to = #text.lines - 1, line.span[1], line.span[2]
      text.spans[#text.spans + 1] = { row = row, from = from, to = to, group = 'CoApprovalSpan' }
    end
  end
  if folded.more then
    text.cut = true
    add_more(text, folded.more)
  end
end

--- Returns the unusual conditions under which the command runs; nil if there are none.
---@param question co.CommandQuestion
---@return string?
function M.conditions(question)
  local words = {}
  if question.terminal then
    words[#words + 1] = 'in a terminal'
  end
  if question.background then
    words[#words + 1] = 'in the background, until it ends or this chat is closed'
  end
  return #words > 0 and table.concat(words, ', ') or nil
end

--- Returns the directory, the time-out and the confinement. After a trial, returns the effect of a yes.
---@param question co.CommandQuestion
---@return string
function M.place(question)
  local tried = question.tried
  if tried and not tried.runs_again then
    local yes = question.change and 'yes keeps the changes' or 'nothing of it can be kept'
    return ('%s · %s'):format(printable.path(question.cwd), yes)
  end
  local time = question.timeout and (' · %d s'):format(question.timeout) or ''
  local confinement = (tried and 'yes runs it for real, ' or '') .. question.confinement
  return ('%s%s · %s'):format(printable.path(question.cwd), time, confinement)
end

--- Adds the result of a trial, if the command ran as one.
---@param text co.QuestionText
---@param question co.CommandQuestion
function M.add_trial(text, question)
  local tried = question.tried
  if not tried then
    return
  end
  add(text, 'ran  as a trial: ' .. tried.status, 'CoApprovalLabel', 0, 4)
  if tried.git then
    add(text, 'git  ' .. tried.git, 'CoApprovalLabel', 0, 4)
  end
  for _, note in ipairs(tried.notes) do
    add(text, 'note ' .. note, 'CoApprovalReason', 5)
  end
  for _, line in ipairs(tried.output) do
    add(text, '   │ ' .. line)
  end
end

--- Returns the text of a question about a command.
---@param question co.CommandQuestion
---@param size? { rows: integer, columns: integer } the most of the command
---@return co.QuestionText
function M.question(question, size)
  ---@type co.QuestionText
  local text = { lines = {}, spans = {} }
  if question.refused_edit then
    local why = ('what you wrote was not run: %s'):format(question.refused_edit.why)
    add(text, why, 'CoApprovalDestructive')
    add(text, '')
  end
  M.add_command(text, question, size)
  if not size or size.rows > TIGHT then
    add(text, '')
  end
  add(text, 'in   ' .. M.place(question), 'CoApprovalLabel', 0, 4)
  local conditions = M.conditions(question)
  if conditions then
    add(text, 'how  ' .. conditions, 'CoApprovalLabel', 0, 4)
  end
  if question.destructive then
    -- Above the reasons, which may be many.
    add(text, 'note ' .. M.DESTRUCTIVE, 'CoApprovalDestructive')
  end
  for index, reason in ipairs(question.reasons) do
    add(text, (index == 1 and 'why  ' or '     ') .. reason, 'CoApprovalReason', 5)
  end
  if question.no_undo then
    add(text, 'note no undo: ' .. question.no_undo, 'CoApprovalReason', 5)
  end
  M.add_trial(text, question)
  return text
end

--- Returns the text that stands for a question after the person wrote another command.
---@param command string
---@return co.QuestionText
function M.edited(command)
  ---@type co.QuestionText
  local text = { lines = {}, spans = {} }
  M.add_command(text, { command = command })
  add(text, '')
  add(text, 'approved; the chat shows what comes of it', 'CoApprovalLabel')
  return text
end

--- Returns the choices of `always`: each with its key, its scope and its description.
---@param question co.CommandQuestion
---@return co.ScopeChoice[]
function M.scopes(question)
  if question.only_once then
    return {}
  end
  -- A yes to a trial is about its command.
  local edit = question.change and not question.tried
  local about = question.job and ('whatever is typed into job %d'):format(question.job)
    or edit and 'this file with this tool, in this chat'
    or 'this command, in this chat'
  local what = edit and '`%s`' or 'what starts with `%s`'
  local scopes = { { key = 'c', scope = 'command', about = about } }
  if question.prefix then
    scopes[#scopes + 1] = {
      key = 'p',
      scope = 'prefix',
      about = (what .. ', in this chat'):format(question.prefix),
    }
    scopes[#scopes + 1] = {
      key = 's',
      scope = 'prefix_saved',
      about = (what .. ', saved for this workspace'):format(question.prefix),
    }
  end
  if edit then
    scopes[#scopes + 1] = {
      key = 'f',
      scope = 'edits',
      about = 'every edit of a file of the workspace, in this chat',
    }
  end
  scopes[#scopes + 1] = {
    key = 'E',
    scope = 'everything',
    about = 'everything, in this chat; deny rules still refuse',
  }
  return scopes
end

--- Adds a list of keys and their descriptions. Leaves out actions without a key.
---@param text co.QuestionText
---@param entries [string, string][] the usual keys
---@param width integer the least cells of a key
local function add_keys(text, entries, width)
  for _, entry in ipairs(entries) do
    local key = float_keys.name(entry[1])
    if key then
      local padded = key .. (' '):rep(width - #key)
      add(text, (' %s %s'):format(padded, entry[2]), 'CoApprovalKey', 1, 1 + #key)
    end
  end
end

--- Returns a text that lists keys and their descriptions.
---@param entries [string, string][] the usual keys
---@return co.QuestionText
function M.key_list(entries)
  ---@type co.QuestionText
  local text = { lines = {}, spans = {} }
  add_keys(text, entries, 3)
  return text
end

--- Returns the choices of `always`, without the text below them.
---@param question co.CommandQuestion
---@return co.QuestionText
function M.scope_menu(question)
  ---@type co.QuestionText
  local text = { lines = {}, spans = {} }
  add(text, 'Always allow:')
  local entries = vim.tbl_map(function(scope)
    return { scope.key, scope.about }
  end, question.kind.scopes(question))
  entries[#entries + 1] = { 'q', 'back' }
  add_keys(text, entries, 2)
  add(text, '')
  return text
end

--- Returns the menu of `always`. The choices are above the command, which may be longer than the window.
---@param question co.CommandQuestion
---@return co.QuestionText
function M.menu(question)
  local text = M.scope_menu(question)
  M.add_command(text, { command = question.command })
  return text
end

--- Returns the help page of a question.
---@param entries [string, string][] its keys, but for those that every question has
---@return co.QuestionText
function M.question_help(entries)
  return M.key_list(vim.list_extend(vim.list_slice(entries), {
    { 'gN', 'no to all questions, but for those about trust in a file' },
    { 'q', 'hide: it still waits, :Co /approve brings it back' },
    { 'g?', 'back' },
  }))
end

--- Returns the keys for yes, no and always, with their meaning for a question.
---@param question co.CommandQuestion
---@return [string, string][]
function M.answers(question)
  local yes, no = 'once', 'no'
  if question.tried then
    yes, no = 'go on', 'drop'
    if question.tried.runs_again then
      yes = 'run for real'
    elseif question.change then
      yes = 'keep'
    end
  end
  ---@type [string, string][]
  local answers = { { 'y', yes }, { 'n', no }, { 'N', no .. ', because' } }
  if not question.only_once then
    answers[4] = { 'a', 'always' }
  end
  if question.tried and not question.tried.runs_again then
    table.insert(answers, 3, { 'r', 'run for real' })
  end
  return answers
end

--- Returns the keys of a question for the footer, with words and without.
---@param entries [string, string][] the usual keys
---@return string long
---@return string brief
function M.footer(entries)
  local long, brief = {}, {}
  for _, entry in ipairs(entries) do
    local key = float_keys.name(entry[1])
    if key then
      long[#long + 1], brief[#brief + 1] = printable.trim(key .. ' ' .. entry[2]), key
    end
  end
  return table.concat(long, ' · '), table.concat(brief, ' ')
end

--- Returns the help page of a question of a turn.
---@param kind 'edit'|'review'|'plain' the person may write another command, or review a change
---@param question co.CommandQuestion
---@return co.QuestionText
function M.help(kind, question)
  local keys = {
    { 'y', 'yes, once' },
    { 'n', 'no' },
    { 'N', 'no, with a reason for the model' },
    { 'a', 'always: choose what for' },
    { 'e', 'edit the command; <C-s> runs what you wrote' },
    { 'd', 'all of it, in a larger window' },
    { 'Y', 'list all questions, to approve several at once' },
  }
  if kind == 'review' then
    keys[5] = { 'd', 'review: answer each change' }
    table.remove(keys, 6)
  elseif kind == 'plain' then
    table.remove(keys, 5)
  end
  if question.may_try then
    table.insert(keys, 5, { 't', 'try: run it so that it changes nothing, then ask what to keep' })
    table.insert(keys, 6, { 'T', 'try this and, without a question, later commands here' })
  end
  if question.only_once then
    table.remove(keys, 4)
  end
  if question.tried then
    table.insert(keys, 2, { 'r', 'run it for real; what the trial changed is dropped' })
  end
  return M.question_help(keys)
end

--- Returns the help page of the list of questions.
---@return co.QuestionText
function M.list_help()
  return M.key_list({
    { 'y', 'yes, once, to all that was on the screen, except those with !' },
    { 'gN', 'no to all questions, but for those about trust in a file' },
    { 'd', 'the list in a larger window' },
    { 'q', 'back to the question' },
    { 'g?', 'back to the list' },
  })
end

return M
