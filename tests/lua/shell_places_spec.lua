local neovim = require('neovim')
local shell_buffer = require('shell_buffer')
local enter = shell_buffer.enter
local started = shell_buffer.started
local wait_line = shell_buffer.wait_line

--- Types a key that runs a command where text is locked; `_G.ran` tells whether that raised no error.
local function run_while_locked(nvim, command)
  nvim:lua(
    [[
      local command = ...
      vim.keymap.set('n', '<F3>', function()
        _G.ran = pcall(vim.cmd, command)
        return ''
      end, { expr = true })
    ]],
    command
  )
  nvim:keys('<F3>')
end

describe('a run from an odd place', function()
  it('draws a block that could not be drawn while text was locked as soon as it can', function()
    local nvim = started('one')
    nvim:lua([[
      vim.keymap.set('n', '<F3>', function()
        vim.cmd('Co! two')
        vim.cmd('Co! three')
        -- Until drawing has failed, and is tried again.
        local defer_fn, again = vim.defer_fn, false
        vim.defer_fn = function(...)
          again = true
          return defer_fn(...)
        end
        vim.wait(15000, function() return again end, 1)
        vim.defer_fn = defer_fn
        return ''
      end, { expr = true })
    ]])
    nvim:keys('<F3>')
    wait_line(nvim, '$ three')
    wait_line(nvim, '$ two')
    same('', nvim:lua('return vim.v.errmsg'))
  end)

  it('shows a run that began while text was locked as soon as it can', function()
    local nvim = neovim.start()
    run_while_locked(nvim, 'Co! one')
    nvim:wait("return #vim.fn.win_findbuf(vim.fn.bufnr('^co://shell$')) == 1")
    wait_line(nvim, '$ one')
    yes(nvim:lua('return _G.ran'))
    same({}, nvim:lua('return _G.notices'))
  end)

  it('opens no terminal while text is locked, says so and leaves nothing', function()
    local nvim = neovim.start()
    run_while_locked(nvim, 'Co! ++pty top')
    nvim:wait('return _G.ran ~= nil')
    nvim:wait_notice('from an <expr> mapping')
    yes(nvim:lua('return _G.ran'))
    nvim:wait("return vim.fn.bufnr('^co://term/1$') == -1")
    same({}, nvim:sent('run'))
  end)

  it('runs and lists from the command-line window, which keeps the cursor', function()
    local nvim = neovim.start({ screen = true })
    nvim:keys('q:')
    nvim:wait("return vim.fn.getcmdwintype() == ':'")
    for index, command in ipairs({ 'Co! make', 'Co! ++pty top', 'Co /jobs', 'Co /log', 'Co' }) do
      yes(nvim:lua('return pcall(vim.cmd, ...)', command))
      nvim:wait('return #_G.notices == ...', index - 1)
    end
    yes(nvim:lua('return _G.notices[1]'):find('close the command%-line window first'))
    same(':', nvim:lua('return vim.fn.getcmdwintype()'))
    same({ 'make', 'top' }, { nvim:sent('run')[1].command, nvim:sent('run')[2].command })
  end)

  it('is in no diff and scrolls with no window, whatever is set in others', function()
    local nvim = neovim.start()
    nvim:lua("vim.cmd('set diff scrollbind cursorbind')")
    nvim:lua("vim.cmd('Co! make')")
    enter(nvim)
    same(
      { false, false, false },
      nvim:lua('return { vim.wo.diff, vim.wo.scrollbind, vim.wo.cursorbind }')
    )
  end)

  it('says so where there is no room for a window', function()
    local nvim = neovim.start()
    nvim:lua('vim.o.winminheight = 1 while pcall(vim.cmd, "split") do end')
    nvim:lua("vim.cmd('Co! ++pty htop')")
    nvim:wait_notice('no room for its terminal')
    same({}, nvim:sent('run'))
    same(0, nvim:lua("return require('co.run').running()"))
    nvim:lua("vim.cmd('Co! make')")
    nvim:wait_notice('it runs unseen')
    same('make', nvim:sent('run')[1].command)
    nvim:lua("_G.notices = {} vim.cmd('Co /jobs')")
    nvim:wait_notice('no room for a window')
    nvim:lua("_G.notices = {} require('co').shell()")
    nvim:wait_notice('no room for a window')
  end)
end)
