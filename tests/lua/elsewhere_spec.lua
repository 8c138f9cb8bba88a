local messages = require('messages')
local neovim = require('neovim')
local questions = require('questions')
local ask = messages.ask
local FOCUSED = questions.FOCUSED
local HOME = questions.HOME
local answers = questions.answers
local wait_answers = questions.wait_answers

local MODES = { 'n', 'i', 'x', 's', 'o', 'c', 't' }
-- The keys that the person mapped, each a key of a terminal.
local UNSEEN = 'the question cannot be seen: :Co /approve goes to it'
local YES, NO, REVIEW, TRY = '<F1>', '<F2>', '<F3>', '<F4>'

--- An editor with a map for each answer.
local function editor(opts)
  local nvim = questions.editor(opts)
  nvim:lua(
    [[
      local modes, keys = ...
      for answer, key in pairs(keys) do
        vim.keymap.set(modes, key, ('<Plug>(co-%s)'):format(answer))
      end
    ]],
    MODES,
    { yes = YES, no = NO, review = REVIEW, try = TRY }
  )
  return nvim
end

--- Waits until the question has been on the screen for long enough.
local function wait_seen(nvim)
  nvim:wait("return require('co.question.sight').seen()")
end

--- An editor that was asked these questions, the first of which the person has seen.
local function seen(...)
  local nvim = editor()
  nvim:receive(...)
  nvim:wait_screen('co 1/' .. select('#', ...))
  wait_seen(nvim)
  return nvim
end

--- Checks that a key answers nothing, and that the person is told why.
local function refuses(nvim, key, notice)
  nvim:lua('_G.notices = {}')
  local before = answers(nvim)
  nvim:keys(key)
  nvim:wait_notice(notice)
  same(before, answers(nvim))
end

describe('an answer from elsewhere', function()
  for key, decision in pairs({ [YES] = 'once', [NO] = 'deny', [TRY] = 'try' }) do
    it('is ' .. decision .. ', and the cursor stays', function()
      local nvim = seen(ask(1, { may_try = true }))
      nvim:keys(key)
      wait_answers(nvim, { { 1, decision } })
      nvim:wait_gone('touch file1')
      yes(nvim:lua(HOME))
      same('n', nvim:mode())
    end)
  end

  it('leaves Insert mode and its text as they are', function()
    local nvim = seen(ask(1))
    nvim:keys('ione' .. YES .. 'two')
    wait_answers(nvim, { { 1, 'once' } })
    nvim:wait("return vim.api.nvim_get_current_line() == 'onetwoone'")
    same('i', nvim:mode())
    nvim:keys('<Esc>u')
    nvim:wait("return vim.api.nvim_get_current_line() == 'one'")
  end)

  it('leaves Replace mode, a selection and a command line as they are', function()
    local nvim = seen(ask(1), ask(2), ask(3))
    nvim:keys('R12' .. YES .. '3<Esc>')
    nvim:wait("return vim.api.nvim_get_current_line() == '123'")
    nvim:wait_screen('touch file2')
    wait_seen(nvim)
    nvim:keys('vj' .. YES .. 'y')
    nvim:wait("return vim.fn.getreg('0') == '3\\nt' or vim.fn.getreg('0') == '3\\ntwo'")
    nvim:wait_screen('touch file3')
    wait_seen(nvim)
    nvim:keys(':let g:typed = 1' .. YES .. '2<CR>')
    nvim:wait('return vim.g.typed == 12')
    wait_answers(nvim, { { 1, 'once' }, { 2, 'once' }, { 3, 'once' } })
  end)

  it('leaves a terminal and its program as they are', function()
    local nvim = editor()
    nvim:lua("vim.cmd.new() vim.cmd.terminal('cat')")
    nvim:keys_to('i', 't')
    nvim:receive(ask(1))
    nvim:wait_screen('touch file1')
    wait_seen(nvim)
    nvim:keys('abc' .. NO .. 'def')
    wait_answers(nvim, { { 1, 'deny' } })
    nvim:wait_screen('abcdef')
    same('t', nvim:mode())
  end)

  it('ends an operator, which then changes nothing and repeats nothing', function()
    local nvim = seen(ask(1), ask(2))
    nvim:keys('d' .. YES)
    wait_answers(nvim, { { 1, 'once' } })
    nvim:wait_mode('n')
    nvim:wait_screen('touch file2')
    wait_seen(nvim)
    nvim:keys('.l')
    nvim:wait('return vim.api.nvim_win_get_cursor(0)[2] == 1')
    same({ { 1, 'once' } }, answers(nvim))
    same({ 'one', 'two', 'three' }, nvim:lua('return vim.api.nvim_buf_get_lines(0, 0, -1, false)'))
  end)

  it('works in the window of the command line', function()
    local nvim = seen(ask(1))
    nvim:keys('q:' .. YES)
    wait_answers(nvim, { { 1, 'once' } })
    nvim:wait_gone('touch file1')
    nvim:keys(':q<CR>')
    nvim:wait(HOME)
  end)

  it('is one answer, whatever the count', function()
    local nvim = seen(ask(1), ask(2))
    nvim:keys('3' .. YES)
    nvim:wait_screen('touch file2')
    wait_seen(nvim)
    same({ { 1, 'once' } }, answers(nvim))
  end)

  it('counts for a question with any characters', function()
    local nvim = seen(ask(1, {
      command = 'echo "日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語" e\u{301} 👨‍👩‍👧 🏳️‍🌈 سلام ß\ttab\u{a0}x  ',
      reasons = { 'שלום', 'नमस्ते', '\u{200b}|\u{202e}|\u{feff}|\1' },
    }))
    same('whole', nvim:lua("return require('co.question.sight').visibility()"))
    nvim:keys(YES)
    wait_answers(nvim, { { 1, 'once' } })
  end)

  for mode, keys in pairs({ n = '', i = 'i', x = 'v', c = ':abc', o = 'd', cmdwin = 'q:' }) do
    it('opens the review of a change from mode ' .. mode, function()
      local file = messages.file('src/a.rs', '@\n-old\n+new\n')
      local change = messages.change({ excerpt = '-old\n+new\n', files = { file } })
      local nvim = seen(ask(1, { change = change }))
      nvim:keys(keys .. REVIEW)
      nvim:wait_screen('change 1 of 1')
      nvim:wait_mode('n')
      same({}, answers(nvim))
      same(
        { 'one', 'two', 'three' },
        nvim:lua('return vim.api.nvim_buf_get_lines(1, 0, -1, false)')
      )
    end)
  end

  it('shows what comes next while a command line is typed', function()
    local nvim = seen(ask(1), ask(2))
    nvim:keys(':abc' .. YES)
    nvim:wait_screen('touch file2', ':abc')
    nvim:wait_gone('touch file1')
    same('c', nvim:mode())
  end)

  it('may be what a key is mapped to in several steps', function()
    local nvim = seen(ask(1), ask(2))
    nvim:lua([[
      vim.keymap.set('n', '<F9>', 'j<F1>', { remap = true })
      vim.keymap.set('i', '<F9>', '<C-o><F1>', { remap = true })
    ]])
    nvim:keys('<F9>')
    wait_answers(nvim, { { 1, 'once' } })
    nvim:wait_screen('touch file2')
    wait_seen(nvim)
    nvim:keys('i<F9>')
    wait_answers(nvim, { { 1, 'once' }, { 2, 'once' } })
  end)

  it('is told that nothing waits, or nothing is shown', function()
    local nvim = editor()
    refuses(nvim, YES, 'nothing waits for an answer')
    nvim:receive(ask(1))
    nvim:wait_screen('touch file1')
    questions.reach(nvim, 'q')
    nvim:wait_gone('touch file1')
    refuses(nvim, YES, UNSEEN)
  end)

  it('is no try of what cannot be tried', function()
    refuses(seen(ask(1)), TRY, 'this cannot be tried')
    refuses(seen(messages.trust(1)), TRY, 'this cannot be tried')
  end)
end)

describe('an answer from elsewhere is refused', function()
  it('until the question was on the screen for a while, and the key was released', function()
    local nvim = editor()
    nvim:lua(
      [[
        receive({ ... })
        local timer = vim.uv.new_timer()
        local typed = 0
        timer:start(0, 50, vim.schedule_wrap(function()
          typed = typed + 1
          if typed <= 12 then
            vim.api.nvim_input('<F1>')
          elseif not timer:is_closing() then
            timer:close()
            _G.typed = true
          end
        end))
      ]],
      ask(1)
    )
    nvim:wait_notice('too quick, press again')
    nvim:wait('return _G.typed')
    wait_seen(nvim)
    same({}, answers(nvim))
    nvim:keys(YES)
    wait_answers(nvim, { { 1, 'once' } })
  end)

  it('if it was typed while Neovim was busy', function()
    local nvim = seen(ask(1))
    nvim:lua(
      [[
        local question = ...
        vim.schedule(function()
          receive({ { type = 'settled', id = 1, decision = 'withdrawn' }, question })
          vim.api.nvim_input('<F1>')
          vim.uv.sleep(900)
        end)
      ]],
      ask(2)
    )
    nvim:wait_notice('too quick, press again')
    same({}, answers(nvim))
  end)

  it('if another question took the place of the one that the person saw', function()
    local nvim = seen(ask(1))
    nvim:receive({ type = 'settled', id = 1, decision = 'withdrawn' }, ask(2))
    nvim:wait_screen('touch file2')
    wait_seen(nvim)
    refuses(nvim, YES, 'another question has come: press again')
    nvim:keys(YES)
    wait_answers(nvim, { { 2, 'once' } })
  end)

  it('for a while after a question came behind it', function()
    local nvim = seen(ask(1))
    nvim:lua("receive({ ... }) vim.api.nvim_input('<F1>')", ask(2))
    nvim:wait_notice('too quick, press again')
    same({}, answers(nvim))
    wait_seen(nvim)
    nvim:keys(YES)
    wait_answers(nvim, { { 1, 'once' } })
  end)

  it('for a while after its text has changed', function()
    local nvim = seen(ask(1, { no_undo = '' }))
    nvim:lua(
      "receive({ { type = 'no_undo', chat = 1, why = 'the disk is full' } }) vim.api.nvim_input('<F1>')"
    )
    nvim:wait_screen('no undo: the disk is full')
    nvim:wait_notice('too quick')
    same({}, answers(nvim))
  end)

  it('from a macro, :normal, a repeat or a plugin', function()
    local nvim = seen(ask(1))
    nvim:lua([[
      vim.fn.setreg('q', vim.keycode('<F1>'))
      vim.keymap.set('n', '<F9>', '@q')
      vim.keymap.set('n', '<F10>', ':normal! j<CR>:normal <F1><CR>', { remap = true })
      vim.keymap.set('c', '<CR>', '<C-]><CR>')
      vim.api.nvim_create_user_command('Yes', 'exe "normal \\<F1>"', {})
    ]])
    local NOTICE = 'only a key that you press yourself answers the question'
    for _, keys in ipairs({
      '@q',
      '3@q',
      '<F9>',
      ':Yes<CR>',
      '@:',
      ':call feedkeys("\\<lt>F1>")<CR>',
    }) do
      refuses(nvim, keys, NOTICE)
    end
    nvim:lua([[
      _G.notices = {}
      vim.defer_fn(function() vim.cmd.normal(vim.keycode('<F1>')) end, 1)
    ]])
    nvim:wait_notice(NOTICE)
    same({}, answers(nvim))
    nvim:keys('qx' .. YES .. 'q')
    wait_answers(nvim, { { 1, 'once' } })
  end)

  it('while something covers the question', function()
    local nvim = seen(ask(1))
    nvim:lua([[
      local buf = vim.api.nvim_create_buf(false, true)
      _G.cover = vim.api.nvim_open_win(buf, false, {
        relative = 'editor', row = 20, col = 40, width = 50, height = 8, zindex = 100,
      })
    ]])
    nvim:wait_gone('touch file1')
    refuses(nvim, YES, UNSEEN)
    nvim:lua('vim.api.nvim_win_close(_G.cover, true)')
    nvim:wait_screen('touch file1')
    nvim:keys(YES)
    wait_answers(nvim, { { 1, 'once' } })
  end)

  it('if the question was always covered', function()
    local nvim = editor()
    nvim:lua(
      [[
        local buf = vim.api.nvim_create_buf(false, true)
        _G.cover = vim.api.nvim_open_win(buf, false, {
          relative = 'editor', row = 20, col = 40, width = 50, height = 8, zindex = 100,
        })
        receive({ ... })
      ]],
      ask(1)
    )
    nvim:wait_screen(' answer ╯')
    nvim:lua("vim.api.nvim_win_close(_G.cover, true) vim.api.nvim_input('<F1>')")
    nvim:wait('return #_G.notices > 0')
    same({}, answers(nvim))
  end)

  it('while a menu of completion covers the question', function()
    local nvim = seen(ask(1))
    nvim:lua([[
      vim.api.nvim_buf_set_lines(0, 0, -1, false, vim.fn['repeat']({ '' }, 19))
      vim.keymap.set('i', '<F9>', function()
        vim.fn.complete(1, vim.fn.map(vim.fn.range(1, 8), '"word" .. v:val .. repeat("-", 80)'))
      end)
    ]])
    nvim:keys('GA<F9>')
    nvim:wait('return vim.fn.pumvisible() == 1')
    nvim:wait_gone('touch file1')
    refuses(nvim, YES .. '<C-e>', UNSEEN)
  end)

  it('for a while after a change of the tab page or of the size of the screen', function()
    local nvim = seen(ask(1))
    nvim:lua("vim.cmd.tabnew() vim.api.nvim_input('<F1>')")
    nvim:wait('return #_G.notices > 0')
    same({}, answers(nvim))
    wait_seen(nvim)
    nvim:lua("_G.notices = {} vim.o.columns = 40 vim.api.nvim_input('<F1>')")
    nvim:wait('return #_G.notices > 0')
    same({}, answers(nvim))
    wait_seen(nvim)
    nvim:keys(YES)
    wait_answers(nvim, { { 1, 'once' } })
  end)

  it('while something covers the question in a screen that draws each window itself', function()
    local nvim = questions.editor({ screen = false })
    nvim:lua("vim.keymap.set('n', '<F1>', '<Plug>(co-yes)')")
    local address = nvim:lua('return vim.v.servername')
    local screen = vim.fn.sockconnect('pipe', address, { on_data = function() end })
    local options = { rgb = true, ext_linegrid = true, ext_multigrid = true }
    local attach = { 0, 1, 'nvim_ui_attach', { 100, 30, options } }
    vim.fn.chansend(screen, vim.mpack.encode(attach))
    nvim:wait('return #vim.api.nvim_list_uis() == 1')
    nvim:receive(ask(1))
    nvim:wait("return require('co.question.sight').visibility() == 'whole'")
    wait_seen(nvim)
    nvim:lua([[
      local buf = vim.api.nvim_create_buf(false, true)
      _G.cover = vim.api.nvim_open_win(buf, false, {
        relative = 'editor', row = 20, col = 40, width = 50, height = 8, zindex = 60,
      })
    ]])
    refuses(nvim, YES, UNSEEN)
    nvim:lua('vim.api.nvim_win_close(_G.cover, true)')
    nvim:keys(YES)
    wait_answers(nvim, { { 1, 'once' } })
  end)

  it('while no screen is attached', function()
    local nvim = questions.editor({ screen = false })
    nvim:lua("vim.keymap.set('n', '<F1>', '<Plug>(co-yes)')")
    nvim:receive(ask(1))
    nvim:wait("return #require('co.question').pending() == 1")
    refuses(nvim, YES, UNSEEN)
  end)
end)

describe('a question that only the float answers', function()
  local long = table.concat(neovim.numbered('echo line', 60), '\n')
  local cases = {
    ['may destroy'] = ask(1, { destructive = true }),
    ['may reach a secret, or leave the workspace'] = ask(1, { alone = 'it may read .env' }),
    ['is typed into a job'] = ask(1, { job = 1 }),
    ['is longer than its float'] = ask(1, { command = long }),
    ['has a long difference'] = ask(1, {
      change = messages.change({ excerpt = '+' .. table.concat(neovim.numbered('row', 60), '\n+') }),
    }),
    ['has a difference of which a part is left out'] = ask(1, {
      change = messages.change({ excerpt = '+row\n', more = 1 }),
    }),
    ['sends a file from outside'] = messages.trust(1, { context = true, name = '@file:../x' }),
    ['sends a long file'] = messages.trust(1, {
      text = table.concat(neovim.numbered('row', 60), '\n'),
    }),
  }
  for what, question in pairs(cases) do
    it('because it ' .. what, function()
      for _, key in ipairs({ YES, NO, REVIEW, TRY }) do
        local nvim = seen(vim.deepcopy(question))
        nvim:wait_screen('<F5> to answer')
        yes(not nvim:shows('<F1> yes'), 'the key is offered')
        nvim:keys('i' .. key .. 'yn')
        nvim:wait(FOCUSED)
        nvim:settle()
        same({}, answers(nvim))
        nvim:keys('n')
        wait_answers(nvim, { { 1, 'deny' } })
        nvim:wait_mode('i')
      end
    end)
  end

  it('because a part of its last line is cut', function()
    for _, display in ipairs({ 'lastline', 'truncate', '' }) do
      local nvim = editor({ columns = 60, lines = 12 })
      nvim:lua('vim.o.display = ...', display)
      nvim:receive(ask(1, {
        command = 'touch ' .. table.concat(neovim.numbered('file', 60), ' '),
        reasons = { table.concat(neovim.numbered('reason', 60), ' ') },
      }))
      nvim:wait_screen('co 1/1', '@')
      wait_seen(nvim)
      yes(not nvim:shows('<F1> yes'), 'the key is offered')
      nvim:keys(YES)
      nvim:wait(FOCUSED)
      same({}, answers(nvim))
    end
  end)

  it('takes no focus before the person has seen it', function()
    local nvim = editor()
    nvim:lua("receive({ ... }) vim.api.nvim_input('<F1>')", ask(1, { destructive = true }))
    nvim:wait_notice('too quick')
    yes(nvim:lua(HOME))
  end)
end)

describe('an answer in the float', function()
  it('leads back to Replace mode', function()
    for _, key in ipairs({ '<F5>', YES }) do
      local nvim = seen(ask(1, { destructive = true }))
      nvim:keys_to('RX', 'R')
      nvim:keys(key)
      nvim:wait(FOCUSED)
      nvim:press('y')
      wait_answers(nvim, { { 1, 'once' } })
      nvim:wait_mode('R')
      nvim:keys('YZ!')
      nvim:wait("return vim.api.nvim_get_current_line() == 'XYZ!'")
    end
  end)

  it('leads back to one command from Replace mode', function()
    local nvim = seen(ask(1))
    nvim:keys_to('RX', 'R')
    nvim:keys_to('<C-o>', 'niR')
    nvim:keys('<F5>')
    nvim:wait(FOCUSED)
    nvim:press('y')
    nvim:wait_mode('R')
    nvim:keys('YZ!')
    nvim:wait("return vim.api.nvim_get_current_line() == 'XYZ!'")
  end)

  it('leaves Insert mode only if there is a question', function()
    local nvim = editor()
    nvim:keys_to('i', 'i')
    nvim:keys('<F5>')
    nvim:wait_notice('nothing waits for an answer')
    same('i', nvim:mode())
  end)
end)

describe('a key in the float just after the jump there', function()
  it('answers a question that the person had seen', function()
    local nvim = seen(ask(1))
    nvim:keys('<F5>y')
    wait_answers(nvim, { { 1, 'once' } })
    nvim:wait(HOME)
  end)

  it('answers nothing that they had not seen, and says so', function()
    local nvim = editor()
    nvim:lua("receive({ ... }) vim.api.nvim_input('<F5>y')", ask(1))
    nvim:wait_notice('too quick, press again')
    same({}, answers(nvim))
    nvim:press('y')
    wait_answers(nvim, { { 1, 'once' } })
  end)

  it('answers one question', function()
    local nvim = seen(ask(1), ask(2))
    nvim:keys('<F5>yy')
    nvim:wait_screen('touch file2')
    nvim:wait_notice('too quick, press again')
    nvim:settle()
    same({ { 1, 'once' } }, answers(nvim))
  end)

  it('answers nothing in a macro', function()
    local nvim = seen(ask(1))
    nvim:lua("vim.fn.setreg('q', vim.keycode('<F5>y'))")
    nvim:keys('@q')
    nvim:wait_notice('too quick, press again')
    same({}, answers(nvim))
  end)

  it('answers nothing dangerous', function()
    local nvim = seen(ask(1, { destructive = true }))
    nvim:keys('<F5>y')
    nvim:wait_notice('too quick, press again')
    same({}, answers(nvim))
  end)
end)
