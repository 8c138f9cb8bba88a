-- Commands that run again when the person saves a file.

local messages = require('messages')
local neovim = require('neovim')
local shell_buffer = require('shell_buffer')
local ended = messages.ended
local wait_line = shell_buffer.wait_line

local AGAIN = ' · 0.1 s · 1 line · again on save, <C-c> ends that'

--- Returns a Neovim that edits a file in a new directory, where a command is watched.
local function watched(command)
  local dir = vim.fn.resolve(vim.fn.tempname())
  vim.fn.mkdir(dir .. '/src', 'p')
  vim.fn.mkdir(dir .. '/.git', 'p')
  local nvim = neovim.start()
  nvim:lua("vim.fn.chdir(...) vim.cmd('edit src/app.py')", dir)
  nvim:lua("vim.cmd('Co! ' .. ...)", command)
  return nvim, dir
end

local function save(nvim, file)
  nvim:lua("vim.cmd('silent edit! ' .. ...) vim.cmd('silent write')", file)
end

--- Waits until Neovim has called all that was scheduled.
local function pass(nvim)
  nvim:lua('vim.schedule(function() _G.passed = true end)')
  nvim:wait('local passed = _G.passed _G.passed = nil return passed')
end

--- Waits until the command was sent so often, and checks that it is not sent again.
local function wait_runs(nvim, count)
  nvim:wait(
    "return #vim.tbl_filter(function(one) return one.type == 'run' end, _G.sent) >= ...",
    count
  )
  pass(nvim)
  same(count, #nvim:sent('run'))
end

describe('a watched command', function()
  it('runs again after a save below its directory', function()
    local nvim, dir = watched('++watch ++timeout=9 make test')
    nvim:receive(ended(1, 1))
    wait_line(nvim, 'exit 1' .. AGAIN)
    save(nvim, 'src/app.py')
    wait_runs(nvim, 2)
    local run = nvim:sent('run')[2]
    same({ 'make test', dir, 9 }, { run.command, run.cwd, run.options.timeout })
    -- Only the newest run says that it watches.
    wait_line(nvim, 'exit 1 · 0.1 s · 1 line')
    nvim:receive(ended(2, 0))
    wait_line(nvim, 'exit 0' .. AGAIN)
    same(1, #nvim:lua("return require('co.run').all()"))
    save(nvim, '.git/COMMIT_EDITMSG')
    save(nvim, vim.fn.tempname())
    wait_runs(nvim, 2)
  end)

  it('runs once more after saves while it ran, and once for all files of :wall', function()
    local nvim = watched('++watch make')
    save(nvim, 'src/app.py')
    save(nvim, 'src/lib.py')
    wait_runs(nvim, 1)
    nvim:receive(ended(1, 0))
    wait_runs(nvim, 2)
    nvim:receive(ended(2, 0))
    wait_line(nvim, 'exit 0' .. AGAIN)
    nvim:lua([[
      vim.o.hidden = true
      vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'x = 1' })
      vim.cmd('edit src/app.py')
      vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'y = 1' })
      vim.cmd('silent wall')
    ]])
    wait_runs(nvim, 3)
    nvim:receive(ended(3, 0))
    wait_runs(nvim, 3)
  end)

  it('does not run after an edit of the model', function()
    local nvim, dir = watched('++watch make')
    nvim:receive(ended(1, 0))
    save(nvim, 'src/app.py')
    nvim:receive(ended(2, 0))
    wait_line(nvim, 'exit 0' .. AGAIN)
    nvim:receive({
      type = 'change_buffer',
      request = 1,
      file = dir .. '/src/app.py',
      tick = nvim:lua('return vim.b.changedtick'),
      replacements = { { start = 0, ['end'] = 1, lines = { 'x = 1' } } },
      final_newline = true,
    })
    nvim:wait("return vim.tbl_contains(vim.fn.readfile('src/app.py'), 'x = 1')")
    nvim:wait("return _G.sent[#_G.sent].type == 'buffer_changed'")
    wait_runs(nvim, 2)
    save(nvim, 'src/app.py')
    wait_runs(nvim, 3)
  end)

  it('runs no more after <C-c>, and a hidden shell buffer stays hidden', function()
    local nvim = watched('++watch make')
    nvim:receive(ended(1, 0))
    wait_line(nvim, 'exit 0' .. AGAIN)
    nvim:lua("require('co').shell()")
    save(nvim, 'src/app.py')
    wait_runs(nvim, 2)
    same(1, nvim:lua('return #vim.api.nvim_list_wins()'))
    nvim:receive(ended(2, 0))
    nvim:lua("require('co').shell()")
    shell_buffer.enter(nvim)
    nvim:keys('G<C-c>')
    wait_line(nvim, 'exit 0 · 0.1 s · 1 line')
    nvim:wait_notice('a save no longer runs it again')
    nvim:keys('<C-w>k')
    save(nvim, 'src/app.py')
    wait_runs(nvim, 2)
  end)

  it('is cancelled with its watch while it runs', function()
    local nvim = watched('++watch make')
    shell_buffer.enter(nvim)
    nvim:keys('<C-c>')
    nvim:wait("return _G.sent[#_G.sent].type == 'cancel_run'")
    nvim:receive(ended(1, 130))
    wait_line(nvim, 'exit 130 · 0.1 s · 1 line')
    nvim:keys('<C-w>k')
    save(nvim, 'src/app.py')
    wait_runs(nvim, 1)
  end)

  it('says in the list of runs that it watches', function()
    local nvim = watched('++watch make')
    nvim:receive(ended(1, 0))
    wait_line(nvim, 'exit 0' .. AGAIN)
    nvim:lua("vim.cmd('Co /jobs')")
    nvim:wait_line('co://jobs', 'watch: exit 0')
    nvim:keys('x')
    nvim:wait("return not table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false)):find('watch:')")
  end)

  it('has no terminal and no open input', function()
    local nvim = neovim.start()
    nvim:lua("vim.cmd('Co! ++watch ++pty top')")
    nvim:wait_notice('++watch runs without a terminal')
    same({}, nvim:sent('run'))
  end)
end)
