local neovim = require('neovim')

--- A Neovim whose backend is the stand-in.
---@param behaviour string
local function with(behaviour)
  local nvim = neovim.start({ bare = true })
  local log = vim.fn.tempname()
  local bin = vim.fn.tempname()
  vim.fn.writefile({
    '#!/bin/sh',
    ("CO_TEST_LOG='%s' exec '%s' --headless --clean -l '%s/tests/lua/stand_in.lua' %s"):format(
      log,
      vim.v.progpath,
      co_root,
      behaviour
    ),
  }, bin)
  vim.fn.setfperm(bin, 'rwx------')
  nvim:lua(
    [[
      vim.cmd('runtime plugin/co.lua')
      vim.g.co = { bin = ..., shell_max_timeout = 60 }
      vim.o.columns = 200
      _G.notices = {}
      vim.notify = function(message) table.insert(_G.notices, message) end
    ]],
    bin
  )
  local function received()
    local lines = vim.uv.fs_stat(log) and vim.fn.readfile(log) or {}
    return vim.tbl_map(vim.json.decode, lines)
  end
  return nvim, received
end

local STATUS = "return require('co.backend').status()"

describe('the backend', function()
  it('is not started and nothing is loaded until it is used', function()
    local nvim = neovim.start({ bare = true })
    nvim:lua("vim.cmd('runtime plugin/co.lua')")
    local loaded = nvim:lua([[
      return vim.tbl_filter(function(name) return name:match('^co%f[%W]') end, vim.tbl_keys(package.loaded))
    ]])
    same({}, loaded)
    nvim:lua("require('co').setup({ layout = 'tab' })")
    same(false, nvim:lua(STATUS).running)
    same('', nvim:lua("return require('co').statusline()"))
  end)

  it('is greeted first, and what was sent meanwhile follows in order', function()
    local nvim, received = with('ready')
    nvim:lua("vim.cmd('Co! echo one') vim.cmd('Co! echo two')")
    nvim:wait("return vim.fn.getbufline(vim.fn.bufnr('^co://shell$'), 1, '$')[6] == 'ran echo two'")
    local got = received()
    same({ 'hello', 'run', 'run' }, neovim.pluck(got, 'type'))
    same(require('co.version').protocol, got[1].protocol)
    same({ shell_max_timeout = 60 }, got[1].settings, 'the keys Lua reads are not passed')
    same('echo one', got[2].command)
    yes(nvim:lua(STATUS).ready)
  end)

  it('starts as soon as the person types a prompt', function()
    local nvim, received = with('ready')
    nvim:lua("vim.cmd('Co')")
    same(false, nvim:lua(STATUS).running, 'the person may only look')
    nvim:keys('i')
    nvim:wait("return require('co.backend').status().ready")
    same({ 'hello' }, neovim.pluck(received(), 'type'))
    yes(received()[1].begins_chat)
    nvim:keys('go<Esc><CR>')
    neovim.wait('the prompt', function()
      return #received() == 2
    end)
    same({ 'hello', 'prompt' }, neovim.pluck(received(), 'type'))
  end)

  it('is told whether the person begins a chat', function()
    for command, begins_chat in pairs({ ['Co fix'] = true, ['Co! true'] = false }) do
      local nvim, received = with('ready')
      nvim:lua("vim.cmd('Co /help')")
      same(false, nvim:lua(STATUS).running)
      nvim:lua(('vim.cmd(%q)'):format(command))
      neovim.wait('two messages', function()
        return #received() == 2
      end)
      same(begins_chat, received()[1].begins_chat)
    end
  end)

  it('does not start again before a message if it has ended', function()
    local nvim, received = with('ready')
    nvim:lua("vim.cmd('Co')")
    nvim:keys('i')
    nvim:wait("return require('co.backend').status().ready")
    nvim:lua(
      "vim.fn.jobstop(vim.tbl_filter(function(it) return it.stream == 'job' end, vim.api.nvim_list_chans())[1].id)"
    )
    nvim:wait("return not require('co.backend').status().running")
    nvim:keys('<Esc>igo<Esc>')
    same(false, nvim:lua(STATUS).running)
    nvim:keys('<CR>')
    neovim.wait('the prompt', function()
      return #received() == 3
    end)
    same({ 'hello', 'hello', 'prompt' }, neovim.pluck(received(), 'type'))
  end)

  it('says only at the first prompt why it cannot start', function()
    local nvim = with('ready')
    nvim:lua("vim.g.co = { bin = '/nowhere/co-nvim' } vim.cmd('Co')")
    nvim:keys('igo<Esc>')
    same({}, nvim:lua('return _G.notices'))
    nvim:keys('<CR>')
    nvim:wait('return #_G.notices > 0')
    local notices = nvim:lua('return _G.notices')
    same(1, #notices, vim.inspect(notices))
    yes(notices[1]:find('/nowhere/co-nvim', 1, true), notices[1])
  end)

  it('is sent settings that change, before what comes next', function()
    local nvim, received = with('ready')
    nvim:lua("vim.cmd('Co! a')")
    nvim:wait("return require('co.backend').status().ready")
    nvim:lua("vim.g.co = vim.tbl_extend('force', vim.g.co, { model = 'm' }) vim.cmd('Co! b')")
    nvim:lua("require('co').setup({ layout = 'tab' }) vim.cmd('Co! c')")
    nvim:lua("require('co').setup({ redact = false })")
    neovim.wait('six messages', function()
      return #received() == 6
    end)
    local got = received()
    same({ 'hello', 'run', 'settings', 'run', 'run', 'settings' }, neovim.pluck(got, 'type'))
    same({ shell_max_timeout = 60, model = 'm' }, got[3].settings)
    same({ shell_max_timeout = 60, model = 'm', redact = false }, got[6].settings)
  end)

  it('is sent settings again that did not reach it', function()
    local nvim, received = with('ready')
    nvim:lua("vim.cmd('Co! a')")
    nvim:wait("return require('co.backend').status().ready")
    nvim:lua([[
      local notify = vim.rpcnotify
      vim.rpcnotify = function()
        error('full')
      end
      require('co').setup({ model = 'm' })
      vim.rpcnotify = notify
      require('co').setup({ model = 'm' })
    ]])
    neovim.wait('three messages', function()
      return #received() == 3
    end)
    same({ shell_max_timeout = 60, model = 'm' }, received()[3].settings)
  end)

  it('is sent what it can be of settings that hold a function', function()
    local nvim, received = with('ready')
    nvim:lua([[
      local co = vim.g.co
      co.headers = { a = function() end }
      vim.g.co = co
      vim.cmd('Co! a')
    ]])
    nvim:wait("return require('co.backend').status().ready")
    nvim:lua([[
      local co = vim.g.co
      co.model = 'm'
      vim.g.co = co
      vim.cmd('Co! b')
    ]])
    neovim.wait('four messages', function()
      return #received() == 4
    end)
    same({ shell_max_timeout = 60, model = 'm', headers = { vim.NIL } }, received()[3].settings)
    same(1, #nvim:lua('return _G.notices'))
  end)

  it('is not sent what Neovim cannot pack, and Neovim goes on', function()
    local nvim, received = with('ready')
    nvim:lua("require('co').setup({ extra_body = { a = 2 ^ 53 } }) vim.cmd('Co! first')")
    neovim.wait('the run', function()
      return #received() == 2
    end)
    for value, told in pairs({
      ['0 / 0'] = 'the number ',
      ['math.huge'] = 'the number inf',
      ['print'] = 'a function',
      ['{ 1, a = 2 }'] = 'a table that is neither a list nor has only names',
      ['_G'] = 'a table with more than 100 levels',
      ['{ [vim.type_idx] = vim.types.float, [vim.val_idx] = 0 / 0 }'] = 'a table that is neither',
    }) do
      nvim:lua(([[
        _G.notices = {}
        _G.loop = {}
        _G.loop.loop = _G.loop
        _G.taken = require('co.backend').send({ type = 'prompt', context = { %s } })
      ]]):format(value == '_G' and 'loop' or value))
      same(false, nvim:lua('return _G.taken'), value)
      nvim:wait('return #_G.notices > 0')
      local notice = nvim:lua('return _G.notices[1]')
      yes(notice:find('the message "prompt" has ' .. told, 1, true), notice)
    end
    nvim:lua("vim.cmd('Co! last')")
    neovim.wait('the last run', function()
      return #received() == 3
    end)
    same({ 'run', 'last' }, { received()[3].type, received()[3].command })
  end)

  it('with another path is told to need a restart', function()
    local nvim = with('ready')
    nvim:lua("vim.cmd('Co! a')")
    nvim:wait("return require('co.backend').status().ready")
    local pid = nvim:lua(STATUS).pid
    nvim:lua("require('co').setup({ bin = '/nonexistent/co-nvim' })")
    nvim:wait('return #_G.notices == 1')
    same('co: bin needs a new backend (:Co /restart)', nvim:lua('return _G.notices[1]'))
    same(pid, nvim:lua(STATUS).pid)
  end)

  it('is one process for every prompt and run', function()
    local nvim = with('ready')
    nvim:lua("vim.cmd('Co! a')")
    nvim:wait("return require('co.backend').status().ready")
    local pid = nvim:lua(STATUS).pid
    nvim:lua("vim.cmd('Co hello') vim.cmd('Co! b')")
    same(pid, nvim:lua(STATUS).pid)
  end)

  it('with another protocol is stopped, and the fix is told', function()
    local nvim, received = with('mismatch')
    nvim:lua("vim.cmd('Co! echo one')")
    nvim:wait_notice('update the plugin')
    nvim:wait("return not require('co.backend').status().running")
    same({ 'hello' }, neovim.pluck(received(), 'type'))
    nvim:wait(
      "return vim.fn.getbufline(vim.fn.bufnr('^co://shell$'), 2)[1]:find('speaks protocol 99') ~= nil"
    )
    same(1, #nvim:lua('return _G.notices'))
  end)

  it('is not started by a restart when Neovim ends', function()
    local nvim, received = with('ready')
    nvim:lua("vim.cmd('Co! a')")
    nvim:wait("return require('co.backend').status().ready")
    nvim:lua([[
      vim.api.nvim_create_autocmd('VimLeavePre', { callback = function()
        require('co.backend').restart(function() end)
        vim.wait(1000, function() return not require('co.backend').status().running end, 10)
        vim.wait(300, function() return require('co.backend').status().ready end, 10)
      end })
      vim.schedule(function() vim.cmd('qa!') end)
    ]])
    nvim:wait_exit()
    local greetings = vim.tbl_filter(function(message)
      return message.type == 'hello'
    end, received())
    same(1, #greetings)
  end)

  it('that refuses is told once', function()
    local nvim = with('refuse')
    nvim:lua("vim.cmd('Co! echo one')")
    nvim:wait("return not require('co.backend').status().running")
    nvim:wait('return #_G.notices == 1')
    same('co: the plugin is too old: update it', nvim:lua('return _G.notices[1]'))
  end)

  it('that is about to end takes nothing, and says so', function()
    local nvim = with('ready')
    nvim:lua("vim.cmd('Co! echo one')")
    nvim:wait("return require('co.backend').status().ready")
    nvim:lua("require('co.backend').stop() vim.cmd('Co! echo two')")
    nvim:wait_notice('is ending: try again in a moment')
    nvim:wait("return not require('co.backend').status().running")
    same(0, nvim:lua("return require('co.run').running()"))
  end)

  it('that dies is told once, closes its runs, and is started again by the next :Co', function()
    local nvim, received = with('die')
    nvim:keep_event('CoJobDone')
    nvim:lua("vim.cmd('Co! echo one')")
    nvim:wait_notice('exit 3')
    nvim:wait('return _G.done ~= nil')
    same('echo one', nvim:lua('return _G.done.exit == nil and _G.done.command'))
    nvim:wait(
      "return vim.fn.getbufline(vim.fn.bufnr('^co://shell$'), 2)[1]:find('the backend ended') ~= nil"
    )
    same(1, #nvim:lua('return _G.notices'))
    nvim:lua("vim.cmd('Co! echo two')")
    neovim.wait('a second greeting', function()
      return #vim.tbl_filter(function(message)
        return message.type == 'hello'
      end, received()) == 2
    end)
  end)

  it('that prints to stderr has its lines in the log', function()
    local nvim = with('noise')
    nvim:lua("vim.cmd('Co! echo one')")
    nvim:wait("return table.concat(require('co.ui.log').lines()):find('a line for the log') ~= nil")
    nvim:lua("vim.cmd('Co /log')")
    nvim:wait(
      "return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false)):find('a line for the log') ~= nil"
    )
  end)

  it('that is nowhere is one sentence with what to do', function()
    local nvim = with('ready')
    nvim:lua("vim.g.co = { bin = '/nonexistent/co-nvim' }")
    nvim:lua("vim.cmd('Co! echo one')")
    nvim:wait('return #_G.notices == 1')
    same(
      'co: the setting "bin" names /nonexistent/co-nvim, which cannot be executed',
      nvim:lua('return _G.notices[1]')
    )
  end)

  it('is looked for in the data directory, beside the plugin and on PATH', function()
    local nvim = neovim.start({ bare = true })
    local candidates = nvim:lua("return require('co.backend.executable').candidates()")
    same(nvim:lua("return vim.fn.stdpath('data')") .. '/co/bin/co-nvim-0.1.0', candidates[1])
    same(vim.fs.normalize(co_root) .. '/target/release/co-nvim', vim.fs.normalize(candidates[2]))
  end)

  it('keeps the prompt where it cannot be started', function()
    local nvim = with('ready')
    nvim:lua("vim.g.co = { bin = '/nonexistent/co-nvim' } vim.cmd('Co')")
    nvim:keys('ihello<C-s>')
    nvim:wait('return #_G.notices == 1')
    same({ 'hello' }, nvim:lines('co://chat/1/prompt'))
  end)

  it('gives a prompt and a command back that came before it could not start', function()
    local nvim = with('mismatch')
    nvim:lua("vim.cmd('Co')")
    nvim:keys('i!make all<C-s>hello<C-s>')
    nvim:wait("return not require('co.backend').status().running and #_G.notices > 0")
    same({ '!make all', 'hello' }, nvim:lines('co://chat/1/prompt'))
  end)

  it('gives back what waited in its queue when it ends', function()
    local nvim = with('queue')
    nvim:lua("vim.cmd('Co')")
    nvim:keys('ifirst<C-s>second<C-s>third<C-s>')
    nvim:wait("return require('co.chat.registry').current().state.queued == 2")
    nvim:lua("vim.cmd('Co! die')")
    nvim:wait("return not require('co.backend').status().running and #_G.notices > 0")
    same({ 'second', 'third' }, nvim:lines('co://chat/1/prompt'))
  end)

  it('that ends in a turn ends the turn for those who listen', function()
    local nvim = with('queue')
    nvim:keep_event('CoTurnDone')
    nvim:lua("vim.cmd('Co hello')")
    nvim:wait("return require('co.chat.registry').current().state.state == 'thinking'")
    nvim:lua("vim.cmd('Co! die')")
    nvim:wait('return _G.done ~= nil')
    same({ chat = 1, reason = 'interrupted' }, nvim:lua('return _G.done'))
  end)

  it('is replaced by who hears of its end, and what they run is not ended with it', function()
    local nvim = with('queue')
    nvim:lua([[
      _G.done = {}
      vim.api.nvim_create_autocmd('User', { pattern = 'CoTurnDone', once = true, callback = function()
        vim.g.co = { bin = '/nonexistent' }
        require('co.backend').start = function() return true end
        require('co.backend').send = function() return true end
        _G.again = require('co.run').run('again', vim.fn.getcwd())
      end })
      vim.api.nvim_create_autocmd('User', { pattern = 'CoJobDone', callback = function(event)
        table.insert(_G.done, event.data.command)
      end })
      vim.cmd('Co hello')
    ]])
    nvim:wait("return require('co.chat.registry').current().state.state == 'thinking'")
    nvim:lua("vim.cmd('Co! die')")
    nvim:wait('return _G.again ~= nil and #_G.done > 0')
    same({ 'die' }, nvim:lua('return _G.done'))
    same(1, nvim:lua("return require('co.run').running()"))
  end)

  it('leaves no request that waits for it', function()
    local nvim = neovim.start()
    nvim:lua([[
      _G.answers = {}
      local requests = require('co.backend.requests')
      local sent
      local function send(message)
        sent = message
        return true
      end
      requests.send({ type = 'a' }, send, function(answer)
        table.insert(_G.answers, { 'a', answer and answer.text or 'none' })
      end)
      requests.receive({ request = sent.request, text = 'an answer' })
      requests.send({ type = 'b' }, send, function(answer)
        table.insert(_G.answers, { 'b', answer and answer.text or 'none' })
      end)
      requests.when_settled(7, function(approved)
        table.insert(_G.answers, { 'question', approved })
      end)
      require('co.backend').handle_exit('gone')
      requests.receive({ request = sent.request, text = 'late' })
      requests.settle({ id = 7, decision = 'approved' })
    ]])
    local answers = nvim:lua('return _G.answers') --[[@as any[] ]]
    same({ 'a', 'an answer' }, table.remove(answers, 1))
    table.sort(answers, function(one, other)
      return one[1] < other[1]
    end)
    same({ { 'b', 'none' }, { 'question', false } }, answers)
  end)
end)
