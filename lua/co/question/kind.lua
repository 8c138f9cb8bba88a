--- The kinds of questions: the fields that most of them share.
local M = {}

local question_text = require('co.question.float_text')

--- Returns the chat, the run or the agent that asks.
---@param question co.CommandQuestion
---@return string
function M.asker(question)
  if question.chat then
    return ('chat %d'):format(question.chat)
  end
  return question.agent or ('run %d'):format(question.run)
end

local shared = {
  holds_turn = true,
  title = M.asker,
  --- Returns the text that the float may have cut.
  ---@param question co.CommandQuestion
  ---@return string
  whole = function(question)
    return question.command
  end,
  --- Returns the word for the key `d`.
  ---@return string
  d = function()
    return 'all'
  end,
  --- Returns the reason why only a key in the float itself says yes.
  ---@param question co.CommandQuestion
  ---@return string?
  alone = function(question)
    return question.destructive and question_text.DESTRUCTIVE
      or question.job and 'nobody knows what the program makes of it'
      or question.alone
  end,
  --- Returns the choices of `always`.
  ---@return co.ScopeChoice[]
  scopes = function()
    return {}
  end,
}

--- Returns a kind of question with these fields; the others are those that most kinds share.
---@param fields table<string, any>
---@return co.QuestionKind
function M.new(fields)
  return setmetatable(fields, { __index = shared }) --[[@as co.QuestionKind]]
end

return M
