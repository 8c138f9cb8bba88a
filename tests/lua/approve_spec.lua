local messages = require('messages')
local questions = require('questions')
local ask = messages.ask
local editor = questions.editor
local FOCUSED = questions.FOCUSED
local HOME = questions.HOME
local FLOATS = questions.FLOATS
local answers = questions.answers
local wait_answers = questions.wait_answers
local asked, reach, shown = questions.asked, questions.reach, questions.shown

describe('the approval float', function()
  it('opens without focus and says all there is to say', function()
    local nvim = editor()
    nvim:receive(
      ask(1, {
        command = 'cargo test',
        timeout = 120,
        reasons = { 'it runs code', 'no rule allows it' },
      }),
      ask(2),
      ask(3)
    )
    nvim:wait_screen('co 1/3')
    nvim:wait_screen(
      'cargo test',
      '/tmp',
      '120 s',
      'unconfined',
      'it runs code',
      'no rule allows it'
    )
    nvim:wait_screen('<F5> to answer')
    yes(nvim:lua(HOME))
    same('n', nvim:mode())
    same('co ?3', nvim:lua("return require('co').statusline()"))
  end)

  it('offers no answer for later calls if none would hold', function()
    local file =
      { path = 'a', added = 1, removed = 0, parts = 0, whole = true, text = '', more = 0 }
    local change =
      { added = 1, removed = 0, facts = {}, excerpt = '+a\n', more = 0, files = { file } }
    local long = { only_once = true, command = 'touch ' .. ('x'):rep(60) }
    for _, fields in ipairs({ {}, { prefix = 'touch' }, { change = change } }) do
      local nvim = editor()
      nvim:receive(ask(1, vim.tbl_extend('force', fields, long)))
      nvim:wait_screen('co 1/1')
      reach(nvim)
      nvim:wait_screen('y once · n no · N no, because')
      yes(not nvim:shows('always'))
      nvim:keys('a')
      nvim:wait_notice('no answer holds for later calls here: each one asks')
      nvim:keys(':Co /always 1 command<CR>')
      nvim:wait_notice('question 1 takes no /always')
      nvim:keys('g?')
      nvim:wait_screen('no, with a reason for the model')
      yes(not nvim:shows('always: choose'))
      nvim:keys('g?y')
      wait_answers(nvim, { { 1, 'once' } })
    end
  end)

  it('keeps a form answerable on a small screen', function()
    local choices = {}
    for index = 1, 50 do
      choices[index] = { label = ('choice %d %s'):format(index, ('x'):rep(190)), advised = false }
    end
    local words = 'The tool server s asks:\n' .. ('long words '):rep(300)
    local nvim = editor({ columns = 60, lines = 15 })
    nvim:receive(ask(1, {
      choices = {
        { question = words, choices = choices, several = false, kind = 'form' },
        { question = words, choices = {}, several = false, kind = 'form' },
        { question = words, choices = choices, several = true, kind = 'form' },
      },
    }))
    nvim:wait_screen('1 of 3', 'The tool server s asks:', 'long words', '1  choice 1 x')
    reach(nvim)
    nvim:wait_screen('1-9')
    nvim:keys('e')
    nvim:wait_mode('i')
    nvim:keys('12<CR>')
    nvim:wait_screen('2 of 3', 'The tool server s asks:', 'own words')
    yes(not nvim:shows('1-0'))
    nvim:press('e')
    nvim:wait_mode('i')
    nvim:keys('12<CR>')
    nvim:wait_screen('3 of 3', '[ ] choice 1 x')
    nvim:press('1')
    nvim:wait_screen('[x] choice 1 x')
    nvim:keys('e')
    nvim:wait_mode('i')
    nvim:keys('50<CR>')
    nvim:wait_mode('n')
    nvim:press('<CR>')
    wait_answers(nvim, { { 1, 'chosen' } })
    same({
      { choices = { 12 } },
      { choices = {}, text = '12' },
      { choices = { 1, 50 } },
    }, nvim:sent('answer')[1].chosen)
  end)

  it('denies what it cannot show, and says so', function()
    local nvim = editor()
    nvim:lua([[
      local texts = require('co.question.float_text')
      local place = texts.place
      texts.place = function(question)
        return question.id == 2 and error('no text') or place(question)
      end
    ]])
    nvim:receive(ask(1), ask(2), ask(3))
    nvim:wait_screen('co 1/3')
    reach(nvim, 'y')
    nvim:wait_notice('not allowed, because the question cannot be shown: touch file2')
    wait_answers(nvim, { { 1, 'once' }, { 2, 'deny' } })
    same('co could not show the question', nvim:sent('answer')[2].reason)
    nvim:wait_screen('touch file3')
    reach(nvim, 'y')
    wait_answers(nvim, { { 1, 'once' }, { 2, 'deny' }, { 3, 'once' } })
    -- It fails before it is in the queue.
    nvim:receive(ask(4, { change = 7 }))
    wait_answers(nvim, { { 1, 'once' }, { 2, 'deny' }, { 3, 'once' }, { 4, 'deny' } })
    -- So does a request that is no question.
    nvim:receive({ type = 'read_buffers', request = 5, files = 7 })
    same({ type = 'failed', request = 5 }, nvim:wait_sent(1, 'failed'))
    same('', nvim:lua('return vim.v.errmsg:match("^E.*") or ""'))
  end)

  it('says that there is no undo until there is one', function()
    local nvim = editor()
    local no_undo = 'no undo: the first checkpoint is being made'
    nvim:receive(ask(1, { no_undo = 'the first checkpoint is being made' }), ask(2))
    nvim:wait_screen(no_undo)
    nvim:receive({ type = 'no_undo', chat = 2 })
    nvim:receive({ type = 'no_undo', chat = 1, why = 'the workspace is too large' })
    nvim:wait_screen('no undo: the workspace is too large')
    nvim:receive({ type = 'no_undo', chat = 1 })
    nvim:wait_gone('no undo')
  end)

  it('says where and how a job would run, and what is typed into one', function()
    local nvim = editor()
    nvim:lua('vim.o.columns = 120')
    local fields = { terminal = true, background = true, command = 'npm run dev' }
    nvim:receive(ask(1, fields))
    nvim:wait_screen('how  in a terminal, in the background, until it ends')
    nvim:wait_screen('in   /tmp · unconfined')
    reach(nvim, 'y')
    wait_answers(nvim, { { 1, 'once' } })
    nvim:receive(ask(2, { job = 3, command = 'rm a\\n\n(end of input)' }))
    nvim:wait_screen('(end of input)')
    reach(nvim, 'ea')
    nvim:wait_screen('c  whatever is typed into job 3')
    nvim:keys('c')
    wait_answers(nvim, { { 1, 'once' }, { 2, 'always' } })
    same('command', nvim:sent('answer')[2].scope)
  end)

  it('folds a long command, keeps the rest visible, and grows to all of it with d', function()
    local steps = {}
    for index = 1, 30 do
      steps[index] = ('step-%02d'):format(index)
    end
    local reasons = { 'it writes to the files of the workspace', 'no rule allows it' }
    for _, size in ipairs({ { 160, 45 }, { 60, 20 }, { 60, 15 } }) do
      for joint, more in pairs({ ['\n'] = 'more lines', [' && '] = 'more characters' }) do
        local nvim = editor({ columns = size[1], lines = size[2] })
        local start = table.concat(steps, joint) .. joint .. ('x'):rep(800)
        local span = { #start, #start + 6 }
        local command = start .. 'DANGER' .. ('y'):rep(99) .. 'END'
        nvim:receive(ask(1, { command = command, reasons = reasons, span = span }))
        local texts = { 'step-01', 'xDANGERy', more .. ': d shows all', '/tmp', 'it writes' }
        for _, text in ipairs(vim.list_extend(texts, { 'no rule allows it', 'to answer' })) do
          nvim:wait_screen(text)
        end
        yes(not nvim:shows('END'))
        reach(nvim, 'd')
        nvim:wait("return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false)):find('END')")
        nvim:keys('d')
        nvim:wait_screen(more .. ': d shows all')
      end
    end
  end)

  it('takes the keys of the person, and names them', function()
    local nvim = editor({ columns = 120 })
    nvim:lua([[vim.g.co = { keys = { question = {
      yes = 'gy', no = false, all = { '<Tab>', 'D' }, command = 'x', everything = false,
    } } }]])
    nvim:receive(ask(1, { command = (('long '):rep(15) .. '\n'):rep(40) }), ask(2), ask(3))
    nvim:wait_screen('more lines: <Tab> shows all')
    reach(nvim)
    nvim:wait_screen('gy once · N no, because · a always · e edit · Y list · <Tab> all · g?')
    for _, usual in ipairs({ 'y', 'n', 'd', 'c', 'E' }) do
      same('', nvim:lua("return vim.fn.maparg(..., 'n')", usual))
    end
    nvim:keys('<Tab>')
    nvim:wait_gone('shows all')
    nvim:keys('g?')
    nvim:wait_screen('gy  yes, once')
    yes(not nvim:shows('n   no'))
    nvim:keys('<Esc>gy')
    nvim:wait_screen('touch file2')
    nvim:press('a')
    nvim:wait_screen('x  this command')
    yes(not nvim:shows('everything'))
    nvim:keys('x')
    nvim:wait_screen('touch file3')
    nvim:press('Y')
    nvim:wait_screen('gy approves this one')
    wait_answers(nvim, { { 1, 'once' }, { 2, 'always' } })
  end)

  it('y answers once, n no, and gives window and view back', function()
    local nvim = asked(ask(1), ask(2))
    nvim:keys('y')
    nvim:wait_screen('touch file2')
    yes(nvim:lua(FOCUSED), 'the next question keeps the focus')
    nvim:press('n')
    nvim:wait_gone('touch file2')
    wait_answers(nvim, { { 1, 'once' }, { 2, 'deny' } })
    yes(nvim:lua(HOME))
    same('', nvim:lua("return require('co').statusline()"))
  end)

  it('swallows keys for 250 ms after it is focused', function()
    local nvim = shown(ask(1))
    nvim:keys('<F5>yyy')
    nvim:wait(FOCUSED)
    same({}, answers(nvim))
    nvim:press('y')
    wait_answers(nvim, { { 1, 'once' } })
  end)

  it('does nothing on <CR>', function()
    local nvim = asked(ask(1))
    nvim:keys('<CR><CR>')
    nvim:settle()
    same({}, answers(nvim))
    yes(nvim:lua(FOCUSED))
  end)

  it('that went while its reason was written is told of', function()
    local nvim = asked(ask(1))
    nvim:keys('N')
    nvim:wait_screen('No, because')
    nvim:keys_to('not that', 'i')
    nvim:receive({ type = 'settled', id = 1, decision = 'withdrawn' })
    nvim:wait_gone('touch file1')
    nvim:keys('<CR>')
    nvim:wait_screen('nothing was sent: the question was withdrawn meanwhile')
    same({}, answers(nvim))
  end)

  it('a shows the scope first', function()
    local nvim = asked(ask(1, { prefix = 'cargo test' }))
    nvim:keys('a')
    nvim:wait_screen('what starts with `cargo test`, saved')
    nvim:keys('y')
    same({}, answers(nvim), 'y is no answer to the menu')
    nvim:keys('p')
    wait_answers(nvim, { { 1, 'always' } })
    same('prefix', nvim:sent('answer')[1].scope)
  end)

  it('a shows every scope, however long the command and small the screen', function()
    local nvim = editor({ columns = 60, lines = 9 })
    nvim:receive(ask(1, { command = ('touch file1\n'):rep(60), prefix = 'touch' }))
    nvim:wait_screen('touch file1')
    reach(nvim, 'G')
    nvim:keys('a')
    nvim:wait_screen('this command, in this chat')
    yes(nvim:shows('everything, in this chat'))
  end)

  it('offers no prefix where there is none', function()
    local nvim = asked(ask(1))
    nvim:keys('a')
    nvim:wait_screen('this command, in this chat')
    yes(not nvim:shows('what starts with'))
    nvim:keys('p')
    nvim:keys('q')
    nvim:wait_screen('why  it writes')
    same({}, answers(nvim))
    nvim:keys('aE')
    wait_answers(nvim, { { 1, 'always' } })
    same('everything', nvim:sent('answer')[1].scope)
  end)

  it('N takes a reason', function()
    local nvim = asked(ask(1))
    nvim:keys('N')
    nvim:wait_screen('No, because')
    nvim:keys('use make instead<CR>')
    wait_answers(nvim, { { 1, 'deny' } })
    same('use make instead', nvim:sent('answer')[1].reason)
    nvim:wait(HOME)
    same('n', nvim:mode())
  end)

  it('e edits the command first', function()
    local nvim = editor()
    nvim:receive(ask(1, { command = 'rm -rf build' }))
    nvim:wait_screen('rm -rf build')
    reach(nvim, 'e')
    nvim:wait_screen('Run instead')
    nvim:keys('Aer<Esc><CR>')
    wait_answers(nvim, { { 1, 'edited' } })
    same('rm -rf builder', nvim:sent('answer')[1].command)
  end)

  -- It makes the float wide enough for the words of the keys.
  local long = 'make ' .. ('x'):rep(85)

  it('offers to try a command only if that is possible', function()
    local nvim =
      asked(ask(1, { may_try = true, command = long }), ask(2, { may_try = true }), ask(3))
    nvim:wait_screen('y n N a t e')
    nvim:keys('t')
    wait_answers(nvim, { { 1, 'try' } })
    nvim:settle()
    nvim:keys('T')
    wait_answers(nvim, { { 1, 'try' }, { 2, 'try_first' } })
    nvim:settle()
    nvim:keys('tTn')
    wait_answers(nvim, { { 1, 'try' }, { 2, 'try_first' }, { 3, 'deny' } })
  end)

  it('shows the result of a trial, and what it changed', function()
    local tried =
      { status = 'exit 1, after 2 s', output = { 'one failed' }, notes = { 'x is dropped' } }
    local change = messages.change({
      removed = 0,
      excerpt = '#── a  +1 -0\n 1\n+2\n',
    })
    local nvim = asked(ask(1, { command = long, tried = tried, change = change }))
    nvim:wait_screen(
      'diff +1 -0',
      '/tmp · yes keeps the changes',
      'as a trial: exit 1',
      'x is dropped',
      'one failed',
      '── a  +1 -0',
      'y keep'
    )
    nvim:keys('n')
    wait_answers(nvim, { { 1, 'deny' } })
    tried.runs_again, tried.git = true, 'a commit on main: fix it, 1 file'
    nvim:receive(ask(2, { command = long, tried = tried }))
    nvim:wait_screen(
      'yes runs it for real, unconfined',
      'git  a commit on main: fix it, 1 file',
      'one failed',
      'y run for real'
    )
  end)

  it('leaves the question alone when an edit is given up', function()
    local nvim = asked(ask(1))
    nvim:keys('e')
    nvim:wait_screen('Run instead')
    nvim:keys('q')
    nvim:wait_gone('Run instead')
    same({}, answers(nvim))
    nvim:wait(FOCUSED)
  end)

  it('answers the question that was edited, not one that came in its place', function()
    local nvim = asked(ask(1), ask(2))
    nvim:keys('e')
    nvim:wait_screen('Run instead')
    nvim:receive({ type = 'settled', id = 1, decision = 'withdrawn' })
    nvim:wait("return #require('co.question').pending() == 1")
    nvim:keys('<CR>')
    nvim:wait_gone('Run instead')
    same({}, answers(nvim))
  end)

  for _, key in ipairs({ 'q', '<Esc>' }) do
    it(key .. ' hides it: still pending, and it comes back', function()
      local nvim = asked(ask(1))
      nvim:keys(key)
      nvim:wait_gone('touch file1')
      nvim:wait(HOME)
      same({}, answers(nvim))
      same('co ?1', nvim:lua("return require('co').statusline()"))
      nvim:keys(':Co /approve<CR>')
      nvim:wait_screen('touch file1')
      nvim:wait(FOCUSED)
      nvim:press('y')
      wait_answers(nvim, { { 1, 'once' } })
    end)
  end

  it('is still pending after :only and :close, and comes back', function()
    local nvim = shown(ask(1))
    nvim:keys(':only<CR>')
    nvim:wait_gone('touch file1')
    same({}, answers(nvim))
    reach(nvim)
    nvim:wait_screen('touch file1')
    nvim:keys(':close<CR>')
    nvim:wait_gone('touch file1')
    same({}, answers(nvim))
    reach(nvim, 'y')
    wait_answers(nvim, { { 1, 'once' } })
  end)

  it('that comes while the first one is put away is told of, and both wait', function()
    local nvim = asked(ask(1))
    nvim:keys('q')
    nvim:wait_gone('touch file1')
    nvim:receive(ask(2))
    nvim:wait_screen('2 waiting for your answer: :Co /approve')
    same('co ?2', nvim:lua("return require('co').statusline()"))
    same({}, answers(nvim))
    reach(nvim)
    nvim:wait_screen('touch file1')
  end)

  it('says that a question waits only if it does', function()
    local WAITS = 'the question still waits: :Co /approve shows it'
    for _, keys in ipairs({ ':q!<CR>', ':bd<CR>', ':bwipeout!<CR>', ':bunload<CR>' }) do
      local nvim = asked(ask(1))
      nvim:keys(keys)
      wait_answers(nvim, { { 1, 'deny' } })
      nvim:settle()
      same({}, nvim:lua('return _G.notices'), keys)
    end
    local nvim = asked(ask(1))
    nvim:keys(':close<CR>')
    nvim:wait_notice(WAITS)
    reach(nvim, 'y')
    wait_answers(nvim, { { 1, 'once' } })
  end)

  it('a buffer that is wiped or deleted denies the question it showed', function()
    local nvim = asked(ask(1), ask(2), ask(3))
    nvim:keys(':bwipeout!<CR>')
    wait_answers(nvim, { { 1, 'deny' } })
    nvim:wait_screen('touch file2')
    reach(nvim, ':bdelete!<CR>')
    wait_answers(nvim, { { 1, 'deny' }, { 2, 'deny' } })
    nvim:wait_screen('touch file3')
  end)

  it('follows to another tab page and stays pending when its own is closed', function()
    local nvim = shown(ask(1))
    nvim:keys(':tabnew<CR>')
    nvim:wait(FLOATS .. ' == 1 and #vim.api.nvim_list_tabpages() == 2')
    nvim:wait_screen('touch file1')
    nvim:keys(':tabclose<CR>')
    nvim:wait(FLOATS .. ' == 1 and #vim.api.nvim_list_tabpages() == 1')
    nvim:wait_screen('touch file1')
    same({}, answers(nvim))
    yes(nvim:lua(HOME))
  end)

  it('is withdrawn when answered elsewhere, twice without harm', function()
    local nvim = asked(ask(1))
    nvim:receive({ type = 'settled', id = 1, decision = 'withdrawn' })
    nvim:receive({ type = 'settled', id = 1, decision = 'withdrawn' })
    nvim:wait_gone('touch file1')
    nvim:wait(HOME)
    same({}, answers(nvim))
  end)

  it('goes with the backend', function()
    local nvim = shown(ask(1), ask(2))
    nvim:lua("require('co.backend').handle_exit('the backend ended')")
    nvim:wait_gone('touch file1')
    same('', nvim:lua("return require('co').statusline()"))
    same({}, answers(nvim))
  end)

  it('has an error border when the command may destroy', function()
    local nvim = editor()
    nvim:receive(ask(1, { destructive = true }))
    nvim:wait_screen('delete or overwrite')
    yes(nvim:lua([[
      for _, win in ipairs(vim.api.nvim_list_wins()) do
        if vim.wo[win].winhighlight:find('FloatBorder:CoApprovalDestructive') then return true end
      end
    ]]))
  end)

  it('keeps its buffer', function()
    local nvim = asked(ask(1))
    nvim:lua('return pcall(vim.cmd.enew)')
    nvim:wait_screen('touch file1')
    same({}, answers(nvim))
  end)

  it('fits a window of 40 columns and 10 lines', function()
    local nvim = editor({ columns = 40, lines = 10 })
    nvim:receive(ask(1, { command = ('echo 界面 '):rep(20) }))
    nvim:wait_screen('co 1/1 · d: 1 more line ')
    reach(nvim, 'y')
    wait_answers(nvim, { { 1, 'once' } })
  end)

  it('asks of two chats wait in one queue', function()
    local nvim = editor()
    nvim:receive(ask(1, { chat = 1 }), ask(2, { chat = 2 }), ask(3, { chat = 1 }))
    nvim:wait_screen('chat 1')
    nvim:keys(':Co /approve 2<CR>')
    wait_answers(nvim, { { 2, 'once' } })
    nvim:keys(':Co /deny 3 not now<CR>')
    wait_answers(nvim, { { 2, 'once' }, { 3, 'deny' } })
    same('not now', nvim:sent('answer')[2].reason)
    nvim:keys(':Co /always 1 command<CR>')
    wait_answers(nvim, { { 2, 'once' }, { 3, 'deny' }, { 1, 'always' } })
    nvim:keys(':Co /approve 9<CR>')
    nvim:wait('return table.concat(_G.notices):find("no question 9") ~= nil')
  end)

  it('takes a word that is no number for no answer', function()
    local nvim = editor()
    nvim:receive(ask(5))
    nvim:wait_screen('chat 1')
    for _, word in ipairs({ 'no', 'prefix', '1x', '1 6' }) do
      nvim:keys((':Co /approve %s<CR>'):format(word))
      nvim:wait('return table.concat(_G.notices):find(..., 1, true) ~= nil', ('"%s"'):format(word))
    end
    same({}, nvim:sent('answer'))
  end)

  it('has a small number, which completion shows with the command', function()
    local nvim = editor()
    nvim:receive(ask(4711, { command = 'make (all)' }), ask(4712))
    nvim:wait_screen('co 1/2 · chat 1 · #1 ')
    nvim:keys(':Co /approve 2<Tab>')
    nvim:wait_screen(':Co /approve 2 (touch file4712)')
    nvim:keys('<CR>')
    wait_answers(nvim, { { 4712, 'once' } })
    nvim:receive(ask(4713))
    nvim:keys(':Co /deny 1<Tab> not now<CR>')
    wait_answers(nvim, { { 4712, 'once' }, { 4711, 'deny' } })
    same('not now', nvim:sent('answer')[2].reason)
    nvim:wait_screen('co 1/1 · chat 1 · #3 ')
    nvim:keys(':Co /always 3<Tab> command<CR>')
    wait_answers(nvim, { { 4712, 'once' }, { 4711, 'deny' }, { 4713, 'always' } })
  end)

  it('lists what waits', function()
    local nvim = editor()
    nvim:receive(ask(7), ask(8))
    nvim:wait_screen('touch file7')
    nvim:keys(':Co /pending<CR>')
    nvim:wait_screen('2  chat 1  touch file8')
  end)

  it('raises events', function()
    local nvim = editor()
    nvim:lua([[
      _G.events = {}
      vim.api.nvim_create_autocmd('User', { pattern = 'CoApproval*', callback = function(event)
        table.insert(_G.events, { event.match, event.data.id })
      end })
    ]])
    nvim:receive(ask(1))
    nvim:receive({ type = 'settled', id = 1, decision = 'withdrawn' })
    nvim:wait('return #_G.events == 2')
    same(
      { { 'CoApprovalRequested', 1 }, { 'CoApprovalResolved', 1 } },
      nvim:lua('return _G.events')
    )
  end)
end)
