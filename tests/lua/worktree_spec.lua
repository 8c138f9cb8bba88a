-- /worktree: a worktree of git and a chat in it.
local messages = require('messages')
local neovim = require('neovim')

--- Starts a Neovim in a repository. The answers to lists are the given one.
---@param answer string
---@return co.test.Neovim, string
local function start(answer)
  local dir = vim.fn.resolve(neovim.dir()) .. '/proj'
  vim.fn.mkdir(dir .. '/.git', 'p')
  vim.fn.mkdir(dir .. '/src', 'p')
  local nvim = neovim.start({ screen = true, cwd = dir })
  nvim:lua(
    [[
      local dir, answer = ...
      vim.fn.chdir(dir .. '/src')
      _G.prompts = {}
      vim.ui.select = function(items, opts, done)
        table.insert(_G.prompts, opts.prompt)
        done(answer)
      end
    ]],
    dir,
    answer
  )
  return nvim, dir
end

describe('/worktree', function()
  it('runs git after one question, and opens a chat there', function()
    local nvim, dir = start('yes')
    nvim:lua("vim.cmd('Co /worktree fix-login')")
    nvim:wait('return #_G.sent > 0')
    local run = nvim:sent('run')[1]
    same(("git worktree add -b fix-login '%s-fix-login'"):format(dir), run.command)
    same(dir .. '/src', run.cwd)
    same(1, nvim:lua('return #_G.prompts'))
    same(0, nvim:lua("return vim.fn.bufexists('co://chat/1')"))
    vim.fn.mkdir(dir .. '-fix-login')
    nvim:receive(messages.ended(run.run, 0))
    nvim:wait("return vim.fn.bufexists('co://chat/1') == 1")
    -- Neovim itself stays in its directory.
    nvim:lua("vim.cmd('Co go on')")
    nvim:wait('return #_G.sent > 1')
    same(dir .. '-fix-login', nvim:sent('prompt')[1].cwd)
  end)

  it('opens no chat if git fails or the person says no', function()
    local nvim = start('yes')
    nvim:lua("vim.cmd('Co /worktree a')")
    nvim:wait('return #_G.sent > 0')
    nvim:receive(messages.ended(nvim:sent('run')[1].run, 128))
    nvim:settle()
    same(0, nvim:lua("return vim.fn.bufexists('co://chat/1')"))
    nvim = start('no')
    nvim:lua("vim.cmd('Co /worktree a')")
    nvim:settle()
    same({}, nvim:sent('run'))
  end)

  it('needs a name, a repository and a new directory', function()
    local nvim, dir = start('yes')
    for args, problem in pairs({
      [''] = 'takes a name',
      ['a b'] = 'takes a name',
      ['--force'] = 'takes a name',
      ['../x'] = 'takes a name',
    }) do
      nvim:lua('_G.notices = {} vim.cmd(...)', 'Co /worktree ' .. args)
      nvim:wait_notice(problem)
    end
    vim.fn.mkdir(dir .. '-old')
    nvim:lua("vim.cmd('Co /worktree old')")
    nvim:wait_notice('is there already')
    nvim:lua("vim.fn.chdir('/') vim.cmd('Co /worktree new')")
    nvim:wait_notice('needs a repository of git')
  end)

  it('says that the working directory is gone', function()
    local nvim = start('yes')
    local gone = neovim.dir()
    nvim:lua("vim.fn.chdir(...) vim.fn.delete(..., 'd')", gone)
    nvim:lua("vim.cmd('Co /worktree new')")
    nvim:wait_notice('does not exist any more: choose another with :cd')
    same({}, nvim:sent('run'))
    same({}, nvim:lua('return _G.prompts'))
  end)
end)
