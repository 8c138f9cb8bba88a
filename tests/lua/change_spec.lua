local messages = require('messages')
local neovim = require('neovim')
local questions = require('questions')
local ask = messages.ask
local editor = questions.editor
local asked, reach = questions.asked, questions.reach
local wait_answers = questions.wait_answers

--- A question about a change of a file.
local function ask_change(id, fields)
  return ask(
    id,
    vim.tbl_extend('force', {
      command = 'edit_file src/a.rs',
      prefix = 'edit_file src/**',
      confinement = '',
      reasons = { 'changes a file' },
      change = messages.change({
        added = 2,
        excerpt = '#── line 9\n one\n-two\n+2\n+--- 3\n',
      }),
    }, fields or {})
  )
end

describe('a question about a change', function()
  it('shows the file and the difference', function()
    local nvim = editor()
    nvim:receive(ask_change(1))
    nvim:wait_screen(
      'edit_file src/a.rs  +2 -1',
      'why  changes a file',
      '── line 9',
      '- two',
      '+ --- 3'
    )
    local found = nvim:lua([[
      local namespace = vim.api.nvim_get_namespaces()['co.approval']
      for _, win in ipairs(vim.api.nvim_list_wins()) do
        local buf = vim.api.nvim_win_get_buf(win)
        if vim.bo[buf].filetype == 'co-approval' then
          local lines = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
          local marks = vim.api.nvim_buf_get_extmarks(buf, namespace, 0, -1, { details = true })
          local groups = {}
          for _, mark in ipairs(marks) do
            groups[lines[mark[2] + 1] ] = mark[4].line_hl_group
          end
          return { groups.two, groups['2'], groups['--- 3'], groups.one or 'none' }
        end
      end
    ]])
    same({ 'CoReviewRemoved', 'CoReviewAdded', 'CoReviewAdded', 'none' }, found)
  end)

  it('names the directory if it is not that of Neovim', function()
    local nvim = editor()
    nvim:receive(ask_change(1, { cwd = '/srv/proj-fix' }))
    nvim:wait_screen('in   /srv/proj-fix')
  end)

  it('shows a name with line breaks as one line', function()
    local nvim = editor()
    nvim:receive(ask_change(1, {
      command = 'edit_file a\nb\0.txt',
      cwd = '/tmp/x\ny',
      reasons = { 'changes\na file' },
    }))
    nvim:wait_screen('edit_file a\\nb\\0.txt  +2 -1', 'why  changes\\na file')
    reach(nvim, 'Y')
    nvim:wait_screen('1 questions')
    nvim:press('qn')
    wait_answers(nvim, { { 1, 'deny' } })
  end)

  it('tells how many lines are left out, and shows all with d', function()
    local nvim = editor()
    local file = messages.file('src/a.rs', '@\n' .. ('+a line\n'):rep(600) .. '+the end\n')
    local change = messages.change({
      excerpt = ('+a line\n'):rep(500),
      more = 101,
      files = { file },
    })
    nvim:receive(ask_change(1, { change = change }))
    nvim:wait_screen('edit_file src/a.rs')
    reach(nvim, 'G')
    nvim:wait_screen('… 101 more lines: d shows all')
    nvim:keys('dG')
    nvim:wait_screen('+ the end')
  end)

  it('shows the next question from its start, wherever this one was scrolled to', function()
    local nvim = editor()
    nvim:lua('vim.o.lines, vim.o.columns = 16, 60')
    local line = ('x'):rep(5000)
    nvim:receive(ask_change(1, { change = messages.change({ excerpt = '+' .. line .. '\n' }) }))
    nvim:wait_screen('edit_file src/a.rs')
    reach(nvim, 'G$')
    nvim:receive(ask(2, { command = 'echo ' .. ('two '):rep(60) }))
    nvim:settle()
    nvim:press('y')
    wait_answers(nvim, { { 1, 'once' } })
    nvim:wait_screen('#2', 'echo two two')
  end)

  it('counts the lines that the question does not have', function()
    local nvim = editor()
    local change = messages.change({ excerpt = ('+a line\n'):rep(500), more = 500 })
    nvim:receive(ask_change(1, { change = change }))
    nvim:wait_screen('d: 9')
  end)

  it('shows all of a long line', function()
    local nvim = editor()
    local line = ('x'):rep(4800) .. (' '):rep(120) .. '; evil()'
    nvim:receive(ask_change(1, { change = messages.change({ excerpt = '+' .. line .. '\n' }) }))
    nvim:wait_screen('edit_file src/a.rs')
    reach(nvim, 'G$')
    nvim:wait_screen('; evil()')
  end)

  it('names first what the lines do not show', function()
    local facts = {
      { kind = 'runs', text = 'runs .nvim.lua: programs or agents run or obey it' },
      { kind = 'deleted', text = 'gone old: deleted' },
    }
    local change = messages.change({ facts = facts, excerpt = '+x\n' })
    local nvim = asked(ask_change(1, { change = change }))
    nvim:wait_screen(facts[1].text, facts[2].text, '+ x')
  end)

  it('shows blanks at the ends of lines', function()
    local nvim = editor()
    nvim:receive(ask_change(1, { change = messages.change({ excerpt = '-one\n+one  \n' }) }))
    nvim:wait_screen('- one ', '+ one··')
  end)

  it('says that the buffer of the file has unsaved changes', function()
    local nvim = editor()
    nvim:receive(ask_change(1))
    nvim:wait_screen('+ --- 3')
    same(false, nvim:shows('unsaved'))
    nvim:receive({ type = 'settled', id = 1, decision = 'deny' })
    local change = messages.change({ unsaved = true, excerpt = '-one\n+two\n' })
    nvim:receive(ask_change(2, { change = change }))
    nvim:wait_screen('note its buffer has unsaved changes')
    nvim:receive({ type = 'settled', id = 2, decision = 'deny' })
    local dir = neovim.dir()
    for _, name in ipairs({ 'a.rs', 'b.rs' }) do
      vim.fn.writefile({ 'one' }, dir .. '/' .. name)
    end
    nvim:lua("vim.cmd('edit ' .. ...)", dir .. '/b.rs')
    nvim:lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'mine' })")
    change.files =
      { messages.file('a.rs', '@\n-one\n+two'), messages.file('b.rs', '@\n-one\n+two') }
    nvim:receive(ask_change(3, { change = change, cwd = dir }))
    nvim:wait_screen('note the buffer of b.rs has unsaved changes')
  end)

  it('takes yes, no and always, and cannot be edited', function()
    local nvim = asked(ask_change(1), ask_change(2), ask_change(3))
    nvim:wait_screen('y n N a Y d g?')
    nvim:keys('ey')
    wait_answers(nvim, { { 1, 'once' } })
    nvim:press('n')
    wait_answers(nvim, { { 1, 'once' }, { 2, 'deny' } })
    nvim:press('a')
    nvim:wait_screen('c  this file with this tool, in this chat')
    nvim:wait_screen('p  `edit_file src/**`, in this chat')
    nvim:wait_screen('f  every edit of a file of the workspace, in this chat')
    nvim:keys('p')
    wait_answers(nvim, { { 1, 'once' }, { 2, 'deny' }, { 3, 'always' } })
    same('prefix', nvim:sent('answer')[3].scope)
  end)

  it('is not approved by the list', function()
    local nvim = asked(ask_change(1), ask(2))
    nvim:keys('Y')
    nvim:wait_screen('! edit_file src/a.rs', 'chat 1 · +2 -1', 'read the difference first')
    nvim:press('y')
    wait_answers(nvim, { { 2, 'once' } })
  end)
end)
