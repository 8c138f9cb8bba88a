local messages = require('messages')
local questions = require('questions')
local editor, reach, wait_answers = questions.editor, questions.reach, questions.wait_answers

--- Returns a question about hosts.
---@param hosts { host: string, port: integer, special?: string }[]
---@return table
local function hosts_question(hosts)
  return messages.ask(7, {
    command = 'npm ci',
    reasons = {},
    confinement = 'trial',
    alone = 'what is sent cannot be taken back',
    hosts = hosts,
  })
end

describe('a question about hosts', function()
  it('names the command and each host with its port', function()
    local nvim = editor()
    nvim:receive(hosts_question({
      { host = 'registry.example', port = 443 },
      { host = '127.0.0.2', port = 80, special = 'this machine' },
    }))
    nvim:wait_screen(
      'npm ci',
      'wants to reach these hosts:',
      'registry.example (port 443)',
      '127.0.0.2 (port 80) · the address is of this machine',
      'cannot be taken back'
    )
    reach(nvim)
    nvim:wait_screen('y yes · n no')
    nvim:keys('g?')
    nvim:wait_screen('yes: this command may reach them until it ends')
    nvim:keys('g?y')
    wait_answers(nvim, { { 7, 'once' } })
  end)

  it('offers to remember the hosts for the command, the chat or the workspace', function()
    for key, scope in pairs({ c = 'command', E = 'hosts', s = 'hosts_saved' }) do
      local nvim = editor()
      nvim:receive(hosts_question({ { host = 'registry.example', port = 443 } }))
      nvim:wait_screen('wants to reach this host:')
      reach(nvim)
      nvim:wait_screen('y n N a')
      nvim:keys('a')
      nvim:wait_screen('this command, whenever', 'every confined command of this chat', 'saved')
      nvim:keys(key)
      wait_answers(nvim, { { 7, 'always' } })
      same(scope, nvim:sent('answer')[1].scope)
    end
  end)
end)
