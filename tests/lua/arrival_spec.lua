local messages = require('messages')
local questions = require('questions')
local ask = messages.ask
local editor = questions.editor
local FOCUSED = questions.FOCUSED
local HOME = questions.HOME
local answers = questions.answers
local wait_answers = questions.wait_answers
local reach = questions.reach

describe('a question that arrives', function()
  it('in insert mode lets every key through to the buffer', function()
    local nvim = editor()
    nvim:keys_to('i', 'i')
    nvim:keys('yes ')
    nvim:receive(ask(1))
    nvim:wait_screen('touch file1')
    nvim:keys('n a y')
    nvim:wait("return vim.api.nvim_get_current_line() == 'yes n a yone'")
    same('i', nvim:mode())
    same({}, answers(nvim))
    reach(nvim, 'y')
    wait_answers(nvim, { { 1, 'once' } })
    nvim:wait(HOME)
    nvim:wait_mode('i')
    nvim:keys('!')
    nvim:wait("return vim.api.nvim_get_current_line() == 'yes n a y!one'")
  end)

  it('in visual mode leaves the selection', function()
    local nvim = editor()
    nvim:keys_to('vj', 'v')
    nvim:receive(ask(1))
    nvim:wait_screen('touch file1')
    same('v', nvim:mode())
    nvim:keys('y')
    nvim:wait("return vim.fn.getreg('\"') == 'one\\nt'")
    same({}, answers(nvim))
    nvim:keys_to('v', 'v')
    reach(nvim, 'y')
    wait_answers(nvim, { { 1, 'once' } })
  end)

  it('in operator-pending mode waits until the key has come', function()
    local nvim = editor()
    nvim:keys_to('d', 'no')
    nvim:receive(ask(1))
    nvim:keys('d')
    nvim:wait_screen('touch file1')
    same({ 'two', 'three' }, nvim:lua('return vim.api.nvim_buf_get_lines(0, 0, -1, false)'))
    same({}, answers(nvim))
    nvim:keys_to('d', 'no')
    reach(nvim, 'y')
    wait_answers(nvim, { { 1, 'once' } })
    same({ 'two', 'three' }, nvim:lua('return vim.api.nvim_buf_get_lines(1, 0, -1, false)'))
  end)

  it('in the command line leaves what is typed there', function()
    local nvim = editor()
    nvim:keys_to(':let g:x = "', 'c')
    nvim:receive(ask(1))
    nvim:wait_screen('touch file1')
    nvim:keys('yna"<CR>')
    nvim:wait("return vim.g.x == 'yna'")
    same({}, answers(nvim))
    nvim:keys_to(':echo 1', 'c')
    reach(nvim, 'y')
    wait_answers(nvim, { { 1, 'once' } })
    same('n', nvim:mode())
  end)

  it('while a macro is recorded is no part of it', function()
    local nvim = editor()
    nvim:keys('qqA!')
    nvim:receive(ask(1))
    nvim:wait_screen('touch file1')
    nvim:keys('y<Esc>q')
    nvim:wait("return vim.fn.reg_recording() == ''")
    same('A!y\27', nvim:lua("return vim.fn.getreg('q')"))
    nvim:keys('j@q')
    nvim:wait("return vim.api.nvim_buf_get_lines(0, 1, 2, false)[1] == 'two!y'")
    same({}, answers(nvim))
  end)

  it('in a terminal lets every key through to its program', function()
    local nvim = editor()
    nvim:lua("vim.cmd.new() vim.cmd.terminal('cat')")
    nvim:keys_to('i', 't')
    nvim:receive(ask(1))
    nvim:wait_screen('touch file1')
    nvim:keys('yyy')
    nvim:wait_screen('yyy')
    same('t', nvim:mode())
    same({}, answers(nvim))
    reach(nvim, 'y')
    wait_answers(nvim, { { 1, 'once' } })
    nvim:wait_mode('t')
  end)

  it('takes no focus by itself unless it was asked to, and only where that is safe', function()
    local nvim = editor()
    nvim:lua("require('co').setup({ float_focus = true })")
    nvim:enter_chat()
    questions.wait_idle(nvim)
    nvim:receive(ask(1))
    nvim:wait(FOCUSED)
    nvim:press('y')
    wait_answers(nvim, { { 1, 'once' } })
    nvim:wait("return vim.bo.filetype == 'co-prompt'")
    nvim:receive(ask(2))
    nvim:wait_screen('touch file2')
    yes(not nvim:lua(FOCUSED), 'a key was pressed just now')
  end)
end)

describe('the result of a trial', function()
  local tried = { status = 'exit 0', output = {}, notes = {} }

  --- An editor whose person tried a command from a mode, and is there again.
  local function trying(mode)
    local nvim = editor()
    if mode == 'i' then
      nvim:keys_to('i', 'i')
    end
    nvim:receive(ask(1, { may_try = true }))
    nvim:wait_screen('touch file1')
    reach(nvim, 't')
    wait_answers(nvim, { { 1, 'try' } })
    nvim:wait(HOME)
    nvim:wait_mode(mode)
    return nvim
  end

  for _, mode in ipairs({ 'n', 'i' }) do
    it(('takes the focus back in mode %s, if nothing was typed'):format(mode), function()
      local nvim = trying(mode)
      nvim:receive(ask(2, { command = 'touch file1', tried = tried }))
      nvim:wait(FOCUSED)
      nvim:press('y')
      wait_answers(nvim, { { 1, 'try' }, { 2, 'once' } })
      nvim:wait(HOME)
      nvim:wait_mode(mode)
    end)
  end

  it('takes no focus from a person who has typed since', function()
    local nvim = trying('i')
    nvim:keys('x')
    nvim:wait("return vim.api.nvim_get_current_line() == 'xone'")
    nvim:receive(ask(2, { command = 'touch file1', tried = tried }))
    nvim:wait_screen('as a trial')
    nvim:keys('y')
    nvim:wait("return vim.api.nvim_get_current_line() == 'xyone'")
    same({ { 1, 'try' } }, answers(nvim))
  end)

  it('takes no focus from a person who may do something else by now', function()
    local nvim = trying('n')
    nvim:wait("return not require('co.ui.focus').awaited()")
    nvim:receive(ask(2, { command = 'touch file1', tried = tried }))
    nvim:wait_screen('as a trial')
    nvim:keys('yyp')
    nvim:wait('return vim.api.nvim_buf_line_count(0) == 4')
    same({ { 1, 'try' } }, answers(nvim))
  end)

  it('takes no key until the first pause', function()
    local nvim = trying('n')
    nvim:receive(ask(2, { command = 'touch file1', tried = tried }))
    nvim:wait(FOCUSED)
    nvim:keys('yyn')
    nvim:settle()
    same({ { 1, 'try' } }, answers(nvim))
    nvim:keys('y')
    wait_answers(nvim, { { 1, 'try' }, { 2, 'once' } })
  end)

  it('takes no focus for another command', function()
    local nvim = trying('n')
    nvim:receive(ask(2))
    nvim:wait_screen('touch file2')
    yes(nvim:lua(HOME), 'the person stays where they were')
  end)

  it('that comes at once finds the float with the focus', function()
    local nvim = editor()
    nvim:receive(ask(1, { may_try = true }))
    nvim:wait_screen('touch file1')
    reach(nvim, 'T')
    nvim:receive(ask(2, { command = 'touch file1', tried = tried }))
    nvim:wait_screen('as a trial')
    yes(nvim:lua(FOCUSED), 'the float keeps the focus')
    nvim:press('n')
    wait_answers(nvim, { { 1, 'try_first' }, { 2, 'deny' } })
  end)
end)

describe('a list that arrives', function()
  local LIST = {
    type = 'choose',
    chat = 1,
    name = 'model',
    title = 'Which model',
    choices = { { label = 'one', value = 'm1' }, { label = 'two', value = 'm2' } },
  }

  --- An editor whose person is in an empty buffer, and asked for the list.
  local function asking()
    local nvim = editor()
    nvim:keys(':Co /new<CR>')
    nvim:wait("return vim.bo.filetype == 'co-prompt'")
    nvim:keys(':wincmd p<CR>:Co /model<CR>')
    nvim:wait_sent(1, 'command')
    yes(nvim:lua(HOME))
    return nvim
  end

  it('finds the person who asked for it, and takes no key that was typed before', function()
    local nvim = asking()
    nvim:receive(LIST)
    nvim:wait_screen('Which model')
    nvim:keys('1<CR>')
    nvim:press('2<CR>')
    same('m2', nvim:wait_sent(2, 'command').args)
  end)

  it('waits for a person who has gone on typing', function()
    local nvim = asking()
    nvim:keys_to('i', 'i')
    nvim:receive(LIST)
    nvim:wait_notice('the list of /model is ready: :Co /approve shows it')
    nvim:keys('1 and 2<CR><Esc>2<CR>')
    nvim:wait("return vim.api.nvim_buf_get_lines(1, 0, 1, false)[1] == '1 and 2'")
    same(1, #nvim:sent('command'))
    nvim:keys('<F5>')
    nvim:wait_screen('Which model')
    nvim:press('2<CR>')
    same('m2', nvim:wait_sent(2, 'command').args)
  end)

  it('waits for a person who may do something else by now', function()
    local nvim = asking()
    nvim:wait("return not require('co.ui.focus').awaited()")
    nvim:receive(LIST)
    nvim:wait_notice('the list of /model is ready')
    nvim:keys('yy')
    nvim:wait("return vim.fn.getreg('0') == 'one\\n'")
    same(1, #nvim:sent('command'))
  end)

  it('opens once, in insert mode of the prompt too', function()
    local nvim = editor()
    nvim:keys(':Co /new<CR>')
    nvim:wait("return vim.bo.filetype == 'co-prompt'")
    nvim:keys('i/model<C-s>')
    nvim:wait_sent(1, 'command')
    nvim:receive(LIST)
    nvim:wait_screen('Which model')
    nvim:press('1<CR>')
    nvim:wait_sent(2, 'command')
    nvim:keys('<Esc>:Co /approve<CR>')
    nvim:wait_notice('nothing waits for an answer')
  end)
end)

describe('a question that is shown to somebody at the float', function()
  --- Types a key again and again, faster than a pause, then waits for a pause.
  local function type_often(nvim, key)
    nvim:lua(
      [[
        local typed, timer, key = 0, vim.uv.new_timer(), ...
        timer:start(0, 100, vim.schedule_wrap(function()
          typed = typed + 1
          if typed <= 10 then
            vim.api.nvim_input(key)
          elseif not timer:is_closing() then
            timer:close()
            _G.typed = true
          end
        end))
      ]],
      key
    )
    nvim:wait('return _G.typed')
    nvim:settle()
  end

  it('takes no key until they pause', function()
    local nvim = questions.asked(ask(1), ask(2))
    nvim:keys('y')
    nvim:wait_screen('touch file2')
    type_often(nvim, 'y')
    same({ { 1, 'once' } }, answers(nvim))
    nvim:keys('y')
    wait_answers(nvim, { { 1, 'once' }, { 2, 'once' } })
  end)

  it('takes no key that was typed while Neovim was busy', function()
    local nvim = questions.asked(ask(1), ask(2))
    nvim:lua([[
      vim.schedule(function()
        require('co.question').answer(1, 'once')
        vim.api.nvim_input('y')
        vim.uv.sleep(900)
      end)
    ]])
    nvim:wait_screen('touch file2')
    nvim:settle()
    same({ { 1, 'once' } }, answers(nvim))
    nvim:keys('y')
    wait_answers(nvim, { { 1, 'once' }, { 2, 'once' } })
  end)

  it('takes no mapping that was begun before', function()
    local nvim = questions.asked(ask(1), ask(2))
    nvim:lua([[
      vim.o.timeoutlen = 5000
      require('co.question').answer(1, 'once')
      vim.api.nvim_input('g')
      vim.uv.new_timer():start(900, 0, function()
        vim.api.nvim_input('N')
      end)
    ]])
    nvim:wait_screen('touch file2')
    nvim:settle()
    same({ { 1, 'once' } }, answers(nvim))
  end)

  it('takes no key for a while when its text changes', function()
    local nvim = questions.asked(ask(1, { no_undo = '' }))
    nvim:lua(
      "receive({ { type = 'no_undo', chat = 1, why = 'the disk is full' } }) vim.api.nvim_input('y')"
    )
    nvim:wait_screen('no undo: the disk is full')
    nvim:settle()
    same({}, answers(nvim))
    nvim:keys('y')
    wait_answers(nvim, { { 1, 'once' } })
  end)
end)
