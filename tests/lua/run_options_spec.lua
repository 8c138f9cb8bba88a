local neovim = require('neovim')
local shell_buffer = require('shell_buffer')
local enter = shell_buffer.enter
local started = shell_buffer.started

--- Returns the options that the newest run was sent with, without the shell and the environment.
local function options_of(nvim)
  local runs = nvim:sent('run')
  local options = runs[#runs].options
  return {
    environment = options.environment,
    timeout = options.timeout,
    trial = options.trial,
  }
end

local function completed(nvim, line)
  return nvim:lua("return vim.fn.getcompletion(..., 'cmdline')", line)
end

describe('the options of a command', function()
  it('are taken off', function()
    local nvim = started('++stdin ++pty x ++stdin')
    local sent = nvim:sent('run')
    same('x ++stdin', sent[1].command)
    yes(sent[1].terminal and not sent[1].open)
    nvim:lua("vim.cmd('Co! ++env=inherit ++timeout=90 sleep 5')")
    same('sleep 5', nvim:sent('run')[2].command)
    same({ environment = 'inherit', timeout = 90 }, options_of(nvim))
    nvim:lua("vim.cmd('Co! ++timeout=0 ++env=restricted x')")
    same({ environment = 'restricted', timeout = 0 }, options_of(nvim))
    nvim:lua("vim.cmd('Co! ++try ++pty x')")
    same({ trial = true }, options_of(nvim))
    nvim:lua("vim.cmd('Co! x')")
    same({}, options_of(nvim))
  end)

  it('are refused where they are wrong, and nothing runs', function()
    local nvim = started('x')
    for line, told in pairs({
      ['++foo x'] = 'no ++foo: ++pty ++stdin ++try ++watch ++env= ++timeout=',
      ['++pty=1 x'] = '++pty takes no value',
      ['++try=1 x'] = '++try takes no value',
      ['++try ++watch x'] = '++try asks after each run: leave out ++watch',
      ['++env x'] = '++env= takes restricted or inherit, not ""',
      ['++env=all x'] = '++env= takes restricted or inherit, not "all"',
      ['++timeout=-1 x'] = '++timeout= takes seconds, 0 to 604800, not "-1"',
      ['++timeout=1m x'] = 'not "1m"',
      ['++timeout=604801 x'] = 'not "604801"',
      ['++timeout= x'] = 'not ""',
      ['++pty'] = 'a command is missing',
    }) do
      nvim:lua("_G.notices = {} vim.cmd('Co! ' .. ...)", line)
      nvim:wait('return table.concat(_G.notices):find(..., 1, true) ~= nil', told)
    end
    same(1, #nvim:sent('run'))
  end)

  it('are kept when it is repeated', function()
    local nvim = started('++env=inherit ++timeout=0 x')
    nvim:lua("vim.cmd('Co!')")
    same({ environment = 'inherit', timeout = 0 }, options_of(nvim))
    nvim:lua("vim.cmd('Co! y')")
    enter(nvim)
    nvim:keys('ggr')
    same('x', nvim:wait_sent(4, 'run').command)
    same({ environment = 'inherit', timeout = 0 }, options_of(nvim))
  end)

  it('are completed', function()
    local nvim = neovim.start()
    same({
      '++env=inherit',
      '++env=restricted',
      '++pty',
      '++stdin',
      '++timeout=',
      '++timeout=0',
      '++try',
      '++watch',
    }, completed(nvim, 'Co! ++'))
    same({ '++env=inherit', '++env=restricted' }, completed(nvim, 'Co! ++pty ++env='))
    local words = completed(nvim, 'Co! ++pty ++timeout=0 ls')
    yes(vim.tbl_contains(words, 'ls'), vim.inspect(words))
    nvim:lua("vim.cmd('Co') vim.o.completeopt = 'menuone'")
    nvim:keys('i!++<C-x><C-o>')
    nvim:wait("return vim.fn.pumvisible() == 1 and #vim.fn.complete_info({ 'items' }).items == 4")
  end)

  it('hold for a line of a chat too, but for those that need a terminal or an input', function()
    local nvim = neovim.start()
    nvim:lua("vim.cmd('Co')")
    nvim:keys('i! ++env=inherit ++timeout=0 ls -la<Esc><CR>')
    local sent = nvim:wait_sent(1, 'command')
    same({ '!', 'ls -la', 'inherit', 0 }, {
      sent.name,
      sent.args,
      sent.options.environment,
      sent.options.timeout,
    })
    nvim:keys('i!++pty ls<Esc><CR>')
    nvim:wait_notice('a chat has no terminal')
    same('!++pty ls', nvim:lua('return vim.api.nvim_get_current_line()'))
    nvim:keys('0C!++try ls<Esc><CR>')
    nvim:wait_notice('a chat does not try your commands, :Co! ++try does')
    same(1, #nvim:sent())
  end)
end)

describe('the shell and the environment of a run', function()
  it("are Neovim's of that moment", function()
    local nvim = started('x')
    nvim:lua([[
      vim.env.CO_TEST_LATE = 'a=b\nc'
      vim.o.shell = '"/bin/my shell" --login'
      vim.o.shellcmdflag = '-i -c'
      vim.cmd('Co! y')
    ]])
    local host = nvim:sent('run')[2].options.host
    same({ '/bin/my shell', '--login', '-i', '-c' }, host.shell)
    yes(vim.tbl_contains(host.variables, 'CO_TEST_LATE=a=b\nc'))
    yes(not vim.tbl_contains(nvim:sent('run')[1].options.host.variables, 'CO_TEST_LATE=a=b\nc'))
  end)
end)
