--- What the approval float says about a question.
local M = {}

M.DESTRUCTIVE = 'it may destroy what cannot be brought back'

--- Adds a line, with a group for its bytes `from` to `to`.
---@param text co.AskText
---@param line string
---@param group? string
---@param from? integer
---@param to? integer
function M.add(text, line, group, from, to)
  text.lines[#text.lines + 1] = line
  if group then
    text.spans[#text.spans + 1] =
      { row = #text.lines - 1, from = from or 0, to = to or #line, group = group }
  end
end

local add = M.add

--- Marks bytes of the last line, where there are any.
---@param text co.AskText
---@param from integer
---@param to integer
local function mark(text, from, to)
  if from < to then
    text.spans[#text.spans + 1] =
      { row = #text.lines - 1, from = from, to = to, group = 'CoApprovalSpan' }
  end
end

--- Returns how the command runs if that is not as usual.
---@param ask co.Ask
---@return string?
function M.manner(ask)
  local words = {}
  if ask.terminal then
    words[#words + 1] = 'in a terminal'
  end
  if ask.background then
    words[#words + 1] = 'in the background, until it ends or this chat is closed'
  end
  return #words > 0 and table.concat(words, ', ') or nil
end

--- The directory, the time-out and the confinement.
---@param ask co.Ask
---@return string
function M.place(ask)
  local time = ask.timeout and (' · %d s'):format(ask.timeout) or ''
  return ('%s%s · %s'):format(vim.fn.fnamemodify(ask.cwd, ':~'), time, ask.backend)
end

--- The question itself.
---@param ask co.Ask
---@return co.AskText
function M.question(ask)
  ---@type co.AskText
  local text = { lines = {}, spans = {} }
  local at = 0
  for _, line in ipairs(vim.split(ask.command, '\n', { plain = true })) do
    add(text, line, 'CoApprovalCommand')
    if ask.span then
      mark(text, math.max(ask.span[1] - at, 0), math.min(ask.span[2] - at, #line))
    end
    at = at + #line + 1
  end
  add(text, '')
  add(text, 'in   ' .. M.place(ask), 'CoApprovalLabel', 0, 4)
  local how = M.manner(ask)
  if how then
    add(text, 'how  ' .. how, 'CoApprovalLabel', 0, 4)
  end
  for index, reason in ipairs(ask.reasons) do
    add(text, (index == 1 and 'why  ' or '     ') .. reason, 'CoApprovalReason', 5)
  end
  if ask.destructive then
    add(text, 'note ' .. M.DESTRUCTIVE, 'CoApprovalDestructive')
  end
  if ask.diff then
    add(text, '')
    for _, line in ipairs(vim.split(ask.diff, '\n', { plain = true })) do
      local first = line:sub(1, 1)
      local group = first == '+' and 'Added' or first == '-' and 'Removed' or nil
      add(text, line, group)
    end
  end
  return text
end

--- What `a` may reach: the key, the scope, and what it means.
---@param ask co.Ask
---@return { key: string, scope: co.Scope, about: string }[]
function M.scopes(ask)
  local about = ask.job and ('whatever is typed into job %d'):format(ask.job)
    or 'this command, in this session'
  local scopes = { { key = 'c', scope = 'command', about = about } }
  if ask.prefix then
    scopes[#scopes + 1] = {
      key = 'p',
      scope = 'prefix',
      about = ('what starts with `%s`, in this session'):format(ask.prefix),
    }
    scopes[#scopes + 1] = {
      key = 's',
      scope = 'prefix_saved',
      about = ('what starts with `%s`, saved for this workspace'):format(ask.prefix),
    }
  end
  scopes[#scopes + 1] = {
    key = 'E',
    scope = 'everything',
    about = 'everything, in this session; deny rules still refuse',
  }
  return scopes
end

--- The menu of scopes; above the command, which may be longer than the window.
---@param ask co.Ask
---@return co.AskText
function M.menu(ask)
  ---@type co.AskText
  local text = { lines = {}, spans = {} }
  add(text, 'Always allow:')
  for _, scope in ipairs(M.scopes(ask)) do
    add(text, (' %s  %s'):format(scope.key, scope.about), 'CoApprovalKey', 1, 2)
  end
  add(text, ' q  back', 'CoApprovalKey', 1, 2)
  add(text, '')
  for _, line in ipairs(vim.split(ask.command, '\n', { plain = true })) do
    add(text, line, 'CoApprovalCommand')
  end
  return text
end

--- A list of keys and what they do.
---@param entries [string, string][]
---@return co.AskText
function M.keys(entries)
  ---@type co.AskText
  local text = { lines = {}, spans = {} }
  for _, entry in ipairs(entries) do
    add(text, (' %-3s %s'):format(entry[1], entry[2]), 'CoApprovalKey', 1, 1 + #entry[1])
  end
  return text
end

--- Returns the list of keys.
---@return co.AskText
function M.help()
  return M.keys({
    { 'y', 'yes, once' },
    { 'n', 'no' },
    { 'N', 'no, with a reason for the model' },
    { 'a', 'always: choose what for' },
    { 'e', 'edit the command; what you make of it is judged anew' },
    { 'd', 'all of it, in a larger window' },
    { 'Y', 'list all questions, to approve several at once' },
    { 'gN', 'no to all questions about commands' },
    { 'q', 'hide: it still waits, :Co /approve brings it back' },
    { 'g?', 'back' },
  })
end

return M
