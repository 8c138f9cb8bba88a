local messages = require('messages')
local questions = require('questions')
local editor, reach, wait_answers = questions.editor, questions.reach, questions.wait_answers

--- Returns a question about a call of a tool server.
---@param more? table
---@return table
local function call_question(more)
  return messages.ask(
    7,
    vim.tbl_extend('force', {
      command = 'db: query {\n  "text": "a\\u{202e}b"\n}',
      reasons = { 'its server may send what it reads to db.example' },
      confinement = 'read-only but for its own directory; it reaches db.example',
      prefix = 'mcp:db:query#0123456789abcdef0123456789abcdef',
      alone = 'what its server sends cannot be taken back',
      server = { name = 'db', tool = 'query' },
    }, more or {})
  )
end

describe('a question about a call of a tool server', function()
  it('shows the call, the level and the reason', function()
    local nvim = editor()
    nvim:receive(call_question())
    nvim:wait_screen(
      'db: query {',
      '"text": "a\\u{202e}b"',
      'it reaches db.example',
      'its server may send what it reads to db.example'
    )
    reach(nvim)
    nvim:wait_screen('y once · n no')
    -- There is no command to edit or to try.
    nvim:keys('etTr')
    nvim:keys('g?')
    nvim:wait_screen('yes, once')
    nvim:keys('g?y')
    wait_answers(nvim, { { 7, 'once' } })
  end)

  it('offers to allow the arguments, the tool or the server', function()
    local scopes = {
      c = 'command',
      p = 'prefix',
      s = 'prefix_saved',
      m = 'server',
      M = 'server_saved',
      E = 'everything',
    }
    for key, scope in pairs(scopes) do
      local nvim = editor()
      nvim:receive(call_question())
      nvim:wait_screen('db: query')
      reach(nvim)
      nvim:wait_screen('y once')
      nvim:keys('a')
      nvim:wait_screen(
        'this tool with these arguments, in this chat',
        'the tool query, in this chat',
        'the tool query, saved for this workspace',
        'every tool of db, in this chat',
        'every tool of db, saved for this workspace'
      )
      nvim:keys(key)
      wait_answers(nvim, { { 7, 'always' } })
      same(scope, nvim:sent('answer')[1].scope)
    end
  end)

  it('offers no tool and no server where a rule says to ask', function()
    local nvim = editor()
    local question = call_question()
    question.prefix = nil
    nvim:receive(question)
    nvim:wait_screen('db: query')
    reach(nvim)
    nvim:wait_screen('y once')
    nvim:keys('ap')
    nvim:keys('c')
    wait_answers(nvim, { { 7, 'always' } })
    same('command', nvim:sent('answer')[1].scope)
  end)
end)
