local messages = require('messages')
local questions = require('questions')
local ask = messages.ask
local wait_answers = questions.wait_answers

--- Says yes to questions, one after the other, and returns the notices.
local function notices_of_yeses(nvim, asked)
  local expected = {}
  for id, fields in ipairs(asked) do
    nvim:receive(ask(id, fields))
    nvim:wait_screen('co 1/1')
    nvim:lua("require('co.question').answer(...)", id, fields.decision or 'once')
    expected[id] = { id, fields.decision or 'once' }
  end
  wait_answers(nvim, expected)
  nvim:settle()
  return nvim:lua('return _G.notices')
end

--- Returns as many questions with the same fields, each with its own command.
local function times(count, fields)
  local asked = {}
  for id = 1, count do
    asked[id] = vim.tbl_extend('force', { command = 'touch file' .. id }, fields)
  end
  return asked
end

describe('the third yes to questions of one kind', function()
  local function check(name, asked, expected)
    it(name, function()
      same(expected, notices_of_yeses(questions.editor({ columns = 90 }), asked))
    end)
  end
  local START = 'co: third yes to %s: next time, '
  local change = messages.change()

  check('names the rule, once', times(7, { prefix = 'cargo test' }), {
    START:format('`cargo test`') .. 'a s makes it a rule',
  })
  check('names the rule and T', times(3, { prefix = 'cargo test', may_try = true }), {
    START:format('`cargo test`') .. 'a s makes it a rule, T tries first',
  })
  check('names T for different commands', times(4, { may_try = true }), {
    START:format('commands') .. 'T tries first',
  })
  check('names the command without a prefix', times(3, { command = 'make' }), {
    START:format('`make`') .. 'a c allows it here',
  })
  check('names the answer about edits', times(3, { change = change }), {
    START:format('edits') .. 'a f allows all edits',
  })
  check('counts a review', times(3, { change = change, decision = 'reviewed' }), {
    START:format('edits') .. 'a f allows all edits',
  })
  check(
    'names the narrower rule about edits alone',
    times(3, {
      change = change,
      prefix = 'edit_file src/**',
    }),
    {
      START:format('`edit_file src/**`') .. 'a s makes it a rule',
    }
  )
  check('says nothing after two', times(2, { prefix = 'cargo test' }), {})
  check('says nothing after a no', times(3, { prefix = 'cargo test', decision = 'deny' }), {})
  check('says nothing about different kinds', times(3, {}), {})
  for _, fields in ipairs({ { destructive = true }, { alone = 'it may read .env' }, { job = 1 } }) do
    check(
      'says nothing about dangerous ones',
      times(
        3,
        vim.tbl_extend('force', fields, {
          prefix = 'x',
          may_try = true,
        })
      ),
      {}
    )
  end

  it('counts the keys of the float, of the list and from elsewhere', function()
    local nvim = questions.editor()
    nvim:lua("vim.keymap.set('n', '<F1>', '<Plug>(co-yes)')")
    nvim:receive(unpack(vim.tbl_map(function(id)
      return ask(id, { prefix = 'touch' })
    end, { 1, 2, 3 })))
    nvim:wait_screen('touch file1')
    nvim:wait("return require('co.question.sight').seen()")
    nvim:keys('<F1>')
    nvim:wait_screen('touch file2')
    questions.reach(nvim, 'y')
    nvim:wait_screen('touch file3')
    nvim:press('Y')
    nvim:wait_screen('y approves this one')
    nvim:press('y')
    nvim:wait_notice('third yes to `touch`')
  end)
end)
