local messages = require('messages')
local neovim = require('neovim')
local questions = require('questions')
local ask, trust = messages.ask, messages.trust
local FLOATS, FOCUSED, HOME = questions.FLOATS, questions.FOCUSED, questions.HOME
local asked, editor, reach = questions.asked, questions.editor, questions.reach
local shown = questions.shown
local wait_answers = questions.wait_answers

describe('a question about a file', function()
  it('says when the model gets the text', function()
    for slash, words in pairs({
      ['/fix'] = 'to the model with each /fix?',
      ['@skill:pdf'] = 'to the model when its work fits this skill?',
      ['/mcp'] = 'Start the tool servers that AGENTS.md names, with each chat here?',
    }) do
      local nvim = editor()
      nvim:receive(trust(7, { slash = slash }))
      nvim:wait_screen(words)
    end
  end)

  it('names co, the file and its size, and shows the text', function()
    local nvim = editor()
    nvim:receive(trust(7, { notes = { 'its text changed since your last answer' } }))
    nvim:wait_screen(
      'co 1/1 · AGENTS.md',
      'Send the text of AGENTS.md to the model with each prompt?',
      'file /srv/work/AGENTS.md · 2.1 KiB',
      'note its text changed since your last answer',
      'Use tabs.',
      '<F5> to answer'
    )
    yes(nvim:lua(HOME), 'it takes no focus')
    reach(nvim)
    nvim:wait_screen('y trust it · n no · d all · g?')
    nvim:keys('g?')
    nvim:wait_screen('no: co asks again when the text changes')
    nvim:keys('g?y')
    wait_answers(nvim, { { 7, 'once' } })
    nvim:wait('return #require("co.question").pending() == 0')
    same({ type = 'answer', id = 7, decision = 'once' }, nvim:sent('answer')[1])
  end)

  it('takes no key that is typed while it comes, nor right after it has the focus', function()
    local nvim = editor()
    nvim:keys_to('i', 'i')
    nvim:receive(trust(7))
    nvim:keys('yny')
    nvim:wait_screen('co 1/1')
    nvim:keys('y')
    nvim:wait("return vim.api.nvim_get_current_line() == 'ynyyone'")
    nvim:keys('<F5>y')
    nvim:wait(FOCUSED)
    nvim:settle()
    same({}, nvim:sent('answer'))
    nvim:keys('aeNcEps<CR>')
    nvim:keys('n')
    wait_answers(nvim, { { 7, 'deny' } })
  end)

  it('never takes the focus by itself, whatever the settings', function()
    local nvim = editor()
    nvim:lua("require('co').setup({ float_focus = true }) vim.cmd('Co')")
    nvim:wait("return vim.bo.filetype == 'co-prompt'")
    questions.wait_idle(nvim)
    nvim:receive(trust(7))
    nvim:wait_screen('co 1/1')
    same('co-prompt', nvim:lua('return vim.bo.filetype'))
  end)

  it('shows a long text that can be scrolled, and more of it with d', function()
    local nvim = editor()
    local lines = neovim.numbered('rule ', 100)
    nvim:receive(trust(7, { text = table.concat(lines, '\n') .. '\n' }))
    nvim:wait_screen('more lines')
    reach(nvim)
    yes(nvim:lua('return vim.api.nvim_win_get_height(0) < vim.o.lines / 3'))
    nvim:keys('G')
    nvim:wait_screen('rule 100')
    nvim:keys('gg')
    nvim:wait_gone('rule 100')
    local height = 'return vim.api.nvim_win_get_height(0)'
    local before = nvim:lua(height)
    nvim:keys('d')
    nvim:wait('return vim.api.nvim_win_get_height(0) > ...', before)
  end)

  it('that is hidden still waits, and holds up no question about a command', function()
    local nvim = asked(trust(7))
    nvim:keys('q')
    nvim:wait('return (' .. FLOATS:gsub('^return ', '') .. ') == 0')
    yes(nvim:lua(HOME))
    nvim:receive(ask(8))
    nvim:wait_screen('touch file8')
    nvim:receive(ask(9))
    reach(nvim, 'y')
    nvim:wait_screen('touch file9')
    nvim:press('y')
    wait_answers(nvim, { { 8, 'once' }, { 9, 'once' } })
    nvim:wait('return (' .. FLOATS:gsub('^return ', '') .. ') == 0')
    nvim:wait(HOME)
    same('co ?1', nvim:lua("return require('co').statusline()"))
    reach(nvim)
    nvim:wait_screen('Use tabs.')
    nvim:keys('n')
    wait_answers(nvim, { { 8, 'once' }, { 9, 'once' }, { 7, 'deny' } })
  end)

  it('that is hidden gives its place to the question behind it, which has the focus', function()
    local nvim = asked(trust(7), ask(8))
    nvim:keys('q')
    nvim:wait_screen('touch file8')
    yes(nvim:lua(FOCUSED))
    nvim:keys('y')
    nvim:settle()
    same({}, nvim:sent('answer'))
    nvim:keys('y')
    wait_answers(nvim, { { 8, 'once' } })
  end)

  it('is not approved from the list', function()
    local nvim = asked(trust(7), ask(8))
    nvim:keys('Y')
    nvim:wait_screen('! trust AGENTS.md')
    nvim:press('y')
    wait_answers(nvim, { { 8, 'once' } })
    nvim:wait_screen('Use tabs.')
  end)

  for _, first in ipairs({ 'file', 'command' }) do
    it('is not answered by gN, with the first question about a ' .. first, function()
      local nvim = editor()
      if first == 'file' then
        nvim:receive(trust(7), ask(8), ask(9))
      else
        nvim:receive(ask(8), trust(7), ask(9))
      end
      nvim:wait_screen('co 1/3')
      reach(nvim, 'gN')
      wait_answers(nvim, { { 8, 'deny' }, { 9, 'deny' } })
      nvim:wait_screen('co 1/1 · AGENTS.md')
      nvim:press('gN')
      nvim:settle()
      wait_answers(nvim, { { 8, 'deny' }, { 9, 'deny' } })
      yes(nvim:shows('Use tabs.'))
    end)
  end

  it('is a no where its buffer is wiped, and none where Neovim ends or a chat closes', function()
    local nvim = shown(trust(7))
    nvim:lua([[
      for _, buf in ipairs(vim.api.nvim_list_bufs()) do
        if vim.bo[buf].filetype == 'co-approval' then vim.api.nvim_buf_delete(buf, { force = true }) end
      end
    ]])
    wait_answers(nvim, { { 7, 'deny' } })
    nvim:receive(trust(8), ask(9))
    nvim:wait("return #require('co.question').pending() == 2")
    nvim:lua("require('co.question').withdraw(1)")
    same(1, nvim:lua("return #require('co.question').pending()"))
    nvim:lua("vim.api.nvim_exec_autocmds('VimLeavePre', {})")
    same({ { 7, 'deny' } }, questions.answers(nvim))
  end)

  it('is answered by slash commands, and takes no always', function()
    local nvim = shown(trust(7))
    nvim:keys(':Co /pending<CR>')
    nvim:wait_screen(' 1  AGENTS.md  trust AGENTS.md')
    nvim:lua("vim.cmd('Co /always 1 everything')")
    nvim:wait('return #_G.notices == 1')
    same({}, nvim:sent('answer'))
    nvim:lua("vim.cmd('Co /approve 1')")
    wait_answers(nvim, { { 7, 'once' } })
  end)
end)
