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
  --- Returns the reason why only a key in the float can answer yes; nil if other keys can too.
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

--- Returns some of the keys of the questions of another kind.
---@param other co.QuestionKind
---@param names string[]
---@return table<string, fun(question: any): boolean?>
function M.keys_of(other, names)
  local keys = {}
  for _, key in ipairs(names) do
    keys[key] = other.keys.question[key]
  end
  return keys
end

--- Returns a kind of question with these fields. All other fields are the fields that most kinds share.
---
--- The field `text` makes only the page of the question. `menu` and `help` make the other pages. `help` and `footer`
--- may be lists of keys with their descriptions.
---@param fields table<string, any>
---@return co.QuestionKind
function M.new(fields)
  local text, menu = fields.text, fields.menu or question_text.menu
  local help, footer = fields.help, fields.footer
  fields.text = function(question, page)
    if page == 'menu' then
      return menu(question)
    elseif page == 'help' then
      return type(help) == 'table' and question_text.question_help(help) or help(question)
    end
    return text(question)
  end
  if type(footer) == 'table' then
    fields.footer = function()
      return question_text.footer(footer)
    end
  end
  return setmetatable(fields, { __index = shared }) --[[@as co.QuestionKind]]
end

return M
