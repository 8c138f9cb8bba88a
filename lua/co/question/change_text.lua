--- The text about a change of files in a question.
local M = {}

local file_text = require('co.ui.file_text')
local printable = require('co.ui.printable')
local question_text = require('co.question.float_text')
local review_items = require('co.question.review_items')
local add = question_text.add

--- Returns the names of the files whose buffers have unsaved changes, if a question is about several files.
---@param question co.CommandQuestion
---@return string?
local function unsaved_buffers(question)
  local files = question.change and question.change.files or {} --[[@as co.FileChange[] ]]
  local names = {}
  for _, file in ipairs(#files > 1 and files or {}) do
    local path = vim.startswith(file.path, '/') and file.path or question.cwd .. '/' .. file.path
    local buf = file_text.buffer(path --[[@as string]])
    names[#names + 1] = buf and vim.bo[buf].modified and printable.path(file.path) or nil
  end
  return #names > 0 and table.concat(names, ', ') or nil
end

--- Adds the lines that the person must see before a diff, and the diff.
---@param text co.QuestionText
---@param question co.CommandQuestion
function M.add(text, question)
  local change = question.change --[[@as co.Change]]
  if change.unsaved then
    local whose = unsaved_buffers(question)
    local note = ('note %s unsaved changes: %s'):format(
      whose and 'the buffer of ' .. whose .. ' has' or 'its buffer has',
      question.choices and 'the agent does not see them'
        or 'a yes does not save ' .. (whose and 'them' or 'it')
    )
    add(text, note, 'CoApprovalReason', 5)
  end
  if review_items.is_begun(question) then
    add(text, 'note your answers in the review hold: a yes accepts the rest', 'CoApprovalReason', 5)
  end
  for _, fact in ipairs(change.facts) do
    local group = fact.kind == 'runs' and 'CoApprovalDestructive' or 'CoApprovalReason'
    add(text, fact.text, group, 5)
  end
  add(text, '')
  question_text.add_change(text, change)
end

return M
