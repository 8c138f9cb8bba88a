--- The text of the list of all questions, from which those that destroy nothing are approved together.
local M = {}

local ask_text = require('co.ask_text')

---@param listed integer
---@param approved integer
---@return string
local function heading(listed, approved)
  if approved == 0 then
    return 'y approves none of these: answer them one by one'
  elseif approved == listed then
    return ('y approves %s'):format(
      listed == 1 and 'this one' or ('all %d of these'):format(listed)
    )
  end
  return ('y approves %d of these %d: answer those with ! one by one'):format(approved, listed)
end

--- Returns the text, and the ids of the questions that `y` approves.
---@param questions co.Question[]
---@return co.AskText
---@return integer[]
function M.text(questions)
  ---@type co.AskText
  local text = { lines = {}, spans = {} }
  ---@type co.ListEntry[]
  local entries = {}
  local ids = {}
  for index, question in ipairs(questions) do
    entries[index] = question.kind.entry(question)
    if not entries[index].alone then
      ids[#ids + 1] = question.id
    end
  end
  ask_text.add(text, heading(#questions, #ids))
  for _, entry in ipairs(entries) do
    ask_text.add(text, '')
    local group = entry.alone and 'CoApprovalDestructive' or 'CoApprovalCommand'
    for number, line in ipairs(entry.lines) do
      local mark = number == 1 and entry.alone and '! ' or '  '
      ask_text.add(text, mark .. line, group)
    end
    ask_text.add(text, '    ' .. entry.about, 'CoApprovalLabel')
    if entry.alone then
      ask_text.add(text, '    ' .. entry.alone, 'CoApprovalDestructive')
    end
  end
  return text, ids
end

return M
