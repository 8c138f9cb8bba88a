--- The kind of question about hosts that a confined command wants to reach while it runs.
local command = require('co.question.command')
local kind = require('co.question.kind')
local question_text = require('co.question.float_text')
local add = question_text.add

local SCOPES = {
  { key = 'c', scope = 'command', about = 'this command, whenever it runs in this chat' },
  { key = 'E', scope = 'hosts', about = 'every confined command of this chat' },
  { key = 's', scope = 'hosts_saved', about = 'every confined command in this workspace, saved' },
}

--- Returns the scopes of `always`. A run of the person has no chat, so only the workspace remembers its hosts.
---@param question co.CommandQuestion
---@return co.ScopeChoice[]
local function scopes_of(question)
  return question.chat and SCOPES or { SCOPES[#SCOPES] }
end

--- Returns the question: the command, and each host with its port.
---@param question co.CommandQuestion
---@return co.QuestionText
local function text_of(question)
  ---@type co.QuestionText
  local text = { lines = {}, spans = {} }
  question_text.add_command(text, question)
  add(text, '')
  local runs = question.confinement == 'trial' and 'It runs as a trial' or 'It runs'
  local what = #question.hosts > 1 and 'these hosts' or 'this host'
  add(text, ('%s, and wants to reach %s:'):format(runs, what))
  for _, host in ipairs(question.hosts or {}) do
    local place = host.special and (' · the address is of ' .. host.special) or ''
    add(text, ('     %s (port %d)%s'):format(host.host, host.port, place), 'CoApprovalReason', 5)
  end
  add(text, 'note What it sends there cannot be taken back.', 'CoApprovalLabel', 0, 4)
  return text
end

--- Returns the menu of `always`.
---@param question co.CommandQuestion
---@return co.QuestionText
local function menu(question)
  local text = question_text.scope_menu(question)
  for _, host in ipairs(question.hosts or {}) do
    add(text, ('%s (port %d)'):format(host.host, host.port))
  end
  return text
end

return kind.new({
  keys = {
    question = kind.keys_of(command, { 'y', 'n', 'N', 'a' }),
    menu = command.keys.menu,
  },
  text = text_of,
  menu = menu,
  help = {
    { 'y', 'yes: this command may reach them until it ends' },
    { 'n', 'no: this command may not' },
    { 'N', 'no, with a reason for the command and the model' },
    { 'a', 'always: choose for this command, this chat or this workspace' },
    { 'Y', 'list all questions' },
  },
  footer = { { 'y', 'yes' }, { 'n', 'no' }, { 'N', 'no, because' }, { 'a', 'always' } },
  entry = function(question)
    local hosts = vim.tbl_map(function(host)
      return ('%s:%d'):format(host.host, host.port)
    end, question.hosts)
    return {
      command = question.command,
      about = ('%s · wants to reach %s'):format(kind.asker(question), table.concat(hosts, ', ')),
      not_approved_because = question.kind.alone(question),
    }
  end,
  scopes = scopes_of,
})
