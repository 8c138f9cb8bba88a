-- The trials of the person's own commands (`:Co! ++try`).
local messages = require('messages')
local neovim = require('neovim')
local questions = require('questions')
local shell_buffer = require('shell_buffer')
local ended = messages.ended
local reach, wait_answers = questions.reach, questions.wait_answers
local wait_line = shell_buffer.wait_line

local SHELL = 'co://shell'
local WAITS = 'exit 0; tried: it would change 1 file; nothing has changed yet'

--- The question about the trial of a run.
local function ask(id, run, fields)
  local question = messages.ask(
    id,
    vim.tbl_extend('force', {
      run = run,
      reasons = {},
      tried = { status = 'exit 0', output = {}, notes = { 'nothing has changed yet' } },
      change = messages.change({ removed = 0, excerpt = '#── a  +1 -0\n+2\n' }),
    }, fields or {})
  )
  question.chat = nil
  return question
end

--- An editor whose trial has ended and waits for an answer.
local function tried(command, fields)
  local nvim = neovim.start({ screen = true })
  nvim:lua(
    [[vim.keymap.set('n', '<F5>', '<Plug>(co-approve)') _G.home = vim.api.nvim_get_current_win()]]
  )
  nvim:lua('vim.cmd("Co! ++try " .. ...)', command)
  nvim:receive(vim.tbl_extend('force', ended(1, 0), { left = true, status = WAITS }))
  nvim:receive(ask(7, 1, vim.tbl_extend('force', { command = command }, fields or {})))
  nvim:wait_screen('co 1/1')
  return nvim
end

describe('a trial of the person', function()
  it('is named in its block, and its question takes no focus', function()
    local nvim = tried('make')
    same({ '$ ++try make', WAITS }, nvim:lines(SHELL))
    yes(nvim:sent('run')[1].options.trial)
    nvim:wait_screen('run 1', 'nothing has changed yet', 'yes keeps the changes', 'diff +1 -0')
    yes(nvim:lua(questions.HOME))
    reach(nvim, 'g?')
    nvim:wait_screen('yes: keep all changes', 'no: drop what the trial changed')
    -- Nothing else can be answered.
    nvim:press('g?')
    nvim:wait_screen('y n r d g?')
    nvim:keys('aNteT')
    nvim:press('y')
    wait_answers(nvim, { { 7, 'once' } })
    nvim:receive({ type = 'left_ended', run = 1, status = 'exit 0; tried: kept: 1 file' })
    wait_line(nvim, 'exit 0; tried: kept: 1 file')
    same(1, #nvim:sent('run'))
  end)

  it('runs for real if the backend says so, as a new run', function()
    local nvim = tried('make', {
      tried = { status = 'exit 0', output = {}, notes = {}, git = 'a commit', runs_again = true },
    })
    nvim:wait_screen('yes runs it for real', 'git  a commit')
    reach(nvim, 'y')
    wait_answers(nvim, { { 7, 'once' } })
    same(1, #nvim:sent('run'))
    nvim:receive({ type = 'left_ended', run = 1, status = 'for real', again = true })
    local again = nvim:wait_sent(2, 'run')
    same({ 'make', nil }, { again.command, again.options.trial })
    wait_line(nvim, '$ make')
    -- The last run is repeated as it was.
    nvim:lua("vim.cmd('Co!')")
    same(nil, nvim:sent('run')[3].options.trial)
  end)

  it('is repeated as a trial', function()
    local nvim = tried('make')
    nvim:lua("vim.cmd('Co!')")
    yes(nvim:sent('run')[2].options.trial)
    shell_buffer.enter(nvim)
    nvim:keys('ggr')
    yes(nvim:wait_sent(3, 'run').options.trial)
  end)

  it('is stopped by <C-c> while its question waits, and listed as one that asks', function()
    local nvim = tried('make')
    nvim:lua("vim.cmd('Co /jobs')")
    same('asks: exit 0; tri…', vim.fn.strcharpart(nvim:lines('co://jobs')[1], 6, 18))
    nvim:lua('vim.cmd.quit()')
    shell_buffer.enter(nvim)
    nvim:keys('<C-c>')
    same({ type = 'cancel_run', run = 1 }, nvim:wait_sent(1, 'cancel_run'))
  end)

  it('is over if the backend ends', function()
    local nvim = tried('make')
    nvim:lua("require('co.backend').handle_exit('gone')")
    nvim:wait("return #require('co.question').pending() == 0")
    nvim:wait(
      "return vim.fn.getbufline('co://shell', 1, '$')[2]:find('its changes are dropped', 1, true) ~= nil"
    )
  end)

  it('keeps the reviews of two runs apart', function()
    local function file(path)
      return messages.file(path, '@\n+1\n')
    end
    local nvim = tried('make', { change = messages.change({ files = { file('a') } }) })
    nvim:receive(ask(8, 2, { change = messages.change({ files = { file('b') } }) }))
    nvim:wait_screen('co 1/2')
    reach(nvim, 'd')
    nvim:wait_screen('file 1 of 2')
    nvim:press('A')
    wait_answers(nvim, { { 7, 'reviewed' } })
    same(1, nvim:lua("return #require('co.question').pending()"))
  end)
end)
