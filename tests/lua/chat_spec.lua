local messages = require('messages')
local neovim = require('neovim')
local append = messages.append
local state = messages.state

local CHAT, PROMPT = 'co://chat/1', 'co://chat/1/prompt'
local IN_CHAT = "return vim.bo.filetype == 'co-prompt'"

local chat = neovim.chat

--- The cursor's line and column and the first line shown, of the chat's window.
local VIEW = [[
  local win = vim.fn.win_findbuf(vim.fn.bufnr('^co://chat/1$'))[1]
  local view = vim.api.nvim_win_call(win, vim.fn.winsaveview)
  return { view.lnum, view.col, view.topline }
]]

describe('the chat', function()
  it('opens at its prompt, in normal mode, beside the window it came from', function()
    local nvim = neovim.chat({ screen = true })
    same('n', nvim:mode())
    same(3, nvim:lua('return #vim.api.nvim_tabpage_list_wins(0)'))
    nvim:wait_screen('g? keys · / commands · @ files and more', 'ready')
    -- A person who has sent a prompt knows them.
    nvim:keys('ihello<C-s>')
    nvim:wait_screen('prompt · <C-s> sends it · g? lists the keys')
  end)

  it('submits with <CR> in normal and <C-s> in both modes, and stays in the prompt', function()
    local nvim = chat()
    nvim:keys('ione<Esc><CR>')
    nvim:wait('return #_G.sent == 1')
    nvim:keys('itwo<CR>lines<C-s>')
    nvim:wait('return #_G.sent == 2')
    nvim:wait_mode('i')
    nvim:keys('three<Esc><C-s>')
    nvim:wait('return #_G.sent == 3')
    same({ 'one', 'two\nlines', 'three' }, neovim.pluck(nvim:sent('prompt'), 'text'))
    same({ '' }, nvim:lines(CHAT))
    same({ '' }, nvim:lines(PROMPT))
  end)

  it('sends the queued prompt into the turn with a second <C-s>', function()
    local nvim = chat()
    nvim:receive(state('thinking'))
    nvim:wait("return require('co.chat.registry').current().state.state == 'thinking'")
    nvim:keys('ione<C-s>two<C-s><C-s>')
    nvim:wait('return #_G.sent == 3')
    local command = nvim:sent('command')[1]
    same({ 'steer', '' }, { command.name, command.args })
    local waiting = "return require('co.chat.registry').current().waiting_prompts"
    same({ 'two', 'one' }, nvim:lua(waiting))
    nvim:receive(state('thinking', { queued = 1, steering = 1 }))
    nvim:wait("return require('co.chat.registry').current().state.steering == 1")
    nvim:keys('/steer three<C-s>')
    nvim:wait('return #_G.sent == 4')
    local prompt = nvim:sent('prompt')[3]
    same({ 'three', true }, { prompt.text, prompt.steer })
    same({ 'two', 'three', 'one' }, nvim:lua(waiting))
    nvim:keys('/steer !touch new<C-s>')
    nvim:wait([[
      local lines = table.concat(require('co.ui.log').lines(), '\n')
      return lines:find('/steer sends a prompt, not a command: type !touch new without /steer', 1, true)
    ]])
    same(4, nvim:lua('return #_G.sent'))
    same({ '/steer !touch new' }, nvim:lines(PROMPT))
  end)

  it('sends the prompts that wait after a cancel with <C-s> in an empty prompt', function()
    local nvim = chat()
    nvim:receive(state('thinking'))
    nvim:wait("return require('co.chat.registry').current().state.state == 'thinking'")
    nvim:keys('ione<C-s>two<C-s>')
    nvim:wait_sent(2, 'prompt')
    nvim:receive(state('idle', { queued = 2 }))
    nvim:wait("return require('co.chat.registry').current().state.queued == 2")
    nvim:keys('first<C-s>')
    nvim:wait_sent(3, 'prompt')
    local waiting = "return require('co.chat.registry').current().waiting_prompts"
    same({ 'first', 'one', 'two' }, nvim:lua(waiting))
    nvim:receive(state('idle', { queued = 2, taken_prompts = 1 }))
    nvim:wait("return #require('co.chat.registry').current().waiting_prompts == 2")
    nvim:keys('<C-s>')
    same('steer', nvim:wait_sent(1, 'command').name)
    same({ 'one', 'two' }, nvim:lua(waiting))
  end)

  it('puts what comes into its text, and keeps the draft', function()
    local nvim = chat()
    nvim:keys('ia draft')
    nvim:receive(append('## You\n\nhello\n\n## Co\n\nGood'), append(' morning.'))
    nvim:wait_line(CHAT, 'Good morning')
    nvim:keys(' of two words')
    nvim:wait("return vim.api.nvim_get_current_line() == 'a draft of two words'")
    same({ '## You', '', 'hello', '', '## Co', '', 'Good morning.' }, nvim:lines(CHAT))
    same({ 'a draft of two words' }, nvim:lines(PROMPT))
  end)

  it('takes a prompt back that was not taken, in front of what was typed since', function()
    local nvim = chat()
    nvim:keys('ione<CR>two<Esc><CR>')
    nvim:wait('return #_G.sent == 1')
    nvim:keys('inext<Esc>')
    nvim:receive({ type = 'unsent', chat = 1, text = 'one\ntwo' })
    same({ 'one', 'two', 'next' }, nvim:lines(PROMPT))
    nvim:keys('G<C-s>')
    same('one\ntwo\nnext', nvim:wait_sent(2, 'prompt').text)
    nvim:receive({ type = 'unsent', chat = 1, text = 'three' })
    same({ 'three' }, nvim:lines(PROMPT))
  end)

  it('keeps the draft over hide and show, also while text arrives', function()
    local nvim = chat()
    nvim:keys('ione<CR>two<Esc><C-w>kq')
    nvim:wait('return not (' .. IN_CHAT:gsub('return ', '') .. ')')
    nvim:receive(append('text'))
    nvim:lua("vim.cmd('Co')")
    nvim:wait(IN_CHAT)
    nvim:wait_line(CHAT, 'text')
    same({ 'text' }, nvim:lines(CHAT))
    same({ 'one', 'two' }, nvim:lines(PROMPT))
  end)

  it('does not map <Esc> and <C-d>, nor anything global', function()
    local nvim = chat()
    same({ '', '', '' }, {
      nvim:lua("return vim.fn.maparg('<Esc>', 'n')"),
      nvim:lua("return vim.fn.maparg('<Esc>', 'i')"),
      nvim:lua("return vim.fn.maparg('<C-d>', 'n')"),
    })
    same(
      {},
      nvim:lua([[
      local found = {}
      for _, mode in ipairs({ 'n', 'i', 'x', 'o', 't', 'c' }) do
        for _, map in ipairs(vim.api.nvim_get_keymap(mode)) do
          if (map.desc or ''):match('^co:') and not map.lhs:match('^<Plug>') then table.insert(found, map.lhs) end
        end
      end
      return found
    ]])
    )
  end)

  it('<C-c> cancels the turn while Neovim is busy, but not if it ends an `f`', function()
    local nvim = chat()
    nvim:receive(state('thinking'))
    nvim:wait("return require('co.chat.registry').current().state.state == 'thinking'")
    -- As Neovim tells the key if it came while Neovim was busy.
    nvim:lua([[
      local state = vim.fn.state
      vim.fn.state = function()
        vim.fn.state = state
        return ''
      end
      vim.api.nvim_feedkeys(vim.keycode('<C-c>'), 'n', false)
    ]])
    nvim:wait_sent(1, 'cancel')
    nvim:keys('f<C-c>ione<Esc>')
    nvim:wait_line(PROMPT, 'one')
    same(1, #nvim:sent('cancel'))
  end)

  it('<C-c> cancels the turn in both modes', function()
    local nvim = chat()
    nvim:keys('<C-c>i<C-c>')
    nvim:wait('return #_G.sent == 2')
    same({ 'cancel', 'cancel' }, neovim.pluck(nvim:sent(), 'type'))
  end)

  it('recalls prompts with <Up> in an empty prompt and comes back to the draft', function()
    local nvim = chat()
    nvim:keys('ifirst<C-s>second<CR>line<C-s>')
    nvim:wait('return #_G.sent == 2')
    nvim:keys('<Up>')
    nvim:wait("return vim.api.nvim_get_current_line() == 'line'")
    nvim:keys('<Up>')
    nvim:wait("return vim.api.nvim_get_current_line() == 'first'")
    nvim:keys('<Down><Down>')
    nvim:wait("return vim.api.nvim_get_current_line() == ''")
    nvim:keys('draft<Up>!')
    nvim:wait("return vim.api.nvim_get_current_line() ~= 'draft'")
    same({ 'draft!' }, nvim:lines(PROMPT))
  end)

  it('moves the cursor with <Up> and <Down> in a draft, before the keys that follow', function()
    local nvim = chat()
    nvim:keys('i1<CR>2<CR>3<CR>4<Up>!<Esc>gg<Down>A?<Esc>gg3<Down>x:let g:done = 1<CR>')
    nvim:wait('return vim.g.done == 1')
    same({ '1', '2?', '3!', '' }, nvim:lines(PROMPT))
  end)

  it('follows the answer at its end, and leaves a reader elsewhere alone', function()
    local nvim = chat({ screen = true, lines = 20 })
    local text = neovim.numbered('line ', 100)
    nvim:receive(append(table.concat(text, '\n')))
    nvim:wait_screen('line 100')
    nvim:keys('<C-w>kgg')
    nvim:wait("return vim.fn.line('.') == 1")
    local before = nvim:lua(VIEW)
    nvim:receive(append('\nmore\nand more'))
    nvim:wait_line(CHAT, 'and more')
    same(before, nvim:lua(VIEW))
    nvim:keys('G')
    nvim:wait("return vim.fn.line('.') == vim.fn.line('$')")
    nvim:receive(append('\nthe end'))
    nvim:wait_screen('the end')
  end)

  it('follows in a window that is not current', function()
    local nvim = neovim.start({ screen = true, lines = 20 })
    nvim:lua("vim.cmd('Co hello')")
    local text = neovim.numbered('line ', 100)
    nvim:receive(append(table.concat(text, '\n')))
    nvim:wait_screen('line 100')
    yes(not nvim:lua(IN_CHAT), ':Co {prompt} takes no focus')
  end)

  it('undoes changes of the draft while an answer streams, and nothing else', function()
    local nvim = chat()
    nvim:receive(append('streamed'))
    nvim:keys('ihello<Esc>')
    nvim:wait("return vim.api.nvim_get_current_line() == 'hello'")
    nvim:receive(append(' more'))
    nvim:wait_line(CHAT, 'streamed more')
    nvim:keys('A!<Esc>')
    nvim:wait("return vim.api.nvim_get_current_line() == 'hello!'")
    nvim:receive(append(' and more'))
    nvim:wait_line(CHAT, 'and more')
    nvim:keys('u')
    nvim:wait("return vim.api.nvim_get_current_line() == 'hello'")
    nvim:keys('uuu<C-w>kuuu<C-w>j<C-r>')
    nvim:wait("return vim.api.nvim_get_current_line() == 'hello'")
    same({ 'streamed more and more' }, nvim:lines(CHAT))
  end)

  it('gives back with undo the prompt that was sent or replaced', function()
    local nvim = chat()
    nvim:keys('ione<C-s>two<Esc>u')
    nvim:wait("return vim.api.nvim_get_current_line() == ''")
    nvim:keys('u')
    nvim:wait("return vim.api.nvim_get_current_line() == 'one'")
    nvim:receive({ type = 'unsent', chat = 1, text = 'zero' })
    nvim:wait("return vim.fn.line('$') == 2")
    nvim:keys('u')
    nvim:wait("return vim.fn.line('$') == 1")
    same({ 'one' }, nvim:lines(PROMPT))
  end)

  it('loses no line of its text and no draft, whatever is deleted', function()
    for _, keys in ipairs({
      ':%d<CR>',
      'dgg',
      'ggVGd',
      'dk',
      '<C-w>kdd',
      '<C-w>k:%d<CR>',
      '<C-w>kggVGd',
    }) do
      local nvim = chat()
      nvim:receive(append('one\ntwo'))
      nvim:wait_line(CHAT, 'two')
      nvim:keys('ithe<CR>draft<Esc>')
      nvim:wait("return vim.api.nvim_get_current_line() == 'draft'")
      nvim:keys(keys .. ':let g:done = 1<CR>')
      nvim:wait('return vim.g.done == 1')
      same({ 'one', 'two' }, nvim:lines(CHAT), keys)
      nvim:keys('<C-w>b')
      if not vim.startswith(keys, '<C-w>k') then
        nvim:wait("return vim.fn.line('$') < 2 or vim.fn.getline(1) ~= 'the'")
        nvim:keys('u')
      end
      nvim:wait("return vim.fn.line('$') == 2")
      same({ 'the', 'draft' }, nvim:lines(PROMPT), keys)
    end
  end)

  it('says in the winbar what it does, and with what', function()
    local nvim = chat({ screen = true, columns = 240 })
    nvim:receive(state('streaming', {
      model = 'm-100%',
      chosen = true,
      input = 12345,
      output = 678,
      steering = 1,
      queued = 2,
      confinement = 'container',
      cwd = '/srv/x',
    }))
    nvim:wait_screen(
      'answering (1 steering, 2 queued)',
      'm-100%',
      '12k in 678 out',
      'approved: container',
      '/srv/x'
    )
    nvim:receive(state('retrying', { detail = 'in 3 s' }))
    nvim:wait_screen('retrying in 3 s')
    same('co retrying', nvim:lua("return require('co').statusline()"))
  end)

  it('takes its title when the command-line window is closed', function()
    local nvim = chat({ screen = true })
    nvim:receive(state('idle', { title = 'first' }))
    nvim:wait("return vim.fn.bufexists('co://chat/1/co: first') == 1")
    nvim:lua('vim.cmd.stopinsert()')
    nvim:keys('<C-w>p')
    nvim:keys('q:')
    nvim:wait("return vim.fn.getcmdwintype() == ':'")
    nvim:receive(state('idle', { title = 'second' }), state('thinking', { title = 'third' }))
    nvim:wait("return require('co.chat.registry').get(1).state.title == 'third'")
    nvim:wait_screen('thinking')
    nvim:lua('vim.cmd.quit()')
    nvim:wait("return vim.fn.bufexists('co://chat/1/co: third') == 1")
    same(
      { 'co://chat/1/co: third', 'co://chat/1/prompt' },
      nvim:lua([[
        local names = vim.tbl_map(vim.api.nvim_buf_get_name, vim.api.nvim_list_bufs())
        names = vim.tbl_filter(function(name) return vim.startswith(name, 'co://') end, names)
        table.sort(names)
        return names
      ]])
    )
    same({}, nvim:lua('return _G.notices'))
  end)

  it('has its title in the name of its buffer, and stays what it was', function()
    local nvim = chat()
    nvim:keys(':wincmd p<CR>:edit one<CR>:edit two<CR>')
    local function names()
      return nvim:lua([[
        local all = {}
        for _, buf in ipairs(vim.api.nvim_list_bufs()) do
          all[#all + 1] = vim.api.nvim_buf_get_name(buf):match('^co://chat/1(.*)')
        end
        return all
      ]])
    end
    nvim:receive(state('idle', { title = 'mend src/a.rs' }), append('First.\n'))
    nvim:wait_line(CHAT, 'First.')
    -- Not `*.rs`, for which a person may have autocommands.
    same({ '/co: mend src-a.rs ', '/prompt' }, names())
    nvim:receive(state('idle', { title = ('%d | x'):rep(20) .. '\n' }), append('Second.\n'))
    nvim:wait_line(CHAT, 'Second.')
    same({ '/co: ' .. ('%d | x'):rep(20):sub(1, 40) .. '…', '/prompt' }, names())
    same('one', nvim:lua("return vim.fn.bufname('#')"))
    nvim:keys(':split co://chat/1<CR>')
    nvim:wait("return vim.bo.filetype == 'co-chat'")
    nvim:keys(':edit<CR>')
    nvim:receive(append('Third.\n'))
    nvim:wait_line(CHAT, 'Third.')
    same({ 'First.', 'Second.', 'Third.' }, vim.list_slice(nvim:lines(CHAT), 1, 3))
    same(2, #names())
  end)

  it('says in a status line what waits, as a component of lualine.nvim', function()
    local nvim = chat({ screen = true })
    nvim:lua(
      "vim.o.statusline = '<%{%v:lua.component()%}>' _G.component = require('co').statusline"
    )
    nvim:receive(state('asking'), messages.ask(1))
    nvim:wait_screen('<co ?1>')
    nvim:receive({ type = 'settled', id = 1, decision = 'withdrawn' }, state('streaming'))
    nvim:wait_screen('<co answering>')
    nvim:receive(state('idle'))
    nvim:wait_screen('<>')
  end)

  it('replaces its text and keeps the prompt', function()
    local nvim = chat()
    nvim:receive(append('old\nold\nold'))
    nvim:keys('idraft')
    nvim:receive({ type = 'replace', chat = 1, text = 'new' })
    nvim:wait_line(CHAT, 'new')
    nvim:keys('!')
    nvim:wait("return vim.api.nvim_get_current_line() == 'draft!'")
    same({ 'new' }, nvim:lines(CHAT))
    same({ 'draft!' }, nvim:lines(PROMPT))
  end)

  it('jumps between messages, not to headings in an answer', function()
    local begins = { type = 'message_begins', chat = 1 }
    local answer = append('## Co\n\n## You\n\nsaid this.\n\n## Co\n\nwas silent')
    local nvim = chat()
    nvim:receive(begins, append('## You\n\nhello\n\n'), begins, answer)
    nvim:wait_line(CHAT, 'silent')
    local function check()
      nvim:keys('[[')
      nvim:wait("return vim.fn.line('.') == 5")
      nvim:keys('[[')
      nvim:wait("return vim.fn.line('.') == 1")
      nvim:keys(']]]]')
      nvim:wait(IN_CHAT)
    end
    check()
    -- After `:edit` too.
    nvim:keys('<C-w>k:edit<CR><C-w>j')
    nvim:wait(IN_CHAT)
    check()
    nvim:receive({
      type = 'replace',
      chat = 1,
      text = '\n## You\n\nhello\n\n## Co\n\n## You',
      messages = { { row = 1 }, { row = 5 } },
    })
    nvim:wait("return #vim.fn.getbufline('^co://chat/1$', 1, '$') == 8")
    nvim:keys('[[')
    nvim:wait("return vim.fn.line('.') == 6")
    nvim:keys('[[')
    nvim:wait("return vim.fn.line('.') == 2")
  end)

  it('yanks the code block and opens file:line', function()
    local nvim = chat()
    local dir = neovim.dir()
    vim.fn.writefile({ 'a', 'b', 'c' }, dir .. '/x.lua')
    nvim:receive(
      state('idle', { cwd = dir }),
      append('see x.lua:2:1.\n```lua\nlocal a\nlocal b\n```\n')
    )
    nvim:wait_line(CHAT, 'local b')
    nvim:keys('<C-w>k?local b<CR>gy')
    nvim:wait("return vim.fn.getreg('\"') == 'local a\\nlocal b\\n'")
    nvim:keys('?x.lua<CR>gf')
    nvim:wait("return vim.fn.expand('%:t') == 'x.lua' and vim.fn.line('.') == 2")
    yes(nvim:lua("return #vim.fn.win_findbuf(vim.fn.bufnr('^co://chat/1$')) == 1"))
    yes(nvim:lua("return #vim.fn.win_findbuf(vim.fn.bufnr('^co://chat/1/prompt$')) == 1"))
  end)

  it('runs !cmd in the chat, without a model', function()
    local nvim = chat()
    nvim:keys('i!ls -la<C-s>')
    local sent = nvim:wait_sent(1)
    same({ 'command', '!', 'ls -la' }, { sent.type, sent.name, sent.args })
  end)

  it('never sends an unknown slash command', function()
    local nvim = chat()
    nvim:keys('i/nonsense<C-s>')
    nvim:wait_notice('unknown command /nonsense')
    same({}, nvim:sent())
    nvim:lua("vim.cmd('Co /nonsense too')")
    same({}, nvim:sent())
    nvim:lua("vim.cmd('Co /compact')")
    same({ 'compact' }, { nvim:sent('command')[1].name })
  end)

  it('ends when one of its buffers is wiped or deleted, and a new one opens', function()
    local nvim = chat()
    nvim:keys('<C-w>k:bdelete!<CR>')
    same({ type = 'close', chat = 1 }, nvim:wait_sent(1))
    nvim:receive(append('too late'))
    nvim:lua("vim.cmd('Co')")
    nvim:wait("return vim.api.nvim_buf_get_name(0) == 'co://chat/2/prompt'")
    nvim:keys(':bwipeout!<CR>')
    nvim:wait('return #_G.sent == 2')
    nvim:wait("return vim.fn.bufnr('^co://chat/2') == -1")
    same({}, nvim:lua("return require('co.ui.log').lines()"))
  end)

  it('lives through :edit, and its text is never modifiable', function()
    local nvim = chat()
    nvim:lua('vim.go.modifiable = false')
    nvim:receive(append('one'))
    nvim:wait_line(CHAT, 'one')
    nvim:keys('idraft<Esc>:edit!<CR><C-w>k:edit!<CR>:let g:done = 1<CR>')
    nvim:wait('return vim.g.done == 1')
    nvim:receive(append(' two'))
    nvim:wait_line(CHAT, 'one two')
    same({ 'draft' }, nvim:lines(PROMPT))
    yes(not nvim:lua("return vim.bo[vim.fn.bufnr('^co://chat/1$')].modifiable"))
    nvim:keys('<C-w>jAhello<C-s>')
    same('drafthello', nvim:wait_sent(1, 'prompt').text)
    same({}, nvim:lua("return require('co.ui.log').lines()"))
  end)

  it('gives its place back when hidden, and moves no other window', function()
    local nvim = neovim.start({ screen = true, columns = 120 })
    nvim:lua([[
      vim.api.nvim_buf_set_lines(0, 0, -1, false, vim.fn.map(vim.fn.range(1, 200), '"line " .. v:val'))
      vim.cmd('split') vim.cmd('vsplit') vim.cmd('normal! 100Gzt')
    ]])
    local LAYOUT =
      'return { vim.fn.winlayout(), vim.fn.winrestcmd(), vim.fn.winsaveview(), vim.api.nvim_get_current_win() }'
    local before = nvim:lua(LAYOUT)
    nvim:enter_chat()
    nvim:keys('<C-w>kq')
    nvim:wait('return not (' .. IN_CHAT:gsub('return ', '') .. ')')
    same(before, nvim:lua(LAYOUT))
    nvim:keys(':Co! ls<CR>')
    nvim:wait('return #_G.sent == 1')
    nvim:lua("require('co').shell()")
    same(before, nvim:lua(LAYOUT))
  end)

  it('leaves the sizes of other windows alone', function()
    local nvim = neovim.start({ screen = true, columns = 160, lines = 40 })
    nvim:lua("vim.cmd('vsplit | vertical resize 30 | wincmd l | split | resize 10 | wincmd j')")
    local SIZES = 'return vim.fn.winrestcmd()'
    local before = nvim:lua(SIZES)
    nvim:enter_chat()
    same({ 10, 30 }, nvim:lua([[return { vim.fn.winheight(2), vim.fn.winwidth(1) }]]))
    nvim:keys('<C-w>kq')
    nvim:wait('return not (' .. IN_CHAT:gsub('return ', '') .. ')')
    same(before, nvim:lua(SIZES))
  end)

  it('fits a screen of 40 columns', function()
    local nvim = chat({ screen = true, columns = 40, lines = 12 })
    nvim:receive(append('## Co\n\n' .. ('界面文字 '):rep(30)), state('thinking'))
    nvim:wait_screen('thinking')
    nvim:keys('ihello<C-s>')
    nvim:wait('return #_G.sent == 1')
  end)

  it('ends with a line when the backend is gone in the middle of a turn', function()
    local nvim = chat({ screen = true })
    nvim:receive(state('streaming'), append('half an ans'))
    nvim:wait_screen('half an ans')
    nvim:lua("require('co.backend').handle_exit('the backend ended')")
    nvim:wait_screen('the backend ended', 'ready')
  end)

  it('two at once get their own texts', function()
    local nvim = chat()
    nvim:lua("vim.cmd('Co /new')")
    nvim:receive(
      { type = 'append', chat = 1, text = 'one' },
      { type = 'append', chat = 2, text = 'two' }
    )
    nvim:wait_line('co://chat/2', 'two')
    same({ 'one' }, nvim:lines(CHAT))
    same({ 'two' }, nvim:lines('co://chat/2'))
  end)

  it('a message that cannot be shown is told once and the others go on', function()
    local nvim = chat()
    nvim:receive({ type = 'append', chat = 1 }, { type = 'nonsense' }, append('after'))
    nvim:receive({ type = 'append', chat = 1 })
    nvim:wait_line(CHAT, 'after')
    nvim:wait('return #_G.notices > 0')
    same(1, #nvim:lua('return _G.notices'))
  end)
end)
