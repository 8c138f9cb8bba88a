local messages = require('messages')
local questions = require('questions')
local neovim = require('neovim')
local ask = messages.ask
local editor = questions.editor
local reach = questions.reach

-- A change of three places: lines before the first, in the middle, and at the end.
local TEXT = [[
@
+zero
 one
@
-two
-three
+2
+3
 four
 five
@
+six
]]

--- A question about a change of a file.
local function ask_change(id, path, text)
  return ask(id, {
    command = 'edit_file ' .. path,
    confinement = '',
    reasons = { 'changes a file' },
    change = messages.change({
      added = 3,
      removed = 2,
      excerpt = '+zero\n',
      files = { messages.file(path, text or TEXT, { added = 3, removed = 2 }) },
    }),
  })
end

--- Opens the review of the first change with `d`, and waits for a text on the screen.
local function open_review(shown, ...)
  local nvim = editor()
  nvim:receive(...)
  nvim:wait_screen('edit_file src/a.rs')
  reach(nvim, 'd')
  nvim:wait_screen(shown)
  return nvim
end

--- Opens the review of a change of three parts.
local function review(...)
  return open_review('change 1 of 3', ...)
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
  local question = ask_change(id, 'src/a.rs')
  question.command = 'rename_symbol one two in src/a.rs'
  question.change = messages.change({
    added = 6,
    removed = 4,
    excerpt = '#── src/a.rs  +1 -0\n+zero\n#── src/b.rs  +1 -0\n+zero\n',
    files = {
      question.change.files[1],
      messages.file('src/b.rs', TEXT, { added = 3, removed = 2 }),
    },
  })
  return question
end

describe('the review of a change of several files', function()
  local function open()
    local nvim = editor()
    nvim:receive(ask_rename(1))
    nvim:wait_screen('── src/b.rs  +1 -0')
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
    nvim:press('Y')
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

describe('the review of the files of a step', function()
  --- The review of the first of several questions about changes.
  local function open(...)
    local nvim = open_review('change 1 of', ...)
    nvim:settle()
    return nvim
  end

  --- The answers, with the hunks that were accepted.
  local function decisions(nvim)
    return vim.tbl_map(function(answer)
      local accepted = vim.tbl_map(function(hunk)
        return hunk.accept
      end, answer.hunks or {})
      return { answer.id, answer.decision, accepted }
    end, nvim:sent('answer'))
  end

  local ONE = '@\n-old\n+new\n'

  it('goes back to the last change of the file before', function()
    local nvim = open(ask_change(1, 'src/a.rs'), ask_change(2, 'src/b.rs'))
    nvim:keys(']c]c]c')
    nvim:wait_screen('file 2 of 2 · src/b.rs')
    nvim:keys('[c')
    nvim:wait_screen('file 1 of 2 · src/a.rs')
    nvim:press('n')
    nvim:wait_screen('change 3 of 3 · refused')
  end)

  it('goes on to the next file, and accepts all after each change was on the screen', function()
    local nvim =
      open(ask_change(1, 'src/a.rs'), ask_change(2, 'src/b.rs'), ask_change(3, 'src/c.rs', ONE))
    nvim:wait_screen('file 1 of 3 · src/a.rs', '0 of 3 answered · 4 to see')
    nvim:keys('A')
    nvim:wait_notice('4 changes were not on the screen as a whole yet: ]c goes on')
    nvim:keys(']c]c]c')
    nvim:wait_screen('file 2 of 3 · src/b.rs', '· 1 to see')
    nvim:keys('n')
    nvim:wait_screen('change 1 of 3 · refused')
    nvim:keys('A')
    nvim:wait_notice('1 change was not on the screen')
    same({}, decisions(nvim))
    nvim:press(']c]c')
    nvim:wait_screen('file 3 of 3 · src/c.rs', '· A accepts all files')
    nvim:keys(']c')
    nvim:press('A')
    neovim.wait('the answers', function()
      return #nvim:sent('answer') == 3
    end)
    same({
      { 1, 'reviewed', { true, true, true } },
      { 2, 'reviewed', { false, true, true } },
      { 3, 'reviewed', { true } },
    }, decisions(nvim))
    nvim:wait(questions.HOME)
    same(1, nvim:lua('return #vim.api.nvim_list_tabpages()'))
  end)

  it('accepts no change of which a part was not on the screen', function()
    local long = '@\n+' .. table.concat(neovim.numbered('new', 60), '\n+') .. '\n'
    local nvim = open(ask_change(1, 'src/a.rs', long), ask_change(2, 'src/b.rs', ONE))
    nvim:wait_screen('file 1 of 2', '· 2 to see')
    nvim:keys('G')
    nvim:wait_screen('new60')
    nvim:keys('A')
    nvim:wait_notice('2 changes were not on the screen')
    nvim:keys('<C-b>')
    nvim:wait_screen('new20')
    nvim:keys('<C-b>')
    nvim:wait_screen('file 1 of 2', '· 1 to see')
    nvim:keys(']f')
    nvim:wait_screen('file 2 of 2', '· A accepts all files')
    nvim:press('A')
    neovim.wait('the answers', function()
      return #nvim:sent('answer') == 2
    end)
    same({ { 1, 'reviewed', { true } }, { 2, 'reviewed', { true } } }, decisions(nvim))
  end)

  it('accepts no change of which the window hides a part', function()
    local rows = table.concat(neovim.numbered('row', 60), '\n ')
    local wide = ('%s %s\n@\n+new%send\n'):format(ONE, rows, (' '):rep(500))
    for _, hide in ipairs({ 'setlocal nowrap', 'setlocal foldenable | $-1,$fold' }) do
      local nvim = open(ask_change(1, 'src/a.rs', wide), ask_change(2, 'src/b.rs', ONE))
      nvim:wait_screen('file 1 of 2', '· 2 to see')
      nvim:keys((':%s<CR>G'):format(hide:gsub('|', '<Bar>')))
      nvim:wait_screen('row60')
      nvim:keys('A')
      nvim:wait_notice('2 changes were not on the screen')
      nvim:keys(':setlocal wrap nofoldenable<CR>')
      nvim:wait_screen('file 1 of 2', '· 1 to see')
      same({}, decisions(nvim))
    end
  end)

  it('accepts no change before the facts about its file were on the screen', function()
    local rows = table.concat(neovim.numbered('row', 10), '\n ')
    local facts = ('!mode 644 => 755\n'):rep(60)
    local text = (' %s\n%s%s'):format(rows, facts, ONE)
    local nvim = open(ask_change(1, 'src/a.rs', text), ask_change(2, 'src/b.rs', ONE))
    nvim:keys('G')
    nvim:wait_screen('new')
    nvim:keys('A')
    nvim:wait_notice('2 changes were not on the screen')
    same({}, decisions(nvim))
  end)

  it('accepts no change that was only passed by keys typed ahead', function()
    local nvim = open(ask_change(1, 'src/a.rs', ONE), ask_change(2, 'src/b.rs', ONE))
    nvim:lua([[
      _G.notices = {}
      vim.schedule(function()
        vim.api.nvim_input(']cA')
        vim.uv.sleep(100)
      end)
    ]])
    nvim:wait_notice('1 change was not on the screen')
    same({}, decisions(nvim))
  end)

  it('leaves other chats and dangerous questions alone', function()
    local dangerous, other = ask_change(2, 'src/b.rs', ONE), ask_change(3, 'src/c.rs', ONE)
    other.chat, dangerous.alone = 2, 'it may read .env'
    local nvim = open(ask_change(1, 'src/a.rs', ONE), dangerous, other)
    nvim:press('A')
    neovim.wait('the answer', function()
      return #nvim:sent('answer') == 1
    end)
    same({ { 1, 'reviewed', { true } } }, decisions(nvim))
    nvim:wait_screen('file 2 of 3 · src/b.rs')
    nvim:press('A')
    nvim:wait_notice('this question is answered alone: Y accepts its changes')
    same(1, #nvim:sent('answer'))
  end)
end)

describe('the review of a change', function()
  it('shows the file in a tab page, with the lines that go and come', function()
    local nvim = review(ask_change(1, 'src/a.rs'))
    nvim:wait_screen('src/a.rs  +3 -2 · 0 of 3 answered')
    same({
      '── change 1 of 3 · y accepts · n refuses',
      'zero',
      'one',
      '── change 2 of 3 · y accepts · n refuses',
      'two',
      'three',
      '2',
      '3',
      'four',
      'five',
      '── change 3 of 3 · y accepts · n refuses',
      'six',
    }, nvim:lua('return vim.api.nvim_buf_get_lines(0, 0, -1, false)'))
    nvim:wait_screen('+ zero', '- two', '- three', '+ 2', '+ 3', '  four', '+ six')
    same(2, nvim:lua('return #vim.api.nvim_list_tabpages()'))
    same(false, nvim:shows('chat 1'), 'the float is put away')
  end)

  it('shows all of a long line, and the blanks at the end of a line', function()
    local hidden = 'a = 2' .. (' '):rep(120) .. '; evil()'
    local long = 'start' .. ('é'):rep(2500) .. 'end'
    local text = ('@\n-a = 1\n+%s\n+b = 3  \n+%s\n'):format(hidden, long)
    local nvim = editor()
    nvim:receive(ask_change(1, 'src/a.rs', text))
    nvim:wait_screen('edit_file src/a.rs')
    reach(nvim, 'd')
    nvim:wait_screen('; evil()', 'b = 3··')
    same(true, vim.list_contains(nvim:lines('co://review/1'), hidden))
    nvim:keys('G$')
    nvim:wait_screen('end')
    nvim:keys('gg/evil<CR>')
    nvim:wait('return vim.fn.col(".") == ...', #hidden - 5)
  end)

  it('shows each of many new lines to the motions of the person', function()
    local lines = neovim.numbered('+line ', 121)
    local nvim = editor()
    nvim:receive(ask_change(1, 'src/a.rs', ' one\n@\n' .. table.concat(lines, '\n') .. '\n two\n'))
    nvim:wait_screen('edit_file src/a.rs')
    reach(nvim, 'd')
    nvim:wait_screen('+ line 1 ', '+ line 9 ')
    local seen = {}
    for _ = 1, 12 do
      nvim:wait_screen(nvim:lua('return vim.fn.getline(vim.fn.line("w$"))') --[[@as string]])
      for _, row in ipairs(nvim:screen()) do
        local number = row:match('^%+ line (%d+)')
        seen[tonumber(number) or 0] = true
      end
      nvim:keys('<C-d>')
    end
    for number = 1, 121 do
      yes(seen[number], number .. ' was never on the screen')
    end
    nvim:keys('y')
    same({ { true } }, answers(nvim))
  end)

  it('cuts a line that Neovim cannot draw into rows, and edits it whole', function()
    local long = ('x'):rep(9999) .. ('é'):rep(8000) .. 'end'
    local nvim = editor()
    nvim:receive(ask_change(1, 'src/a.rs', '@\n+' .. long .. '\n'))
    nvim:wait_screen('edit_file src/a.rs')
    reach(nvim, 'd')
    nvim:wait_screen('change 1 of 1')
    local rows = nvim:lines('co://review/1')
    same(4, #rows)
    same(long, table.concat(vim.list_slice(rows, 2)))
    nvim:keys('Ge')
    nvim:wait_screen('Instead of change 1')
    nvim:keys('A!<Esc><C-s>')
    same({ { true, { long .. '!' } } }, answers(nvim))
  end)

  it('gets a long text in parts, and takes no answer for a part that is not there', function()
    local first, second = ' one\n@\n+two\n+three', ' 3\n four\n@\n-five\n'
    local question = ask_change(1, 'src/a.rs')
    question.change.files = { messages.file('src/a.rs', first, { parts = 2, more = true }) }
    local nvim = editor()
    nvim:receive(question)
    nvim:wait_screen('edit_file src/a.rs')
    reach(nvim, 'd')
    nvim:wait_screen('change 1 of 2', '+ two')
    local asked = nvim:wait_sent(1, 'read_review')
    same({ 1, 0, #first }, { asked.id, asked.file, asked.from })
    nvim:keys('y')
    nvim:wait_screen('not all of it is there yet')
    local part =
      { type = 'review_part', id = 1, file = 0, from = #first, text = second, more = false }
    -- It comes twice if the review was closed and opened again.
    nvim:receive(part, part)
    nvim:wait_screen('+ three 3', 'change 2 of 2')
    same(
      { '── change 2 of 2 · y accepts · n refuses', 'five' },
      vim.list_slice(nvim:lines('co://review/1'), 6)
    )
    nvim:keys('Y')
    same({ { true }, { true } }, answers(nvim))
  end)

  it('colours the text before and after the change, each by itself', function()
    local nvim = editor()
    -- Either text alone has whole strings, both together have not.
    local text = 'local a = 1\n@\n-b = "one\n-two"\n+b = [=[one\n+two]=]\n c = 2\n'
    nvim:receive(ask_change(1, 'a.lua', ' ' .. text))
    nvim:wait_screen('edit_file a.lua')
    reach(nvim, 'd')
    nvim:wait_screen('change 1 of 1')
    local function group(row, column)
      return nvim:lua(
        [[
          local namespace = vim.api.nvim_get_namespaces()['co.review.colours']
          local row, column = ...
          local groups = {}
          for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, namespace, { row, 0 }, { row, -1 }, { details = true })) do
            if mark[3] <= column and mark[4].end_col > column then
              groups[#groups + 1] = mark[4].hl_group
            end
          end
          return table.concat(groups, ' ')
        ]],
        row,
        column
      ) --[[@as string]]
    end
    neovim.wait('the colours', function()
      return group(6, 4):find('@number', 1, true)
    end)
    yes(group(0, 0):find('@keyword', 1, true), 'a line that stays')
    yes(group(4, 7):find('@string', 1, true), 'an added line')
    yes(group(5, 1):find('@string', 1, true), 'the next added line')
    same(false, group(6, 0):find('@string', 1, true) ~= nil)
    nvim:wait('return vim.treesitter.highlighter.active[vim.api.nvim_get_current_buf()] == nil')
  end)

  it('is a buffer that no plugin takes for the file', function()
    local nvim = editor()
    nvim:receive(ask_change(1, 'README.md'))
    nvim:wait_screen('edit_file README.md')
    reach(nvim, 'd')
    nvim:wait_screen('change 1 of 3')
    same(
      { '', '', 'co://review/1/review: README.md ', false },
      nvim:lua([[
        local buf = vim.api.nvim_get_current_buf()
        local name = vim.api.nvim_buf_get_name(buf)
        return { vim.bo.filetype, vim.bo.syntax, name, vim.treesitter.highlighter.active[buf] ~= nil }
      ]])
    )
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

  it('ends with an answer in the float', function()
    for _, key in ipairs({ 'n', 'y' }) do
      local nvim = review(ask_change(3, 'src/a.rs'))
      nvim:press('y')
      nvim:wait_screen('change 2 of 3')
      nvim:press(':Co /approve<CR>')
      nvim:wait(questions.FOCUSED)
      nvim:press(key)
      neovim.wait('the answer', function()
        return #nvim:sent('answer') == 1
      end)
      nvim:wait('return #vim.api.nvim_list_tabpages() == 1')
    end
  end)

  it('shows both texts side by side', function()
    local nvim = review(ask_change(1, 'src/a.rs'))
    nvim:keys('=')
    nvim:wait_screen('after the change')
    same(
      {
        { 'one', 'two', 'three', 'four', 'five' },
        { 'zero', 'one', '2', '3', 'four', 'five', 'six' },
      },
      nvim:lua([[
        return vim.tbl_map(function(win)
          return vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(win), 0, -1, false)
        end, vim.api.nvim_tabpage_list_wins(0))
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
    nvim:press('Y')
    same({ { true }, { true }, { true } }, answers(nvim, 2))
    same(1, nvim:lua('return #vim.api.nvim_list_tabpages()'))
  end)

  it('shows a new file', function()
    local question = ask_change(1, 'src/a.rs', '@\n+first\n+second\n')
    local nvim = editor()
    nvim:receive(question)
    nvim:wait_screen('edit_file src/a.rs')
    reach(nvim, 'd')
    nvim:wait_screen('+ second')
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
    local question = ask_change(1, 'src/a.rs')
    question.review = file
    nvim:asks()
    prepare(nvim)
    nvim:receive(question)
    return nvim
  end

  it('opens at once if the person asked for it, and ignores the first keys', function()
    local nvim = ask_inline(function() end)
    nvim:wait_screen('0 of 3 answered')
    nvim:keys('yyyy')
    nvim:settle()
    yes(nvim:shows('0 of 3 answered'))
    nvim:keys('Y')
    same({ { true }, { true }, { true } }, answers(nvim))
  end)

  it('does not open at once while the person types or looks at another file', function()
    for _, keys in ipairs({ 'i', ':enew<CR>', 'qa', 'yyp' }) do
      local nvim = ask_inline(function(nvim)
        nvim:keys(keys)
        nvim:settle()
      end)
      nvim:wait_screen('edit_file src/a.rs')
      same(1, nvim:lua('return #vim.api.nvim_list_tabpages()'))
    end
  end)
end)
