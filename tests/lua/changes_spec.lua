local messages = require('messages')
local questions = require('questions')

--- The review of two files, one with two parts.
local function changes(id)
  return {
    type = 'changes',
    id = id,
    chat = 1,
    files = {
      messages.file('a.rs', '@\n-one\n+1\n two\n three\n@\n+four\n', {
        calls = { 'edit_file a.rs · approved', 'echo four >> a.rs · approved' },
      }),
      messages.file('b.rs', ' one\n@\n-two\n+2\n three\n', {
        calls = { 'edit_file b.rs · approved' },
      }),
    },
  }
end

local function open()
  local nvim = questions.editor()
  nvim:asks()
  nvim:receive(changes(7))
  nvim:wait_screen('file 1 of 2 · a.rs')
  return nvim
end

--- Waits for the answer and returns its hunks, if it has any.
local function answer(nvim)
  local sent = nvim:wait_sent(1, 'answer')
  same(7, sent.id)
  same(1, nvim:lua('return #vim.api.nvim_list_tabpages()'))
  return sent.decision,
    vim.tbl_map(function(hunk)
      return { hunk.accept, hunk.comment or nil }
    end, sent.hunks or {})
end

describe('the review of /changes', function()
  it('names the calls and their approvals', function()
    local nvim = open()
    nvim:wait_screen('change 1 of 2 · n takes it back · edit_file a.rs · approved')
    nvim:wait_screen('change 2 of 2 · n takes it back · echo four >> a.rs · approved')
    nvim:press(']f')
    nvim:wait_screen('change 1 of 1 · n takes it back · edit_file b.rs')
  end)

  it('takes back what is marked when it ends', function()
    local nvim = open()
    nvim:press(']cn')
    nvim:wait_screen('is taken back when the review ends')
    same({}, nvim:sent('answer'))
    nvim:press('q')
    local decision, hunks = answer(nvim)
    same('reviewed', decision)
    same({ { true }, { false }, { true } }, hunks)
  end)

  it('ends with the last answer', function()
    local nvim = open()
    nvim:press('Y')
    nvim:wait_screen('file 2 of 2 · b.rs')
    nvim:press('cnot here<CR>')
    nvim:wait_screen('"not here"')
    nvim:press('n')
    local decision, hunks = answer(nvim)
    same('reviewed', decision)
    same({ { true }, { true }, { false, 'not here' } }, hunks)
  end)

  it('goes on behind the answered file, and then to those that were passed', function()
    local nvim = questions.editor()
    nvim:asks()
    local message = changes(7)
    local more = messages.file('c.rs', '@\n-one\n+1\n', { calls = { 'edit_file c.rs' } })
    vim.list_extend(message.files, { more })
    nvim:receive(message)
    nvim:wait_screen('file 1 of 3 · a.rs')
    nvim:press(']f')
    nvim:wait_screen('file 2 of 3 · b.rs')
    nvim:press('y')
    nvim:wait_screen('file 3 of 3 · c.rs')
    nvim:press('y')
    nvim:wait_screen('file 1 of 3 · a.rs')
  end)

  it('changes nothing if nothing is marked', function()
    for _, keys in ipairs({ { 'q' }, { ':quit<CR>' }, { 'yy', 'y' } }) do
      local nvim = open()
      for _, each in ipairs(keys) do
        nvim:press(each)
      end
      same('deny', (answer(nvim)))
    end
  end)

  it('waits for a person who has gone on typing', function()
    local nvim = questions.editor()
    nvim:asks()
    nvim:keys('yyp')
    nvim:wait('return vim.api.nvim_buf_line_count(0) == 4')
    nvim:receive(changes(7))
    nvim:wait_notice('the review of /changes is ready: :Co /approve shows it')
    nvim:keys('yyp')
    nvim:wait('return vim.api.nvim_buf_line_count(0) == 5')
    same({}, nvim:sent('answer'))
    nvim:keys('<F5>')
    nvim:wait_screen('file 1 of 2 · a.rs')
    nvim:press('n')
    nvim:wait_screen('is taken back when the review ends')
  end)

  it('takes nothing back after <C-c>', function()
    local nvim = open()
    nvim:press('n')
    nvim:wait_screen('is taken back when the review ends')
    nvim:press('<C-c>')
    same('deny', (answer(nvim)))
  end)

  it('is no question', function()
    local nvim = open()
    nvim:press(':Co /pending<CR>')
    nvim:wait_screen('nothing waits for an answer')
  end)

  it('ends when the chat goes on', function()
    local nvim = open()
    nvim:press('n')
    nvim:receive({ type = 'settled', id = 7, decision = 'withdrawn' })
    nvim:wait_screen('the review was closed')
    same(1, nvim:lua('return #vim.api.nvim_list_tabpages()'))
    same({}, nvim:sent('answer'))
  end)

  it('makes room for the review of a question', function()
    local nvim = open()
    nvim:press('n')
    nvim:receive(messages.ask(8, {
      command = 'edit_file src/a.rs',
      confinement = '',
      reasons = { 'changes a file' },
      change = messages.change({ files = { messages.file('src/a.rs', '@\n-one\n+1\n') } }),
    }))
    nvim:wait_screen('edit_file src/a.rs')
    questions.reach(nvim)
    nvim:press('d')
    nvim:wait_screen('y accepts · n refuses')
    nvim:wait_sent(1, 'answer')
    same(2, nvim:lua('return #vim.api.nvim_list_tabpages()'))
  end)
end)

--- The same review in rounds, with an answer of an earlier time.
local function round(id)
  local message = changes(id)
  message.round = true
  message.files[1].answers = { { part = 2, comment = 'why' } }
  message.files[2].text = '~mine\n one\n@\n-two\n+2\n three\n'
  return message
end

local function open_round()
  local nvim = questions.editor()
  nvim:asks()
  nvim:receive(round(7))
  nvim:wait_screen('file 1 of 2 · a.rs')
  return nvim
end

describe('a review in rounds', function()
  it('sends each answer at once and ends with the last one', function()
    local nvim = open_round()
    nvim:wait_screen('change 1 of 2 · y accepts · n takes it back · edit_file a.rs')
    nvim:wait_screen('change 2 of 2 · y accepts · n takes it back · "why"')
    nvim:press('y')
    local sent = nvim:wait_sent(1, 'keep_answers')
    same({ 7, 0 }, { sent.id, sent.file })
    same({ { part = 1, accept = true }, { part = 2, comment = 'why' } }, sent.answers)
    nvim:press('[cu')
    same({ { part = 2, comment = 'why' } }, nvim:wait_sent(2, 'keep_answers').answers)
    nvim:press('Y')
    nvim:wait_screen('file 2 of 2 · b.rs')
    nvim:press('n')
    local decision, hunks = answer(nvim)
    same({ 'reviewed', {} }, { decision, hunks })
    local last = nvim:sent('keep_answers')
    same({ 1, { { part = 1, accept = false } } }, { last[#last].file, last[#last].answers })
  end)

  it('opens at the first file with a change that has no answer', function()
    local nvim = questions.editor()
    nvim:asks()
    local message = round(7)
    message.files[1].answers = { { part = 1, accept = true }, { part = 2, accept = false } }
    nvim:receive(message)
    nvim:wait_screen('file 2 of 2 · b.rs')
    nvim:press('y')
    same('reviewed', (answer(nvim)))
  end)

  it('leaves what is still open in the quickfix list', function()
    local nvim = questions.editor()
    nvim:asks()
    local function list(title, count, update)
      local entry = { file = '/a.rs', line = 1, text = '+1 -1' }
      nvim:receive({
        type = 'quickfix',
        title = title,
        entries = vim.fn['repeat']({ entry }, count),
        update = update,
      })
      local current = 'local list = vim.fn.getqflist({ title = 0, items = 0 })\n'
      return nvim:lua(current .. 'return { list.title, #list.items }')
    end
    same({ 'Co /review: 2 changes', 2 }, list('Co /review: 2 changes', 2))
    nvim:lua('vim.cmd.cclose()')
    same({ 'Co /review: 1 change', 1 }, list('Co /review: 1 change', 1, true))
    same(1, nvim:lua('return vim.fn.winnr("$")'))
    -- A list of somebody else stays.
    same(
      { 'mine', 1 },
      nvim:lua([[
      vim.fn.setqflist({}, ' ', { title = 'mine', items = { { text = 'mine' } } })
      return { 'mine', 1 }
    ]])
    )
    same({ 'mine', 1 }, list('Co /review: 1 change', 2, true))
  end)

  it('marks the lines of the person', function()
    local nvim = open_round()
    nvim:press(']f')
    nvim:wait_screen('~ mine')
  end)

  it('ends with q, and is put away in other ways', function()
    for keys, decision in pairs({ q = 'reviewed', ['<C-c>'] = 'deny', [':quit<CR>'] = 'deny' }) do
      local nvim = open_round()
      nvim:press('n')
      nvim:wait_screen('is taken back when the review ends')
      nvim:press(keys)
      same(decision, (answer(nvim)))
    end
  end)

  it('of 540 changes in 60 files opens at once, and no key in it takes long', function()
    local files = {}
    for number = 1, 60 do
      local hunk = (' stays\n'):rep(30) .. '@\n-old\n+new\n'
      files[number] = messages.file(('src/file%d.rs'):format(number), hunk:rep(9), {
        calls = vim.fn['repeat']({ 'edit_file · approved' }, 9),
      })
    end
    local nvim = questions.editor()
    nvim:asks()
    local opened, slowest = unpack(
      nvim:lua(
        [[
      local message = ...
      local function time(run)
        local from = vim.uv.hrtime()
        run()
        vim.cmd.redraw()
        return (vim.uv.hrtime() - from) / 1e6
      end
      local opened = time(function()
        require('co.handlers').receive({ message })
      end)
      local slowest = 0
      for _, key in ipairs({ ']c', 'y', 'u', ']f', '[c' }) do
        local best = math.huge
        for _ = 1, 2 do
          -- It takes keys only after a pause.
          vim.wait(270)
          best = math.min(best, time(function()
            vim.api.nvim_feedkeys(key, 'xt', false)
          end))
        end
        slowest = math.max(slowest, best)
      end
      return { opened, slowest }
    ]],
        { type = 'changes', id = 7, chat = 1, round = true, files = files }
      ) --[[@as number[] ]]
    )
    -- About 40 ms and 2 ms on an idle machine. The bounds are for a slow one that does other things meanwhile.
    yes(opened < 1000, ('it opened in %.1f ms'):format(opened))
    yes(slowest < 200, ('a key took %.1f ms'):format(slowest))
  end)
end)
