--- The keys of the shell buffer.
local M = {}

local api = vim.api
local buffer = require('co.ui.buffer')
local config = require('co.config')
local errors = require('co.run.errors')
local key_help = require('co.ui.key_help')
local locations = require('co.ui.locations')
local notify = require('co.ui.notify')
local shell_buffer = require('co.run.shell_buffer')
local windows = require('co.ui.windows')

--- Returns the run under the cursor; nil, after a notice, if there is none.
---@return co.Run?
local function run_at_cursor()
  local run = shell_buffer.run_at()
  if not run then
    notify.info('no run here: :Co! {command} runs one')
  end
  return run
end

--- Returns a function that calls `act` with the run under the cursor if it has not ended.
---@param act fun(run: co.Run)
---@return fun()
local function on_running(act)
  return function()
    local run = run_at_cursor()
    if run and run.running then
      act(run)
    elseif run then
      notify.info('this run has ended')
    end
  end
end

---@class co.shell_keys.Runs the actions of the module `co.run`
---@field cancel fun(run: co.Run)
---@field to_background fun(run: co.Run)
---@field run fun(command: string, cwd: string, stdin?: string, options?: co.RunOptions): integer?

--- Cancels the run under the cursor. One that has ended may have left processes: the backend knows them.
---@param runs co.shell_keys.Runs
local function cancel(runs)
  local run = run_at_cursor()
  if run then
    runs.cancel(run)
  end
end

--- Runs the command under the cursor again.
---@param runs co.shell_keys.Runs
local function run_again(runs)
  local run = run_at_cursor()
  if run and run.owner then
    -- The person did not approve the command of a model as their own.
    notify.info('a model ran this: `:Co! {command}` runs it as yours')
  elseif run then
    -- The new run scrolls into view.
    vim.cmd("normal! m'")
    runs.run(run.command, run.cwd, run.stdin, run.options)
  end
end

--- Goes to the next or the previous run.
---@param step 1|-1
local function jump(step)
  windows.jump(shell_buffer.rows(), step)
end

--- Opens the file under the cursor, or the spill file on a line that stands for left-out output.
local function open()
  local run = run_at_cursor()
  if not run then
    return
  end
  local block = shell_buffer.block(run)
  local first = block and block:content()
  local row = api.nvim_win_get_cursor(0)[1] - 1
  local counted = block and block.skipped > 0 and first and row == first - 1
  local cut = api.nvim_get_current_line():match('… %d+ more characters$')
  if run.spill and (counted or cut) then
    locations.open({ path = run.spill })
    return
  end
  locations.open_at_cursor(run.cwd)
end

--- Maps the keys, in the buffer only.
---@param buf integer
---@param runs co.shell_keys.Runs
function M.map(buf, runs)
  local keys = config.get().keys.shell
  local function map(action, run, desc)
    buffer.map(buf, 'n', keys[action], run, desc)
  end
  map('cancel', function()
    cancel(runs)
  end, 'cancel the run')
  map('hide', shell_buffer.hide, 'hide the window')
  map('again', function()
    run_again(runs)
  end, 'run it again')
  map('next', function()
    jump(1)
  end, 'next run')
  map('previous', function()
    jump(-1)
  end, 'previous run')
  map('open', open, 'open file:line')
  map('background', on_running(runs.to_background), 'continue the run in the background')
  map('quickfix', function()
    local run = run_at_cursor()
    if run then
      errors.quickfix(run)
    end
  end, 'locations into the quickfix list')
  map('help', function()
    key_help.show('shell', keys)
  end, 'list the keys')
end

return M
