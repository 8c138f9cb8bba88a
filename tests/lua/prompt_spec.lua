local messages = require('messages')
local neovim = require('neovim')

local IN_CHAT = "return vim.bo.filetype == 'co-prompt'"

--- A Neovim with a.py and b.py side by side, the cursor in a.py.
local function two_files(opts)
  local nvim = neovim.start(opts)
  local dir = neovim.dir()
  vim.fn.writefile({ 'alpha', 'one' }, dir .. '/a.py')
  vim.fn.writefile({ 'beta' }, dir .. '/b.py')
  nvim:lua(
    [[
      vim.cmd.cd(...)
      vim.cmd('edit b.py')
      _G.b = vim.api.nvim_get_current_win()
      vim.cmd('split a.py')
      _G.a = vim.api.nvim_get_current_win()
    ]],
    dir
  )
  return nvim
end

local function go_to(nvim, win)
  nvim:lua('vim.api.nvim_set_current_win(_G[...])', win)
end

--- Goes to the chat, sends `text` and gives the context that went along.
local function send(nvim, text)
  local count = #nvim:sent('prompt')
  nvim:enter_chat()
  nvim:keys('i' .. text .. '<Esc><CR>')
  nvim:wait('return #_G.sent > ...', count)
  return nvim:sent('prompt')[count + 1].context
end

describe('a prompt that names a buffer', function()
  it('means that of the window the person was in last', function()
    local nvim = two_files()
    same({ { name = '@buffer a.py', text = 'alpha\none\n' } }, send(nvim, 'see @buffer'))
    go_to(nvim, 'b')
    same({ { name = '@buffer b.py', text = 'beta\n' } }, send(nvim, 'see @buffer'))
    nvim:lua([[
      local buf = vim.fn.bufnr('a.py')
      vim.fn.setpos("'<", { buf, 2, 1, 0 }) vim.fn.setpos("'>", { buf, 2, 1, 0 })
      vim.api.nvim_buf_set_mark(buf, '<', 2, 0, {}) vim.api.nvim_buf_set_mark(buf, '>', 2, 0, {})
      vim.diagnostic.set(vim.api.nvim_create_namespace('x'), buf, {
        { lnum = 1, col = 0, message = 'bad', severity = 1 } })
    ]])
    go_to(nvim, 'a')
    same({
      { name = '@selection a.py:2', text = 'one\n' },
      { name = '@diagnostics a.py', text = 'a.py:2:1: error: bad' },
    }, send(nvim, '@selection @diagnostics @unsaved'))
  end)

  it('means what that window shows now', function()
    local nvim = two_files()
    nvim:enter_chat()
    nvim:lua("vim.api.nvim_win_set_buf(_G.a, vim.fn.bufnr('b.py'))")
    same('@buffer b.py', send(nvim, 'see @buffer')[1].name)
  end)

  it('is no window of co, no list that pops up and no command-line window', function()
    local nvim = two_files()
    same('@buffer a.py', send(nvim, 'see @buffer')[1].name)
    nvim:lua([[
      vim.cmd('Co! ls')
      require('co').shell() require('co').shell()
      vim.cmd('Co /jobs')
      local buf = vim.api.nvim_create_buf(false, true)
      local win = vim.api.nvim_open_win(buf, true,
        { relative = 'editor', row = 1, col = 1, width = 9, height = 1 })
      vim.api.nvim_win_close(win, true)
    ]])
    nvim:keys(':<C-f>')
    nvim:wait("return vim.fn.getcmdwintype() == ':'")
    nvim:keys(':quit<CR>')
    nvim:wait("return vim.fn.getcmdwintype() == ''")
    local count = #nvim:sent('prompt')
    nvim:keys(':Co see @buffer<CR>')
    nvim:wait(
      "return #vim.tbl_filter(function(it) return it.type == 'prompt' end, _G.sent) > ...",
      count
    )
    same('@buffer a.py', nvim:sent('prompt')[count + 1].context[1].name)
  end)

  it('means the last buffer where its window is gone or shows the chat', function()
    local nvim = two_files()
    nvim:enter_chat()
    go_to(nvim, 'b')
    nvim:enter_chat()
    nvim:keys('<C-w>o')
    nvim:wait("return vim.fn.winlayout()[1] == 'col' and #vim.api.nvim_list_wins() == 2")
    same('@buffer b.py', send(nvim, 'see @buffer')[1].name)

    local current = two_files()
    current:lua("require('co').setup({ layout = 'current' })")
    same('@buffer a.py', send(current, 'see @buffer')[1].name)
    current:lua("vim.cmd('bwipeout! ' .. vim.fn.bufnr('a.py'))")
    same('@buffer b.py', send(current, 'see @buffer')[1].name)
  end)
end)

describe('a prompt that is sent', function()
  local AT_END =
    "return vim.fn.line('w$', ...) == vim.api.nvim_buf_line_count(vim.fn.bufnr('^co://chat/1$'))"

  --- A chat of a hundred lines, scrolled to its top, and its window.
  local function reading()
    local nvim = neovim.chat({ screen = true, lines = 20 })
    nvim:keys('<C-w>k')
    nvim:wait("return vim.bo.filetype == 'co-chat'")
    local win = nvim:lua('return vim.api.nvim_get_current_win()')
    nvim:receive(messages.append(('line\n'):rep(100)))
    nvim:wait("return vim.fn.line('$') > 100")
    nvim:keys('gg')
    nvim:wait("return vim.fn.line('w0') == 1")
    return nvim, win
  end

  it('scrolls its chat to the end, wherever it is typed', function()
    for _, keys in ipairs({
      '<C-w>j<C-s>',
      ':Co hello<CR>',
      '<C-w>t:Co hello<CR>',
      '<C-w>t:Co !ls<CR>',
    }) do
      local nvim, win = reading()
      nvim:lua("require('co.chat.registry').current().prompt:set({ 'draft' })")
      nvim:keys(keys)
      nvim:wait('return #_G.sent > 0')
      nvim:wait(AT_END, win)
      nvim:receive(messages.append('## You\n\nhello\n\n'))
      nvim:wait_screen('hello')
    end
  end)

  it('leaves the reader alone where it could not be sent', function()
    local nvim, win = reading()
    nvim:lua("require('co.backend').send = function() return false end")
    nvim:keys('<C-w>t:Co hello<CR>:let g:done = 1<CR>')
    nvim:wait('return vim.g.done == 1')
    same(1, nvim:lua("return vim.fn.line('w0', ...)", win))
  end)
end)

describe('the highlights of a prompt', function()
  it('are missing if Neovim cannot load them, and nothing else is', function()
    local nvim = neovim.start()
    local dir = neovim.dir()
    vim.fn.mkdir(dir .. '/queries/markdown', 'p')
    vim.fn.writefile({ '(no_such_node) @comment' }, dir .. '/queries/markdown/highlights.scm')
    nvim:lua('vim.opt.rtp:prepend(...)', dir)
    nvim:lua("vim.cmd('Co')")
    nvim:wait(IN_CHAT)
    nvim:lua("require('co.chat.languages').after_steps(function() _G.stepped = true end)")
    nvim:wait('return _G.stepped')
    nvim:keys('itext<Esc>')
    nvim:wait("return vim.api.nvim_get_current_line() == 'text'")
    same('', nvim:lua('return vim.v.errmsg'))
    same(
      false,
      nvim:lua('return vim.treesitter.highlighter.active[vim.api.nvim_get_current_buf()] ~= nil')
    )
  end)
end)
