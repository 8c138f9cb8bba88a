local messages = require('messages')
local neovim = require('neovim')
local questions = require('questions')
local ask = messages.ask
local editor = questions.editor
local FOCUSED = questions.FOCUSED
local HOME = questions.HOME
local answers = questions.answers
local wait_answers = questions.wait_answers
local asked, reach = questions.asked, questions.reach

-- Keys that yank a line and put it below, where they reach a buffer that may be changed.
local STRAY = 'yyp'

--- Checks that no stray key changed the person's buffer or registers.
local function untouched(nvim)
  same({ 'one', 'two', 'three' }, nvim:lua('return vim.api.nvim_buf_get_lines(1, 0, -1, false)'))
  same('', nvim:lua("return vim.fn.getreg('0')"))
end

describe('the queue of questions', function()
  it('keeps the focus until the last one is answered', function()
    local nvim = asked(ask(1), ask(2), ask(3))
    for index, left in ipairs({ '1/2', '1/1' }) do
      nvim:keys('y')
      nvim:wait_screen('touch file' .. index + 1)
      nvim:wait_screen('co ' .. left)
      yes(nvim:lua(FOCUSED))
      nvim:settle()
    end
    nvim:keys('y')
    nvim:wait(HOME)
    nvim:wait_gone('touch file3')
    wait_answers(nvim, { { 1, 'once' }, { 2, 'once' }, { 3, 'once' } })
  end)

  it('lets no key that was typed with the last answer into a buffer', function()
    local nvim = asked(ask(1), ask(2))
    nvim:keys('yyy')
    nvim:wait_screen('co 1/1')
    wait_answers(nvim, { { 1, 'once' } })
    nvim:press('y' .. STRAY)
    wait_answers(nvim, { { 1, 'once' }, { 2, 'once' } })
    nvim:wait(HOME)
    same('n', nvim:mode())
    untouched(nvim)
  end)

  it('lets no key into a buffer that is typed just after the last one went', function()
    local nvim = asked(ask(1))
    nvim:lua(
      "receive({ { type = 'settled', id = 1, decision = 'withdrawn' } }) vim.api.nvim_input(...)",
      STRAY
    )
    nvim:wait(HOME)
    same('n', nvim:mode())
    untouched(nvim)
    nvim:keys('yy')
    nvim:wait("return vim.fn.getreg('0') == 'one\\n'")
  end)

  it('types nothing into the text that the person came from', function()
    local nvim = editor()
    nvim:keys_to('i', 'i')
    nvim:receive(ask(1))
    nvim:wait_screen('touch file1')
    reach(nvim, 'yyyn')
    nvim:wait(HOME)
    nvim:wait_mode('i')
    untouched(nvim)
    nvim:keys('!')
    nvim:wait("return vim.api.nvim_get_current_line() == '!one'")
  end)

  it('keeps the place of an edited command until a key or the end of the focus', function()
    for _, go_on in ipairs({ 'y', '<CR>', '<C-w>w' }) do
      local nvim = asked(ask(1), ask(2, { command = 'rm -rf src', destructive = true }))
      nvim:keys('e')
      nvim:wait_screen('Run instead')
      nvim:keys('A.txt<C-s>yn')
      nvim:wait_screen('the chat shows what comes of it')
      nvim:receive({ type = 'settled', id = 1, decision = 'edited' }, ask(3))
      nvim:wait_screen('co · 2 more')
      yes(nvim:shows('touch file1.txt') and not nvim:shows('rm -rf src'))
      nvim:press(go_on)
      nvim:wait_screen('rm -rf src', 'co 1/2')
      same({ { 1, 'edited' } }, answers(nvim))
    end
  end)

  it('shows an edited command again that a deny rule forbids', function()
    local nvim = asked(ask(1), ask(2))
    nvim:keys('e')
    nvim:wait_screen('Run instead')
    nvim:keys('ccmake<C-s>')
    wait_answers(nvim, { { 1, 'edited' } })
    local refused = { question = 1, command = 'make', why = 'the rule `make` forbids it' }
    local again = ask(3, { command = 'touch file1', refused_edit = refused })
    nvim:receive({ type = 'settled', id = 1, decision = 'edited' }, again)
    nvim:wait_screen('not run: the rule `make` forbids it', 'co 1/2')
    nvim:press('e')
    nvim:wait_screen('Run instead')
    same('make', nvim:lua('return vim.api.nvim_get_current_line()'))
  end)

  it('goes on for as long as answers are typed', function()
    local nvim = asked(ask(1))
    nvim:lua([[
      local typed, timer = 0, vim.uv.new_timer()
      timer:start(0, 50, vim.schedule_wrap(function()
        typed = typed + 1
        if typed <= 12 then
          vim.api.nvim_input('y')
        elseif not timer:is_closing() then
          timer:close()
          _G.typed = true
        end
      end))
    ]])
    nvim:wait('return _G.typed')
    nvim:wait(HOME)
    same('n', nvim:mode())
    untouched(nvim)
    same({ { 1, 'once' } }, answers(nvim))
  end)

  it('gives way to a command that is typed after the last answer', function()
    local nvim = asked(ask(1))
    nvim:lua("require('co.question').answer(1, 'once') vim.api.nvim_input(':let g:typed = 1')")
    nvim:wait_mode('c')
    nvim:wait(HOME)
    nvim:receive(ask(2))
    nvim:wait_screen('touch file2')
    nvim:keys('<CR>yy')
    nvim:wait("return vim.g.typed == 1 and vim.fn.getreg('0') == 'one\\n'")
    same({ { 1, 'once' } }, answers(nvim))
  end)

  it('loses no command that is typed at the end of the pause after the last answer', function()
    local nvim = asked(ask(1))
    nvim:lua([[
      local focus = require('co.ui.focus')
      local when_keys_count = focus.when_keys_count
      focus.when_keys_count = function(act)
        focus.when_keys_count = when_keys_count
        when_keys_count(function()
          vim.api.nvim_input(':let g:typed = win_getid()<CR>')
          act()
        end)
      end
      require('co.question').answer(1, 'once')
    ]])
    nvim:wait('return vim.g.typed ~= nil')
    nvim:wait(HOME)
    yes(nvim:lua('return vim.g.typed == vim.api.nvim_get_current_win()'))
    same({ { 1, 'once' } }, answers(nvim))
  end)

  it('keeps the focus for a question that comes right after the last answer', function()
    local nvim = asked(ask(1))
    nvim:lua("require('co.question').answer(1, 'once') receive({ ... })", ask(2))
    nvim:lua("vim.api.nvim_input('y')")
    nvim:wait_screen('touch file2')
    nvim:settle()
    yes(nvim:lua(FOCUSED))
    same({ { 1, 'once' } }, answers(nvim))
    nvim:keys('y')
    wait_answers(nvim, { { 1, 'once' }, { 2, 'once' } })
    nvim:wait(HOME)
  end)
end)

describe('the list of questions', function()
  --- Three questions, the second of them destructive, and the focus on the first.
  local function three()
    local nvim = editor()
    local script = 'cat > deep <<EOF\nsecond line\nEOF'
    nvim:receive(
      ask(1),
      ask(2, { command = 'rm -rf build', destructive = true }),
      ask(3, { command = script, chat = 2 })
    )
    nvim:wait_screen('co 1/3')
    reach(nvim)
    return nvim
  end

  it('shows every question and approves those that destroy nothing', function()
    local nvim = three()
    nvim:keys('Y')
    nvim:wait_screen('y approves 2 of these 3')
    for _, text in ipairs({ 'touch file1', '! rm -rf build', 'cat > deep', 'second line', 'chat 2' }) do
      yes(nvim:shows(text), text)
    end
    nvim:press('y')
    wait_answers(nvim, { { 1, 'once' }, { 3, 'once' } })
    nvim:wait_screen('co 1/1', 'delete or overwrite')
    yes(nvim:lua(FOCUSED))
    nvim:press('y')
    wait_answers(nvim, { { 1, 'once' }, { 3, 'once' }, { 2, 'once' } })
  end)

  it('takes no key that was typed before it was there', function()
    local nvim = three()
    nvim:keys('Yy')
    nvim:wait_screen('y approves 2 of these 3')
    nvim:settle()
    same({}, answers(nvim))
  end)

  it('is drawn anew for a question that comes, and takes no key for a while', function()
    local nvim = three()
    nvim:keys('Y')
    nvim:wait_screen('y approves 2 of these 3')
    nvim:settle()
    nvim:lua("receive({ ... }) vim.api.nvim_input('y')", ask(4))
    nvim:wait_screen('y approves 3 of these 4')
    nvim:settle()
    same({}, answers(nvim))
    nvim:keys('y')
    wait_answers(nvim, { { 1, 'once' }, { 3, 'once' }, { 4, 'once' } })
  end)

  it('stays when the first question goes', function()
    local nvim = three()
    nvim:keys('Y')
    nvim:wait_screen('y approves 2 of these 3')
    nvim:receive({ type = 'settled', id = 1, decision = 'withdrawn' })
    nvim:wait_screen('y approves 1 of these 2')
    nvim:keys('q')
    nvim:press('q')
    nvim:wait_screen('delete or overwrite')
    same({}, answers(nvim))
  end)

  it('is shown again when its list of keys is closed', function()
    local nvim = three()
    nvim:keys('Y')
    nvim:wait_screen('y approves 2 of these 3')
    nvim:settle()
    for _, key in ipairs({ 'q', '<Esc>', 'g?' }) do
      nvim:keys('g?')
      nvim:wait_screen('q   back to the question')
      nvim:keys('y')
      nvim:keys(key)
      nvim:wait_screen('y approves 2 of these 3')
    end
    nvim:keys('g?')
    nvim:wait_screen('q   back to the question')
    nvim:receive({ type = 'settled', id = 1, decision = 'withdrawn' })
    nvim:wait_screen('2 questions')
    nvim:press('q')
    nvim:wait_screen('y approves 1 of these 2')
    same({}, answers(nvim))
    nvim:press('q')
    nvim:wait_screen('delete or overwrite')
  end)

  it('gives way to a question that comes after all of them went', function()
    local nvim = three()
    nvim:keys('Y')
    nvim:wait_screen('y approves 2 of these 3')
    nvim:lua([[
      for id = 1, 3 do
        receive({ { type = 'settled', id = id, decision = 'withdrawn' } })
      end
    ]])
    nvim:wait(HOME)
    nvim:receive(ask(4))
    nvim:wait_screen('touch file4', 'co 1/1')
  end)

  it('approves nothing where all of it may destroy', function()
    local nvim = asked(ask(1, { destructive = true }), ask(2, { destructive = true }))
    nvim:keys('Y')
    nvim:wait_screen('y approves none of these')
    nvim:press('y')
    nvim:settle()
    same({}, answers(nvim))
    yes(nvim:lua(FOCUSED))
  end)

  --- Three questions, the second of which is longer than the screen, and the list of them.
  local function long()
    local nvim = editor()
    nvim:receive(
      ask(1),
      ask(2, { command = table.concat(neovim.numbered('echo line', 60), '\n') }),
      ask(3)
    )
    nvim:wait_screen('co 1/3')
    reach(nvim, 'Y')
    nvim:wait_screen('y approves 1 of these 3: scroll to see the rest', 'y yes to 1')
    nvim:settle()
    return nvim
  end

  it('approves nothing that was not on the screen', function()
    local nvim = long()
    nvim:keys('y')
    wait_answers(nvim, { { 1, 'once' } })
    nvim:wait_screen('co 1/2')
  end)

  it('approves what the person scrolled past', function()
    local nvim = long()
    nvim:keys('<C-f><C-f><C-f>')
    nvim:wait_screen('y yes to 3')
    nvim:keys('gg')
    nvim:wait_screen('y approves all 3 of these')
    nvim:keys('y')
    wait_answers(nvim, { { 1, 'once' }, { 2, 'once' }, { 3, 'once' } })
  end)

  it('does not approve what the person jumped over', function()
    local nvim = long()
    nvim:keys('G')
    nvim:wait_screen('y yes to 2')
    nvim:keys('y')
    wait_answers(nvim, { { 1, 'once' }, { 3, 'once' } })
  end)

  it('remembers what was on the screen when a question comes', function()
    local nvim = long()
    nvim:keys('<C-f><C-f><C-f>')
    nvim:wait_screen('y yes to 3')
    nvim:receive(ask(4, { destructive = true }))
    nvim:wait_screen('4 questions', 'y yes to 3')
  end)

  it('approves no line that is longer than the window', function()
    local nvim = asked(ask(1), ask(2, { command = 'echo ' .. ('x'):rep(4000) }))
    nvim:keys('Y')
    nvim:wait_screen('y approves 1 of these 2')
    nvim:press('G')
    nvim:press('y')
    wait_answers(nvim, { { 1, 'once' } })
  end)

  it('shows how a command runs, and leaves text for a job to its own question', function()
    local nvim = asked(
      ask(1, { background = true, terminal = true, cwd = '/elsewhere' }),
      ask(2, { command = 'drop table people;\\n', job = 3 })
    )
    nvim:keys('Y')
    nvim:wait_screen('y approves 1 of these 2')
    for _, text in ipairs({
      'in a terminal, in the background',
      '/elsewhere',
      '! drop table people',
      'typed into job 3',
    }) do
      yes(nvim:shows(text), text)
    end
    nvim:press('y')
    wait_answers(nvim, { { 1, 'once' } })
    nvim:wait_screen('drop table people')
  end)

  for _, page in ipairs({ 'question', 'list' }) do
    it('is denied as a whole by gN, from the ' .. page, function()
      local nvim = three()
      if page == 'list' then
        nvim:keys('Y')
        nvim:wait_screen('y approves 2 of these 3')
        nvim:settle()
      end
      nvim:keys('gN')
      wait_answers(nvim, { { 1, 'deny' }, { 2, 'deny' }, { 3, 'deny' } })
      nvim:wait(HOME)
      same('', nvim:lua("return require('co').statusline()"))
    end)
  end
end)
