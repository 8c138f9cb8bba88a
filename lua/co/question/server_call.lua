--- The kind of question about a call of a tool server.
local command = require('co.question.command')
local kind = require('co.question.kind')
local question_text = require('co.question.float_text')

--- Returns the choices of `always`: each with its key, its scope and its description.
---@param question co.CommandQuestion
---@return co.ScopeChoice[]
local function scopes_of(question)
  if question.only_once then
    return {}
  end
  local scopes = {
    { key = 'c', scope = 'command', about = 'this tool with these arguments, in this chat' },
    {
      key = 'E',
      scope = 'everything',
      about = 'everything, in this chat; deny rules still refuse',
    },
  }
  if question.prefix then
    local server = question.server --[[@as co.AskedServer]]
    local tool = ('the tool %s'):format(server.tool)
    local every = ('every tool of %s'):format(server.name)
    for index, scope in ipairs({
      { key = 'p', scope = 'prefix', about = tool .. ', in this chat' },
      { key = 's', scope = 'prefix_saved', about = tool .. ', saved for this workspace' },
      { key = 'm', scope = 'server', about = every .. ', in this chat' },
      { key = 'M', scope = 'server_saved', about = every .. ', saved for this workspace' },
    }) do
      table.insert(scopes, 1 + index, scope)
    end
  end
  return scopes
end

return kind.new({
  keys = {
    question = kind.keys_of(command, { 'y', 'n', 'N', 'a' }),
    menu = command.keys.menu,
  },
  text = question_text.question,
  help = function(question)
    return question_text.help('plain', question)
  end,
  folded = question_text.question,
  footer = function(question)
    return question_text.footer(question_text.answers(question))
  end,
  entry = function(question)
    return {
      command = question.command,
      about = ('chat %d · tool server · %s'):format(question.chat, question.confinement),
      not_approved_because = question.kind.alone(question),
    }
  end,
  scopes = scopes_of,
})
