local messages = require('messages')
local questions = require('questions')
local neovim = require('neovim')
local ask = messages.ask
local editor = questions.editor
local reach = questions.reach

local TEXT = 'one\ntwo\nthree\nfour\nfive\n'

--- A question about a change of three places: lines before the first, in the middle, and at the end.
local function ask_change(id, path)
  return ask(id, {
    command = 'edit_file ' .. path,
    timeout = vim.NIL,
    confinement = '',
    reasons = { 'changes a file' },
    alone = 'read the difference first',
    change = {
      path = path,
      unsaved = false,
      added = 3,
      removed = 2,
      diff = '--- a/f\n+++ b/f\n@@ -1 +1 @@\n+zero\n',
      text = TEXT,
      hunks = {
        { start = 0, ['end'] = 0, lines = { 'zero' } },
        { start = 1, ['end'] = 3, lines = { '2', '3' } },
        { start = 5, ['end'] = 5, lines = { 'six' } },
      },
    },
  })
end

--- Opens the review of a change with `d`.
local function review(...)
  local nvim = editor()
  nvim:receive(...)
  nvim:wait_screen('edit_file src/a.rs')
  reach(nvim, 'd')
  nvim:wait_screen('change 1 of 3')
  return nvim
end

--- Waits for the answer to the review and returns its hunks.
local function answers(nvim, count)
  neovim.wait('the answer', function()
    return #nvim:sent('answer') == (count or 1)
  end)
  local answer = nvim:sent('answer')[count or 1]
  same('reviewed', answer.decision)
  return vim.tbl_map(function(hunk)
    return { hunk.accept, hunk.lines or nil, hunk.comment or nil }
  end, answer.hunks)
end

--- A question about a rename in two files.
local function ask_rename(id)
  local function file(path)
    local change = ask_change(id, path).change
    change.diff = ''
    return change
  end
  local question = ask_change(id, 'src/a.rs')
  question.command = 'rename_symbol one two in src/a.rs'
  question.change = {
    path = '',
    unsaved = false,
    added = 6,
    removed = 4,
    diff = '--- a/src/a.rs\n+++ b/src/a.rs\n+zero\n--- a/src/b.rs\n+++ b/src/b.rs\n+zero\n',
    hunks = {},
    files = { file('src/a.rs'), file('src/b.rs') },
  }
  return question
end

describe('the review of a change of several files', function()
  local function open()
    local nvim = editor()
    nvim:receive(ask_rename(1))
    nvim:wait_screen('+++ b/src/b.rs')
    reach(nvim, 'd')
    nvim:wait_screen('file 1 of 2 · src/a.rs')
    return nvim
  end

  it('goes from file to file and answers once', function()
    local nvim = open()
    nvim:keys('n')
    nvim:wait_screen('change 1 of 3 · refused')
    nvim:keys('f')
    nvim:wait_screen('src/b.rs  +3 -2 · 0 of 3 answered')
    nvim:keys('2<CR>')
    nvim:wait_screen('file 2 of 2 · src/b.rs')
    nvim:keys('Y')
    nvim:wait_screen('file 1 of 2 · src/a.rs')
    nvim:wait_screen('1 of 3 answered')
    same({}, nvim:sent('answer'))
    nvim:keys('Y')
    same({ { false }, { true }, { true }, { true }, { true }, { true } }, answers(nvim))
    same(1, nvim:lua('return #vim.api.nvim_list_tabpages()'))
  end)

  it('that was put away holds for a yes in the float', function()
    local nvim = open()
    nvim:keys(']f')
    nvim:wait_screen('file 2 of 2 · src/b.rs')
    nvim:keys('n')
    nvim:wait_screen('change 1 of 3 · refused')
    nvim:keys('q')
    nvim:wait_screen('your answers in the review hold')
    reach(nvim, 'y')
    same({ { true }, { true }, { true }, { false }, { true }, { true } }, answers(nvim))
  end)

  it('ends when its question does', function()
    local nvim = open()
    nvim:receive({ type = 'settled', id = 1, decision = 'withdrawn' })
    neovim.wait('the review is gone', function()
      return nvim:lua('return #vim.api.nvim_list_tabpages()') == 1
    end)
  end)
end)

describe('the review of a change', function()
  it('shows the file in a tab page, with the new lines between its own', function()
    local nvim = review(ask_change(1, 'src/a.rs'))
    local screen = table.concat(nvim:screen(), '\n')
    local at = 0
    for _, text in ipairs({
      'src/a.rs  +3 -2 · 0 of 3 answered',
      'change 1 of 3 · y accepts · n refuses',
      '+ zero',
      'one',
      '- two',
      '- three',
      'change 2 of 3',
      '+ 2',
      '+ 3',
      'four',
      'five',
      'change 3 of 3',
      '+ six',
    }) do
      local found = screen:find(text, at + 1, true)
      at = assert(found, text .. ' is not in its place:\n' .. screen)
    end
    same(2, nvim:lua('return #vim.api.nvim_list_tabpages()'))
    same(
      TEXT,
      nvim:lua("return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n') .. '\\n'")
    )
    same(false, nvim:shows('chat 1'), 'the float is put away')
  end)

  it('answers each hunk and goes on to the next one', function()
    local nvim = review(ask_change(1, 'src/a.rs'))
    nvim:keys('y')
    nvim:wait_screen('change 1 of 3 · accepted')
    nvim:keys('n')
    nvim:wait_screen('change 2 of 3 · refused')
    same({}, nvim:sent('answer'))
    nvim:keys('y')
    same({ { true }, { false }, { true } }, answers(nvim))
    same(1, nvim:lua('return #vim.api.nvim_list_tabpages()'))
  end)

  it('takes an answer back, and answers the rest at once', function()
    local nvim = review(ask_change(1, 'src/a.rs'))
    nvim:keys('n')
    nvim:wait_screen('change 1 of 3 · refused')
    nvim:keys('[cu')
    nvim:wait_screen('change 1 of 3 · y accepts')
    nvim:keys('Y')
    same({ { true }, { true }, { true } }, answers(nvim))
  end)

  it('refuses the rest with a reason', function()
    local nvim = review(ask_change(1, 'src/a.rs'))
    nvim:keys('y')
    nvim:wait_screen('change 1 of 3 · accepted')
    nvim:keys('N')
    nvim:wait_screen('No to the rest, because')
    nvim:keys('too early<CR>')
    same({ { true }, { false, nil, 'too early' }, { false } }, answers(nvim))
  end)

  it('takes another text and a comment for a hunk', function()
    local nvim = review(ask_change(1, 'src/a.rs'))
    nvim:keys(']c')
    nvim:keys('c')
    nvim:wait_screen('Comment on change 2')
    nvim:keys('why?<CR>')
    nvim:wait_screen('change 2 of 3 · y accepts · n refuses · "why?"')
    nvim:keys('e')
    nvim:wait_screen('Instead of change 2')
    nvim:keys('A and more<Esc>o  indented<Esc><C-s>')
    nvim:wait_screen('change 2 of 3 · accepted with your text · "why?"', '+ 2 and more')
    nvim:wait_screen('+   indented')
    nvim:keys('Y')
    same(
      { { true }, { true, { '2 and more', '  indented', '3' }, 'why?' }, { true } },
      answers(nvim)
    )
  end)

  it('accepts nothing by :w, by <CR> and by closing', function()
    local nvim = review(ask_change(1, 'src/a.rs'))
    nvim:keys('y')
    nvim:wait_screen('change 1 of 3 · accepted')
    nvim:keys('<CR>:w<CR>')
    nvim:wait_screen(':w accepts nothing')
    nvim:keys(':quit<CR>')
    nvim:wait_screen('edit_file src/a.rs')
    same({}, nvim:sent('answer'))
    reach(nvim, 'd')
    nvim:wait_screen('change 1 of 3 · accepted')
    nvim:keys('q')
    nvim:wait_screen('edit_file src/a.rs')
    same({}, nvim:sent('answer'))
  end)

  it('that was put away holds for a yes in the float', function()
    local nvim = review(ask_change(1, 'src/a.rs'))
    nvim:keys('n')
    nvim:wait_screen('change 1 of 3 · refused')
    nvim:keys('q')
    nvim:wait_screen('your answers in the review hold: a yes accepts the rest')
    reach(nvim, 'y')
    same({ { false }, { true }, { true } }, answers(nvim))
  end)

  it('shows both texts side by side', function()
    local nvim = review(ask_change(1, 'src/a.rs'))
    nvim:keys('=')
    nvim:wait_screen('after the change')
    same(
      { 'zero', 'one', '2', '3', 'four', 'five', 'six' },
      nvim:lua([[
        local wins = vim.api.nvim_tabpage_list_wins(0)
        return vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(wins[2]), 0, -1, false)
      ]])
    )
    nvim:keys('=')
    nvim:wait_screen('change 2 of 3')
    nvim:keys('Y')
    answers(nvim)
  end)

  it('lists the files that wait', function()
    local nvim = review(ask_change(1, 'src/a.rs'), ask_change(2, 'src/b.rs'))
    nvim:keys('yf')
    nvim:wait_screen(
      '1: src/a.rs  +3 -2 · 1 of 3 answered',
      '2: src/b.rs  +3 -2 · 0 of 3 answered'
    )
    nvim:keys('2<CR>')
    nvim:wait_screen('file 2 of 2 · src/b.rs')
  end)

  it('is put away by <C-c>, which chooses no file either', function()
    local nvim = review(ask_change(1, 'src/a.rs'), ask_change(2, 'src/b.rs'))
    nvim:keys('nf')
    nvim:wait_screen('1: src/a.rs')
    nvim:keys('<C-c>')
    neovim.wait('the end of the list', function()
      return not nvim:shows('1: src/a.rs')
    end)
    same(false, nvim:shows('Keyboard interrupt'))
    nvim:wait_screen('change 1 of 3 · refused')
    nvim:keys('<C-c>')
    nvim:wait_screen('your answers in the review hold')
    same({}, nvim:sent('answer'))
  end)

  it('goes through all files that wait', function()
    local nvim = review(ask_change(1, 'src/a.rs'), ask_change(2, 'src/b.rs'))
    nvim:wait_screen('file 1 of 2 · src/a.rs')
    nvim:keys('n]f')
    nvim:wait_screen('file 2 of 2 · src/b.rs')
    nvim:keys('[f')
    nvim:wait_screen('change 1 of 3 · refused')
    nvim:keys('Y')
    same({ { false }, { true }, { true } }, answers(nvim))
    nvim:wait_screen('src/b.rs  +3 -2 · 0 of 3 answered')
    nvim:keys('Y')
    same({ { true }, { true }, { true } }, answers(nvim, 2))
    same(1, nvim:lua('return #vim.api.nvim_list_tabpages()'))
  end)

  it('shows a new file', function()
    local question = ask_change(1, 'src/a.rs')
    question.change.text = ''
    question.change.hunks = { { start = 0, ['end'] = 0, lines = { 'first', 'second' } } }
    local nvim = editor()
    nvim:receive(question)
    nvim:wait_screen('edit_file src/a.rs')
    reach(nvim, 'd')
    nvim:wait_screen('+ second')
    same(false, nvim:shows('---'))
  end)

  it('sends the answers also from the last window, and from a split of it', function()
    for _, command in ipairs({ 'tabonly', 'split' }) do
      local nvim = review(ask_change(1, 'src/a.rs'))
      nvim:keys((':%s<CR>'):format(command))
      nvim:press('Y')
      same({ { true }, { true }, { true } }, answers(nvim))
      same(1, nvim:lua('return #vim.api.nvim_list_tabpages()'))
      neovim.wait('the review is gone', function()
        return not nvim:shows('answered')
      end)
    end
  end)

  it('is opened only once', function()
    local nvim = review(ask_change(1, 'src/a.rs'), ask_change(2, 'src/b.rs'))
    nvim:keys('n')
    nvim:wait_screen('1 of 3 answered')
    nvim:keys(':tabprevious<CR>')
    reach(nvim, 'd')
    nvim:wait_screen('change 1 of 3')
    same(2, nvim:lua('return #vim.api.nvim_list_tabpages()'))
    reach(nvim, 'd')
    nvim:wait_screen('change 1 of 3')
    same(2, nvim:lua('return #vim.api.nvim_list_tabpages()'))
    nvim:keys('q')
    nvim:wait(questions.FLOATS .. ' == 1')
    same(1, nvim:lua('return #vim.api.nvim_list_tabpages()'))
    same({}, nvim:sent('answer'))
  end)

  it('ends when its question does', function()
    local nvim = review(ask_change(1, 'src/a.rs'))
    nvim:receive({ type = 'settled', id = 1, decision = 'withdrawn' })
    nvim:wait_screen('the review was closed')
    same(1, nvim:lua('return #vim.api.nvim_list_tabpages()'))
    same({}, nvim:sent('answer'))
  end)

  --- Shows a file, and receives a question about lines of it.
  local function ask_inline(prepare)
    local nvim = editor()
    local file = vim.fn.resolve(vim.fn.tempname())
    vim.fn.writefile({ 'one' }, file)
    nvim:lua('vim.cmd.edit(...)', file)
    prepare(nvim)
    local question = ask_change(1, 'src/a.rs')
    question.review = file
    nvim:receive(question)
    return nvim
  end

  it('opens at once if the person asked for it, and ignores the first keys', function()
    local nvim = ask_inline(function() end)
    nvim:keys('yyyy')
    nvim:wait_screen('0 of 3 answered')
    questions.skip_second(nvim)
    nvim:keys('Y')
    same({ { true }, { true }, { true } }, answers(nvim))
  end)

  it('does not open at once while the person types or looks at another file', function()
    for _, keys in ipairs({ 'i', ':enew<CR>', 'qa' }) do
      local nvim = ask_inline(function(nvim)
        nvim:keys(keys)
        nvim:settle()
      end)
      nvim:wait_screen('edit_file src/a.rs')
      same(1, nvim:lua('return #vim.api.nvim_list_tabpages()'))
    end
  end)
end)
