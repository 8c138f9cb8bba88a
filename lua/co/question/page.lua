--- The page of the approval float: a question, its menu, its help, or the list of all questions.
local M = {}

local question_list = require('co.question.list')
local question_text = require('co.question.float_text')

-- The sizes of a command in a window that is not large. The first size that leaves the other lines visible is used.
---@type { rows: integer, columns: integer }[]
local COMMAND_SIZES = {}
for rows = 10, 1, -1 do
  COMMAND_SIZES[#COMMAND_SIZES + 1] = { rows = rows, columns = 76 }
end
vim.list_extend(COMMAND_SIZES, { { rows = 1, columns = 48 }, { rows = 1, columns = 24 } })

---@class (exact) co.Page
---@field name co.QuestionPage
---@field question? co.Question
---@field questions co.Question[] those that wait
---@field list? co.QuestionList the list that is shown
---@field large boolean it may take the whole screen
---@field partial boolean a part of the question is not in the text
local Page = {}
Page.__index = Page

--- Returns a page that is about no question yet.
---@return co.Page
function M.new()
  return setmetatable({ name = 'question', questions = {}, large = false, partial = false }, Page)
end

--- Returns whether the page is about all questions.
---@return boolean
function Page:about_all()
  return self.name == 'list' or self.name == 'list_help'
end

--- Forgets the question. The list stays, because it shows all questions.
function Page:forget_question()
  self.question, self.large = nil, false
  if not self:about_all() then
    self.name = 'question'
  end
end

--- Returns the text of a question. A long command is folded, so that the reasons are visible too.
---@param question co.Question
---@param fold fun(question: any, size: { rows: integer, columns: integer }): co.QuestionText
---@param fits fun(lines: string[]): boolean all lines would be visible
---@return co.QuestionText
local function folded(question, fold, fits)
  for _, size in ipairs(COMMAND_SIZES) do
    local text = fold(question, size)
    if fits(text.lines) then
      return text
    end
  end
  return fold(question, COMMAND_SIZES[#COMMAND_SIZES])
end

--- Returns the text of the page.
---@param question co.Question
---@param fits fun(lines: string[]): boolean all lines would be visible
---@return co.QuestionText
---@return boolean other_list the page is a list, and its rows differ from the rows of the list before
function Page:text(question, fits)
  if self.name == 'list_help' then
    return question_text.list_help(), false
  elseif self.name == 'list' then
    local older = self.list
    self.list = question_list.new(self.questions, older)
    return self.list.text, not (older and vim.deep_equal(self.list.rows, older.rows))
  end
  self.list = nil
  local asked = question --[[@as co.CommandQuestion]]
  -- A difference below it seldom fits.
  local fold = not asked.change and question.kind.folded or nil
  if self.name == 'question' and fold and not self.large then
    return folded(question, fold, fits), false
  end
  return question.kind.text(question, self.name), false
end

return M
