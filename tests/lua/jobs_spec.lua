local messages = require('messages')
local neovim = require('neovim')
local ended, output, patch = messages.ended, messages.output, messages.patch

local JOBS = 'co://jobs'

local function started(...)
  local nvim = neovim.start()
  for _, command in ipairs({ ... }) do
    nvim:lua('vim.cmd("Co! " .. ...)', command)
  end
  return nvim
end

local function press(nvim, keys)
  nvim:lua(
    "vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes(..., true, true, true), 'xt', false)",
    keys
  )
end

--- The list without its times.
local function listed(nvim)
  return vim.tbl_map(function(line)
    return (line:gsub('%s+%d+:%d%d', ''))
  end, nvim:lines(JOBS))
end

describe('the list of jobs', function()
  it('has every run, those that go on first', function()
    local nvim = started('make', 'true', 'cargo test')
    nvim:receive(ended(2, 0), ended(3, 101))
    nvim:lua("vim.cmd('Co /jobs')")
    same('co-jobs', nvim:lua('return vim.bo.filetype'))
    same({
      '   1  running  you      make',
      '   3  exit 101 · 0.1 s …  you      cargo test',
      '   2  exit 0 · 0.1 s · …  you      true',
    }, listed(nvim))
    nvim:receive(ended(1, 0))
    nvim:wait("return vim.fn.getline(1):find('cargo test') ~= nil")
    same(3, nvim:lua("return vim.fn.line('.')"))
  end)

  it('says so where nothing was run', function()
    local nvim = started()
    nvim:lua("vim.cmd('Co /jobs')")
    same({ 'nothing has been run yet: :Co! {command} runs one' }, nvim:lines(JOBS))
    press(nvim, 'x')
    nvim:wait_notice('no run here')
    same({}, nvim:sent())
  end)

  it('cancels, and takes what has ended off', function()
    local nvim = started('one', 'two')
    nvim:lua("vim.cmd('Co /jobs')")
    press(nvim, 'x')
    same(2, nvim:sent('cancel_run')[1].run)
    press(nvim, 'd')
    nvim:wait_notice('cancel it first')
    nvim:receive(ended(2, 0))
    nvim:wait("return vim.fn.getline(2):find('two') ~= nil")
    press(nvim, 'Gd')
    same(1, #nvim:lines(JOBS))
    press(nvim, '<C-c>')
    same(1, nvim:sent('cancel_run')[2].run)
  end)

  it('goes to the output, and follows its end without going there', function()
    local nvim = started('one', 'two')
    nvim:receive(output(1, patch(0, { 'a', 'b' })), output(2, patch(0, { 'x' })))
    nvim:lua("vim.cmd('Co /jobs')")
    press(nvim, 'jt')
    same('co-jobs', nvim:lua('return vim.bo.filetype'))
    local line = "local win = vim.fn.win_findbuf(vim.fn.bufnr('^co://shell$'))[1]"
      .. ' return vim.api.nvim_win_get_cursor(win)[1]'
    same(4, nvim:lua(line))
    nvim:receive(output(1, patch(2, { 'c', 'd' })))
    nvim:wait('return (function() ' .. line .. ' end)() == 6')
    press(nvim, '<CR>')
    same('co-shell', nvim:lua('return vim.bo.filetype'))
    same('$ one', nvim:lua('return vim.api.nvim_get_current_line()'))
  end)

  it('writes to an open input and closes it', function()
    local nvim = started('++stdin cat', 'sleep 9')
    same({ 'cat', true }, { nvim:sent('run')[1].command, nvim:sent('run')[1].open })
    yes(nvim:sent('run')[2].open == nil)
    nvim:lua([[
      vim.ui.input = function(opts, done) _G.prompt = opts.prompt done('hello') end
      vim.cmd('Co /jobs')
    ]])
    press(nvim, 'i')
    nvim:wait_notice('has no input')
    same({}, nvim:sent('run_input'))
    press(nvim, 'jiI')
    local sent = nvim:sent('run_input')
    same({ 1, 'hello\n' }, { sent[1].run, sent[1].data })
    same({ 1, true }, { sent[2].run, sent[2].close })
    same('stdin of run 1: ', nvim:lua('return _G.prompt'))
  end)

  it('lives through :bd, :only and a wiped shell buffer', function()
    local nvim = started('one')
    nvim:lua("vim.cmd('Co /jobs | bd!') vim.cmd('Co /jobs') vim.cmd('only')")
    press(nvim, 'q')
    nvim:lua("vim.cmd('bwipeout! ' .. vim.fn.bufnr('^co://shell$'))")
    nvim:lua("vim.cmd('Co /jobs')")
    press(nvim, '<CR>')
    nvim:wait("return vim.bo.filetype == 'co-shell'")
    nvim:receive(output(1, patch(0, { 'a' })), ended(1, 0))
    nvim:wait("return vim.fn.getline(2) == 'a'")
    nvim:lua("vim.cmd('bwipeout!') vim.cmd('Co /jobs')")
    nvim:wait("return vim.fn.getline(1):find('exit 0') ~= nil")
    press(nvim, '<CR>')
    nvim:wait_notice('no longer shown')
  end)

  it('lists its keys', function()
    local nvim = started('one')
    nvim:lua("vim.cmd('Co /jobs')")
    press(nvim, 'g?')
    local text = nvim:lua([[
      for _, win in ipairs(vim.api.nvim_list_wins()) do
        if vim.api.nvim_win_get_config(win).relative ~= '' then
          local buf = vim.api.nvim_win_get_buf(win)
          return table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), '\n')
        end
      end
    ]])
    for _, about in ipairs({
      'write a line to its standard input',
      'keep a job running after its chat closes; again: undo that',
      'remove a finished one from the list',
    }) do
      yes(text:find(about, 1, true), text)
    end
  end)
end)

describe("a model's job", function()
  local RUN = 12345678901

  local function working()
    local nvim = started('make')
    nvim:receive(messages.job(RUN, 2, 'npm run dev'), output(RUN, patch(0, { 'a.c:3:5: error' })))
    return nvim
  end

  it('stands in the list with who started it, and opens no window', function()
    local nvim = neovim.start()
    nvim:receive(messages.job(RUN, 2, 'npm run dev'))
    same(1, nvim:lua('return #vim.api.nvim_list_wins()'))
    nvim:lua("vim.cmd('Co! make') vim.cmd('Co /jobs')")
    same({
      '   1  running  you      make',
      '  j2  running  chat 1   npm run dev',
    }, listed(nvim))
    nvim:lua("vim.cmd('Co! true')")
    same(2, nvim:sent('run')[2].run)
  end)

  it('is gone to, written to, cancelled and kept by keys', function()
    local nvim = working()
    nvim:lua([[
      vim.ui.input = function(opts, done) _G.prompt = opts.prompt done('hello') end
      vim.cmd('Co /jobs')
    ]])
    press(nvim, 'iIK')
    same('stdin of job 2 of chat 1: ', nvim:lua('return _G.prompt'))
    local sent = nvim:sent('run_input')
    same({ RUN, 'hello\n', true }, { sent[1].run, sent[1].data, sent[2].close })
    same({ RUN, true }, { nvim:sent('keep_run')[1].run, nvim:sent('keep_run')[1].keep })
    same('  j2  running, kept  chat 1   npm run dev', listed(nvim)[1])
    press(nvim, 'K<C-q>')
    same(false, nvim:sent('keep_run')[2].keep)
    same(3, nvim:lua('return vim.fn.getqflist()[1].lnum'))
    nvim:lua("vim.cmd('cclose') vim.cmd('Co /jobs')")
    press(nvim, 'xd')
    same(RUN, nvim:sent('cancel_run')[1].run)
    -- The screen shows one of several notices.
    local log = "table.concat(require('co.ui.log').lines(), '\\n')"
    nvim:wait(('return %s:find("job 2 of chat 1 has not ended", 1, true) ~= nil'):format(log))
    press(nvim, '<CR>')
    same('$ npm run dev', nvim:lua('return vim.api.nvim_get_current_line()'))
  end)

  it('tells its end', function()
    local nvim = working()
    nvim:keep_event('CoJobDone')
    nvim:receive(ended(RUN, 1))
    nvim:wait_notice('job 2 of chat 1: exit 1')
    same({ 1, 2, 1 }, nvim:lua('return { _G.done.chat, _G.done.job, _G.done.exit }'))
    nvim:lua("vim.cmd('Co /jobs')")
    press(nvim, 'K')
    nvim:wait_notice('run 1 is yours')
    press(nvim, 'GKd')
    nvim:wait_notice('job 2 of chat 1 has ended')
    same({ '   1  running  you      make' }, listed(nvim))
    same({}, nvim:sent('keep_run'))
  end)
end)

describe('a run in the background', function()
  it('says so in its block, goes on, and tells its end', function()
    local nvim = started('one', 'two')
    nvim:keep_event('CoJobDone')
    nvim:lua("vim.api.nvim_set_current_win(vim.fn.win_findbuf(vim.fn.bufnr('^co://shell$'))[1])")
    press(nvim, 'gg<C-z>')
    same('… running in the background, :Co /jobs lists it', nvim:lines('co://shell')[2])
    nvim:receive(output(1, patch(0, { 'a' })), ended(2, 0), ended(1, 3))
    nvim:wait_notice('run 1: exit 3')
    yes(not nvim:lua("return table.concat(_G.notices):find('run 2') ~= nil"))
    same({ '$ one', 'a' }, vim.list_slice(nvim:lines('co://shell'), 1, 2))
    same({ 1, 3 }, nvim:lua('return { _G.done.run, _G.done.exit }'))
    press(nvim, 'gg<C-z>')
    nvim:wait_notice('this run has ended')
  end)
end)

describe('a run in a terminal', function()
  local function terminal(command)
    local nvim = neovim.start({ screen = true })
    nvim:lua('vim.cmd("Co! ++pty " .. ...)', command)
    return nvim
  end

  it('has a terminal buffer of its own, whose size it is told', function()
    local nvim = terminal('htop')
    same('terminal', nvim:lua('return vim.bo.buftype'))
    same(
      1,
      nvim:lua([[return #vim.tbl_filter(function(buf)
      return vim.api.nvim_buf_get_name(buf):find('co://term/1', 1, true) ~= nil
    end, vim.api.nvim_list_bufs())]])
    )
    same(-1, nvim:lua("return vim.fn.bufnr('^co://shell$')"))
    local size = nvim:sent('run')[1].terminal
    same(100, size.columns)
    same(nvim:lua('return vim.api.nvim_win_get_height(0)'), size.rows)
    nvim:lua("vim.cmd('vsplit')")
    nvim:wait([[return vim.iter(_G.sent):any(function(message)
      return message.type == 'run_resize'
    end) or vim.cmd.redraw()]])
    yes(nvim:sent('run_resize')[1].size.columns < 60)
  end)

  it('shows what it prints and sends what is typed', function()
    local nvim = terminal('cat')
    nvim:receive({ type = 'run_data', run = 1, data = 'one\r\n\27[31mtwo\27[m' })
    nvim:wait_screen('two')
    nvim:wait_mode('t')
    nvim:keys('x<C-c>漢')
    nvim:wait([[return (function()
      local typed = ''
      for _, message in ipairs(_G.sent) do
        typed = typed .. (message.type == 'run_input' and message.data or '')
      end
      return typed == 'x\3漢'
    end)()]])
    nvim:receive(ended(1, 0))
    nvim:wait_screen('[exit 0 · 0.1 s · 1 line]')
    nvim:keys('x')
    nvim:wait_mode('nt')
  end)

  it('is shown again from the list, and hangs up where its buffer is wiped', function()
    local nvim = terminal('htop')
    nvim:lua("vim.cmd('close') vim.cmd('Co /jobs')")
    nvim:keys('<CR>')
    nvim:wait("return vim.bo.buftype == 'terminal'")
    same({}, nvim:sent('cancel_run'))
    nvim:lua("vim.cmd('bwipeout!')")
    same(1, nvim:sent('cancel_run')[1].run)
    nvim:receive({ type = 'run_data', run = 1, data = 'late' }, ended(1, 1))
    nvim:lua("vim.cmd('Co /jobs')")
    nvim:wait("return vim.fn.getline(1):find('exit 1') ~= nil")
  end)

  it('takes the window of one that has ended', function()
    local nvim = terminal('htop')
    local windows = 'return #vim.api.nvim_tabpage_list_wins(0)'
    same(2, nvim:lua(windows))
    nvim:receive(ended(1, 0))
    nvim:wait_screen('[exit 0')
    nvim:keys('<C-\\><C-n>:Co! ++pty top<CR>')
    nvim:wait("return vim.api.nvim_buf_get_name(0):find('co://term/2', 1, true) ~= nil")
    nvim:wait_mode('t')
    same(2, nvim:lua(windows))
    nvim:keys('<C-\\><C-n>:Co! ++pty cat<CR>')
    nvim:wait("return vim.api.nvim_buf_get_name(0):find('co://term/3', 1, true) ~= nil")
    same(3, nvim:lua(windows), 'top goes on')
  end)

  it('is run again as it was', function()
    local nvim = terminal('htop')
    nvim:lua("vim.cmd('Co!')")
    same({ 'htop', 100 }, {
      nvim:sent('run')[2].command,
      nvim:sent('run')[2].terminal.columns,
    })
  end)
end)
