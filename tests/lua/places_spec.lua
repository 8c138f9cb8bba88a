local neovim = require('neovim')

describe('a chat', function()
  it('is not made in a directory that is gone, which is said', function()
    local nvim = neovim.start()
    nvim:lua([[
      local gone = vim.fn.tempname()
      vim.fn.mkdir(gone)
      vim.cmd.cd(gone)
      vim.uv.fs_rmdir(gone)
    ]])
    for count, command in ipairs({ 'Co', 'Co /new', 'Co /model', 'Co hello' }) do
      nvim:lua('vim.cmd(...)', command)
      nvim:wait('return #_G.notices == ...', count)
      yes(nvim:lua('return _G.notices[#_G.notices]'):find('does not exist any more', 1, true))
      same(-1, nvim:lua("return vim.fn.bufnr('^co://chat/1$')"), command)
    end
    same({}, nvim:sent())
  end)

  it('is not made where the backend could not read the name, nor told what is no text', function()
    local nvim = neovim.start()
    nvim:lua([[
      _G.start = vim.fn.getcwd()
      local odd = vim.fn.tempname() .. '\233'
      vim.fn.mkdir(odd)
      vim.cmd.cd(odd)
    ]])
    local function said(words)
      return nvim:lua('return _G.notices[#_G.notices]'):find(words, 1, true) ~= nil
    end
    for count, command in ipairs({ 'Co', 'Co /new', 'Co /model', 'Co hello' }) do
      nvim:lua('vim.cmd(...)', command)
      nvim:wait('return #_G.notices == ...', count)
      yes(said('name is not all UTF-8'))
    end
    nvim:lua("vim.cmd.cd(_G.start) vim.cmd('Co')")
    nvim:lua(
      "require('co.user_command').submit(require('co.chat.registry').current(), '!touch d\\233', _G.start)"
    )
    nvim:wait('return #_G.notices == 5')
    yes(said('not run: the command is not all UTF-8'))
    nvim:lua("vim.cmd('Co /export d\\233')")
    nvim:wait('return #_G.notices == 6')
    yes(said('/export was not sent'))
    same({}, nvim:sent())
  end)

  it('that has begun goes on where it is, wherever the window is', function()
    local nvim = neovim.start()
    nvim:lua([[
      vim.cmd('Co')
      _G.start = vim.fn.getcwd()
      local odd = vim.fn.tempname() .. '\233'
      vim.fn.mkdir(odd)
      vim.cmd.cd(odd)
      vim.cmd('Co hello')
    ]])
    nvim:wait('return #_G.sent == 1')
    same(nvim:lua('return _G.start'), nvim:lua('return _G.sent[1].cwd'))
  end)
end)

describe('a narrow screen', function()
  --- Returns whether the chat is as wide as the screen.
  local function is_below(columns, layout)
    local nvim = neovim.start()
    nvim:lua('vim.o.columns = ...', columns)
    nvim:lua("require('co').setup({ layout = ... }) vim.cmd('Co')", layout)
    nvim:wait("return vim.bo.filetype == 'co-prompt'")
    return nvim:lua('return vim.api.nvim_win_get_width(0) == vim.o.columns')
  end

  it('has the chat below the files, unless the settings say where', function()
    same(true, is_below(99))
    same(false, is_below(100))
    same(false, is_below(99, 'vertical'))
  end)
end)

describe('an odd Neovim', function()
  local IN_CHAT = "return vim.bo.filetype == 'co-prompt'"

  it('of a few lines shows the chat in a float', function()
    for _, lines in ipairs({ 4, 6 }) do
      local nvim = neovim.start()
      nvim:lua('vim.o.columns, vim.o.lines = 12, ...', lines)
      nvim:lua("require('co').setup({ layout = 'float' }) vim.cmd('Co')")
      nvim:wait(IN_CHAT)
    end
  end)

  it('with a window of one row shows the chat there without a winbar', function()
    local nvim = neovim.start()
    nvim:lua([[
      vim.cmd('Co')
      local place = { relative = 'editor', row = 0, col = 0, width = 9, height = 1 }
      local chat = require('co.chat.registry').current()
      _G.small = vim.api.nvim_open_win(chat.buf, true, place)
      require('co.chat.window_options').update_winbar(chat)
    ]])
    same('', nvim:lua('return vim.v.errmsg'))
    nvim:lua([[
      vim.api.nvim_win_set_height(_G.small, 3)
      require('co.chat').update_winbars()
    ]])
    same(1, nvim:lua('return vim.fn.getwininfo(_G.small)[1].winbar'))
    nvim:lua([[
      vim.api.nvim_win_set_height(_G.small, 1)
      require('co.chat').update_winbars()
    ]])
    same('', nvim:lua('return vim.v.errmsg'))
  end)

  it('that hides no changes shows the chat beside them, and opens files there', function()
    local nvim = neovim.start()
    local dir = neovim.dir()
    vim.fn.writefile({ 'other' }, dir .. '/other.txt')
    nvim:lua('vim.cmd.cd(...)', dir)
    nvim:lua([[
      vim.o.hidden = false
      vim.fn.setline(1, 'mine')
      require('co').setup({ layout = 'current' })
      vim.cmd('Co')
    ]])
    nvim:wait(IN_CHAT)
    same(3, nvim:lua('return #vim.api.nvim_list_wins()'))
    nvim:keys('iother.txt:1<Esc>0gf')
    nvim:wait("return vim.api.nvim_get_current_line() == 'other'")
    same(4, nvim:lua('return #vim.api.nvim_list_wins()'))
    same('', nvim:lua('return vim.v.errmsg'))
  end)

  it('whose file has changes opens it at the line that output names', function()
    local nvim = neovim.start()
    local dir = neovim.dir()
    vim.fn.writefile({ 'one', 'two' }, dir .. '/a.txt')
    nvim:lua('vim.cmd.cd(...)', dir)
    nvim:lua("vim.cmd('edit a.txt') vim.fn.setline(1, 'mine') vim.cmd('Co')")
    nvim:wait(IN_CHAT)
    nvim:keys('ia.txt:2<Esc>0gf')
    nvim:wait("return vim.api.nvim_get_current_line() == 'two'")
    same('mine', nvim:lua('return vim.fn.getline(1)'))
    same(3, nvim:lua('return #vim.api.nvim_list_wins()'))
    nvim:lua("vim.cmd('edit other.txt') vim.cmd('Co')")
    nvim:keys('0gf')
    nvim:wait("return vim.api.nvim_get_current_line() == 'two'")
    same({}, nvim:lua('return _G.notices'))
  end)

  it('in visual mode opens the chat and a terminal out of it', function()
    for _, case in ipairs({ { 'Co', 'co-prompt', 'n' }, { 'Co! ++pty cat', 'co-terminal', 't' } }) do
      local nvim = neovim.start()
      nvim:lua(
        [[
        vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'one', 'two' })
        vim.keymap.set('x', '<F4>', ('<Cmd>%s<CR>'):format(...))
      ]],
        case[1]
      )
      nvim:keys_to('vj', 'v')
      nvim:keys('<F4>')
      nvim:wait('return vim.bo.filetype == ...', case[2])
      nvim:wait_mode(case[3])
      same(2, nvim:lua("return vim.api.nvim_buf_get_mark(1, '>')[1]"))
    end
  end)

  it('whose only window is pinned to the chat gives it up', function()
    local nvim = neovim.start()
    nvim:lua("require('co').setup({ layout = 'current' }) vim.cmd('Co')")
    nvim:lua('vim.wo.winfixbuf = true')
    nvim:keys('<C-w>kq')
    nvim:wait("return vim.bo.filetype == ''")
    same('', nvim:lua('return vim.v.errmsg'))
  end)

  it('where nothing may be modified lists keys and questions', function()
    local nvim = neovim.start({ screen = true })
    nvim:lua("vim.cmd('set nomodifiable')")
    nvim:enter_chat()
    nvim:keys('g?')
    nvim:wait_screen('send the prompt')
    nvim:receive(require('messages').ask(7))
    nvim:wait("return #require('co.question').pending() == 1")
    nvim:keys(':Co /pending<CR>')
    nvim:wait_screen(' 1  chat 1  touch file7')
    same('', nvim:lua('return vim.v.errmsg'))
  end)

  it('that a session file gave the buffer of a terminal opens its own', function()
    local nvim = neovim.start()
    nvim:lua("vim.cmd('edit co://term/1') vim.cmd('split other')")
    nvim:lua("vim.cmd('Co! ++pty top')")
    nvim:wait("return vim.bo.filetype == 'co-terminal'")
    same('co://term/1', nvim:lua('return vim.api.nvim_buf_get_name(0)'))
    same(1, #nvim:sent('run'))
  end)
end)
