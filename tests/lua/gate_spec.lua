-- Changes of a buffer and commands of the person that are half done.

local messages = require('messages')
local neovim = require('neovim')

local COUNT = 30
-- Neovim 0.10 handles no message while a substitution asks.
local ASKS = vim.fn.has('nvim-0.11') == 1 and 'r?' or 'blocked'

--- Starts Neovim in a file of numbered lines. Returns it and the path of the file.
---@param setup? string Lua
local function open(setup)
  local nvim = neovim.start({ screen = true })
  local file = neovim.dir() .. '/a.txt'
  vim.fn.writefile(neovim.numbered('foo ', COUNT), file)
  nvim:lua("require('co.buffers') vim.o.autoread = true vim.cmd.edit(...)", file)
  nvim:lua(setup or '')
  return nvim, file
end

--- Asks for a new first line of a file.
---@param nvim co.test.Neovim
---@param file string
---@param tick integer
---@param request integer
local function add_line(nvim, file, tick, request)
  nvim:receive({
    type = 'change_buffer',
    request = request,
    file = file,
    tick = tick,
    replacements = { { start = 0, ['end'] = 0, lines = { 'z' } } },
    final_newline = true,
  })
end

local function tick(nvim)
  return nvim:lua('return vim.b.changedtick')
end

local function text(nvim)
  return nvim:request('nvim_buf_get_lines', 0, 0, -1, false)
end

--- Adds a line between some keys and others. Asks again if the buffer has changed, as the backend does. Returns whether the
--- first change waited for the last key.
---@param before string
---@param mode string while the keys wait for the others; `blocked` if messages wait too
---@param after string
---@param setup? string Lua
local function check(before, mode, after, setup)
  local plain = open(setup)
  plain:keys(before .. after .. '<C-Bslash><C-n>')
  plain:keys(':let g:done = 1<CR>')
  plain:wait('return vim.g.done')
  local alone = text(plain)
  plain:stop()

  local nvim, file = open(setup)
  local old = tick(nvim)
  nvim:keys(before)
  local blocked = mode == 'blocked'
  if blocked then
    neovim.wait('a key', function()
      return nvim:request('nvim_get_mode').blocking
    end)
  else
    nvim:wait_mode(mode)
    old = tick(nvim)
  end
  add_line(nvim, file, old, 1)
  local waited = blocked or #nvim:sent('buffer_changed') == 0
  nvim:keys(after .. '<C-Bslash><C-n>')
  local reply = nvim:wait_sent(1, 'buffer_changed')
  if reply.moved then
    nvim:wait_mode('n')
    add_line(nvim, file, tick(nvim), 2)
    same(nil, nvim:wait_sent(2, 'buffer_changed').moved)
  end
  local both = vim.list_extend({ 'z' }, alone)
  same(both, text(nvim), before .. ' and ' .. after)
  nvim:stop()
  return waited
end

describe('a change of a buffer', function()
  for name, case in pairs({
    ['a question of a command'] = { ':20,22s/foo/X/c<CR>', ASKS, 'yyy' },
    ['the next question of it'] = { ':20,22s/foo/X/c<CR>y', ASKS, 'yy' },
    ['a question about all lines'] = { ':%s/foo/X/gc<CR>', ASKS, 'yya' },
    ['the command line'] = { ':20,22', 'c', 'd<CR>' },
    ['a search'] = { '/foo 2', 'c', '5<CR>x' },
    ['a search for an operator'] = { 'd/foo 2', 'c', '5<CR>' },
    ['an expression'] = { '20Gi<C-r>=1', 'c', '+1<CR>x<Esc>' },
    ['the command-line window'] = { '20Gq:i21', 'i', 'd<CR>' },
    ['a motion'] = { '20Gd', 'no', 'j' },
    ['a motion after a count'] = { '20G2d', 'no', 'j' },
    ['a motion of a mapped operator'] = { '20Ggu', 'no', 'j' },
    ['a motion in Insert mode'] = { '20Gix<C-o>d', 'no', 'jy<Esc>' },
    ['a command in Insert mode'] = { '20Gix<C-o>', 'niI', 'ddy<Esc>' },
    ['a count'] = { '20G3', 'blocked', 'dd' },
    ['a count of a motion'] = { '20Gd3', 'blocked', 'j' },
    ['a register'] = { '20G"', 'blocked', 'add"ap' },
    ['a command for a register'] = { '"ayy20G"a', 'n', 'P' },
    ['a character'] = { '20Gf', 'blocked', '0x' },
    ['a character in its place'] = { '20Gr', 'blocked', 'X' },
    ['the second key of a command'] = { '20Gg', 'blocked', 'Jx' },
    ['a selection of lines'] = { '25GVj', 'V', 'd' },
    ['a selection'] = { '25Gvj', 'v', 'd' },
    ['a selection of a block'] = { '25G<C-v>jl', '\22', 'd' },
    ['a selection that is replaced'] = { '25Ggh', 's', 'X<Esc>' },
    ['a selection of lines that is replaced'] = { '25GgH', 'S', 'X<Esc>' },
    ['an insertion into a block'] = { '20G<C-v>jjIx', 'i', 'x<Esc>' },
    ['an insertion behind a block'] = { '20G<C-v>jj$Ax', 'i', 'x<Esc>' },
    ['a change of a block'] = { '20G<C-v>jjlcx', 'i', 'x<Esc>' },
    ['a change of a block by a motion'] = { '20Gc<C-v>jx', 'i', 'x<Esc>' },
    ['an insertion into a block after completion'] = { '20G<C-v>jjIfo<C-n><C-e>', 'i', 'x<Esc>' },
    ['completion'] = { '20GAfo<C-n>', 'ic', '<C-n><C-y><Esc>' },
    ['completion of keywords'] = { '20GAfo<C-x><C-n>', 'ic', '<C-n><C-y><Esc>' },
    ['the kind of completion'] = { '20Gofo<C-x>', 'ix', '<C-l><C-n><C-y><Esc>' },
    ['a key for a mapping'] = {
      '20G<F3>',
      'n',
      'x',
      [[vim.keymap.set('n', '<F3>', function()
        local row = vim.fn.line('.')
        vim.fn.getcharstr()
        vim.api.nvim_buf_set_lines(0, row - 1, row, true, { 'set' })
      end)]],
    },
    ['a key for an expression'] = {
      '20G<F3>',
      'n',
      'x',
      [[vim.keymap.set('n', '<F3>', function()
        vim.fn.getcharstr()
        return 'dd'
      end, { expr = true })]],
    },
    ['a mapping of more keys'] = { '20Gg', 'blocked', 'yyd', "vim.keymap.set('n', 'gyy', 'dd')" },
    ['a text in a prompt'] = {
      '20G<F3>',
      'c',
      'ab<CR>',
      [[vim.keymap.set('n', '<F3>', function()
        local row = vim.fn.line('.')
        local text = vim.fn.input('text: ')
        vim.api.nvim_buf_set_lines(0, row - 1, row, true, { text })
      end)]],
    },
  }) do
    it('waits for ' .. name, function()
      yes(check(case[1], case[2], case[3], case[4]), 'it did not wait')
    end)
  end

  for name, case in pairs({
    ['Normal mode'] = { '20G', 'n', 'dd' },
    ['the recording of a macro'] = { '20Gqa', 'n', 'ddq@a' },
    ['Insert mode'] = { '20Gixx', 'i', 'yy<Esc>' },
    ['Insert mode of an operator'] = { '20Gcwx', 'i', 'yy<Esc>' },
    ['Insert mode of a selection'] = { '20GVjcx', 'i', 'yy<Esc>' },
    ['Insert mode after a block'] = { '20G<C-v>jIx<Esc>3jcwx', 'i', 'yy<Esc>' },
    ['Insert mode with a count'] = { '20G3ox', 'i', 'yy<Esc>' },
    ['Replace mode'] = { '20GRxx', 'R', 'y<BS><BS><Esc>' },
    ['Virtual Replace mode'] = { '20GgRxx', 'Rv', 'y<BS><BS><Esc>' },
  }) do
    it('does not wait in ' .. name, function()
      yes(not check(case[1], case[2], case[3], case[4]), 'it waited')
    end)
  end
end)

--- Lets a command write a file, and the run end.
---@param nvim co.test.Neovim
---@param file string
---@param lines string[]
local function write_and_end(nvim, file, lines)
  vim.fn.writefile(lines, file)
  nvim:receive(messages.ended(nvim:lua("return require('co.run').running()"), 0))
end

--- Starts Neovim in a file, with a run that goes on.
local function open_with_run()
  local nvim, file = open()
  nvim:lua("vim.cmd('Co! fmt') vim.cmd.stopinsert() vim.cmd.wincmd('p')")
  nvim:wait('return vim.fn.bufname() == ...', file)
  return nvim, file
end

describe('a reload', function()
  it('waits for the command of the person, and keeps what that did', function()
    if ASKS ~= 'r?' then
      return
    end
    local nvim, file = open_with_run()
    local lines = vim.list_extend({ 'z' }, neovim.numbered('foo ', COUNT))
    nvim:keys(':20,22s/foo/X/c<CR>')
    nvim:wait_mode('r?')
    write_and_end(nvim, file, lines)
    same('foo 1', text(nvim)[1])
    nvim:keys('yyy')
    nvim:wait_notice('changed on disk')
    local expected = neovim.numbered('foo ', COUNT)
    expected[20], expected[21], expected[22] = 'X 20', 'X 21', 'X 22'
    same(expected, text(nvim))
  end)

  it('waits for a command that changes nothing', function()
    local nvim, file = open_with_run()
    nvim:keys('25GVj')
    nvim:wait_mode('V')
    write_and_end(nvim, file, vim.list_extend({ 'z' }, neovim.numbered('foo ', COUNT)))
    same('foo 1', text(nvim)[1])
    nvim:keys('y')
    nvim:wait("return vim.fn.getline(1) == 'z'")
    same('foo 25\nfoo 26\n', nvim:lua("return vim.fn.getreg('\"')"))
  end)

  it('does not wait in other buffers', function()
    local nvim, file = open_with_run()
    local other = vim.fn.fnamemodify(file, ':h') .. '/b.txt'
    nvim:lua("vim.fn.writefile({ 'here' }, ...) vim.cmd.split(...)", other)
    nvim:keys('V')
    nvim:wait_mode('V')
    write_and_end(nvim, file, { 'changed and shorter' })
    nvim:wait_line(file, 'changed and shorter')
    same('V', nvim:mode())
  end)

  it('leaves no autocommand', function()
    local nvim, file = open_with_run()
    local count = 'return #vim.api.nvim_get_autocmds({})'
    -- Modules that are loaded late have their own.
    write_and_end(nvim, file, { 'changed first' })
    nvim:wait("return vim.fn.getline(1) == 'changed first'")
    local before = nvim:lua(count)
    nvim:keys('V')
    nvim:wait_mode('V')
    vim.fn.writefile({ 'changed' }, file)
    nvim:lua("for _ = 1, 3 do require('co.ui.reload').changed_files() end")
    same(before, nvim:lua(count))
    nvim:keys('y')
    nvim:wait("return vim.fn.getline(1) == 'changed'")
    same(before, nvim:lua(count))
  end)
end)

describe('a read of a buffer', function()
  --- Asks for the text of a file.
  local function ask(nvim, file, request)
    nvim:receive({ type = 'read_buffers', request = request, chat = 1, files = { file } })
  end

  it('does not wait for a command of the person', function()
    local nvim, file = open()
    nvim:keys('25GVj')
    nvim:wait_mode('V')
    ask(nvim, file, 1)
    same(COUNT, #vim.split(vim.trim(nvim:wait_sent(1, 'buffers').buffers[1].text), '\n'))
    same('V', nvim:mode())
  end)

  it('waits behind a reload', function()
    local nvim, file = open_with_run()
    nvim:keys('25GVj')
    nvim:wait_mode('V')
    write_and_end(nvim, file, { 'changed' })
    ask(nvim, file, 1)
    same(0, #nvim:sent('buffers'))
    nvim:keys('y')
    same('changed\n', nvim:wait_sent(1, 'buffers').buffers[1].text)
  end)

  it('waits behind a change', function()
    local nvim, file = open()
    nvim:keys('25GVj')
    nvim:wait_mode('V')
    add_line(nvim, file, tick(nvim), 1)
    ask(nvim, file, 2)
    same(0, #nvim:sent('buffers'))
    nvim:keys('y')
    yes(vim.startswith(nvim:wait_sent(1, 'buffers').buffers[1].text, 'z\nfoo 1\n'))
  end)

  it('tells what the command of the person did', function()
    local nvim, file = open_with_run()
    nvim:keys('25GVj')
    nvim:wait_mode('V')
    write_and_end(nvim, file, { 'changed' })
    ask(nvim, file, 1)
    nvim:keys('d')
    local read = nvim:wait_sent(1, 'buffers').buffers[1]
    same({ true, COUNT - 2 }, { read.modified, #vim.split(vim.trim(read.text), '\n') })
  end)
end)

describe('the wait of a turn', function()
  local function waiting_turn()
    local nvim, file = open()
    nvim:keys(':Co<CR>')
    nvim:wait("return vim.bo.filetype == 'co-prompt'")
    nvim:receive(messages.state('running', { detail = 'edit_file a.txt' }))
    nvim:lua("vim.cmd.stopinsert() vim.cmd.wincmd('t')")
    nvim:wait('return vim.fn.bufname() == ...', file)
    nvim:keys('25GVj')
    nvim:wait_mode('V')
    local now = tick(nvim)
    for request, chat in ipairs({ 1, 2 }) do
      nvim:receive({
        type = 'change_buffer',
        request = request,
        chat = chat,
        file = file,
        tick = now,
        replacements = { { start = 0, ['end'] = 0, lines = { 'z' .. chat } } },
        final_newline = true,
      })
    end
    return nvim
  end

  it('is in the winbar', function()
    local nvim = waiting_turn()
    nvim:wait_screen('waits for your command: edit_file a.txt')
    nvim:keys('y')
    nvim:wait_screen('running: edit_file a.txt')
    same('z1', text(nvim)[1])
  end)

  for name, cancel in pairs({
    ['the person'] = "require('co.chat').cancel(require('co.chat.registry').get(1))",
    ['the backend'] = "_G.receive({ { type = 'withdraw_request', request = 1 } })",
  }) do
    it('ends if it is cancelled by ' .. name, function()
      local nvim = waiting_turn()
      nvim:wait_screen('waits for your command')
      nvim:lua(cancel)
      local reply = nvim:wait_sent(1, 'buffer_changed')
      same({ 1, true }, { reply.request, reply.problem ~= nil })
      nvim:wait_gone('waits for your command')
      nvim:keys('y')
      same({ 2 }, { nvim:wait_sent(2, 'buffer_changed').request })
      same({ 'z2', 'foo 1' }, vim.list_slice(text(nvim), 1, 2))
    end)
  end

  it('ends with the backend', function()
    local nvim = waiting_turn()
    nvim:lua("require('co.backend').handle_exit('it ended')")
    nvim:keys('y')
    nvim:wait_mode('n')
    nvim:wait("return require('co.ui.gate').is_open({ vim.api.nvim_get_current_buf() })")
    same('foo 1', text(nvim)[1])
  end)
end)

describe('a buffer', function()
  it('whose file is deleted stays until the command of the person is complete', function()
    local nvim, file = open()
    nvim:keys('25GVj')
    nvim:wait_mode('V')
    vim.fn.delete(file)
    nvim:receive({ type = 'file_gone', file = file })
    same(file, nvim:lua('return vim.fn.bufname()'))
    nvim:keys('y')
    nvim:wait('return vim.fn.bufexists(...) == 0', file)
    same('foo 25\nfoo 26\n', nvim:lua("return vim.fn.getreg('\"')"))
  end)

  it('of a terminal delays no change of others', function()
    local nvim, file = open()
    nvim:lua("vim.o.hidden = true vim.cmd('terminal cat')")
    nvim:keys('i')
    nvim:wait_mode('t')
    add_line(nvim, file, nvim:lua('return vim.b[vim.fn.bufnr(...)].changedtick', file), 1)
    same(nil, nvim:wait_sent(1, 'buffer_changed').problem)
    same('z', nvim:lines(file)[1])
    same('t', nvim:mode())
  end)

  it('that a plugin formats before it is written is not changed meanwhile', function()
    local nvim, file = open([[
      vim.api.nvim_create_autocmd('BufWritePre', { callback = function()
        local row = vim.fn.search('foo 20', 'nw')
        _G.formats = true
        vim.wait(10000, function() return _G.formatted end)
        vim.api.nvim_buf_set_lines(0, row - 1, row, true, { 'formatted' })
        _G.formatted = false
      end })
    ]])
    local old = tick(nvim)
    nvim:keys(':write<CR>')
    nvim:wait('return _G.formats')
    add_line(nvim, file, old, 1)
    nvim:lua('_G.formatted = true')
    yes(nvim:wait_sent(1, 'buffer_changed').moved)
    local expected = neovim.numbered('foo ', COUNT)
    expected[20] = 'formatted'
    same(expected, text(nvim))
  end)

  it('that is closed before its change could be made has no change', function()
    local nvim, file = open()
    nvim:keys('V')
    nvim:wait_mode('V')
    add_line(nvim, file, tick(nvim), 1)
    nvim:keys('<Esc>:enew | bwipeout! #<CR>')
    yes(nvim:wait_sent(1, 'buffer_changed').moved)
  end)
end)
