--- What the keys of the shell buffer do.
local M = {}

local api = vim.api
local buffer = require('co.ui.buffer')
local config = require('co.config')
local locations = require('co.ui.locations')
local notify = require('co.ui.notify')
local windows = require('co.ui.windows')

---@return co.Run?
local function here()
  local run = require('co.run.shell_buffer').at()
  if not run then
    notify.info('no run here: :Co! {command} runs one')
  end
  return run
end

---@param act fun(run: co.Run)
---@return fun()
local function on_running(act)
  return function()
    local run = here()
    if run and run.running then
      act(run)
    elseif run then
      notify.info('this run has ended')
    end
  end
end

--- One that has ended may have left something running: the backend knows.
local function cancel()
  local run = here()
  if run then
    require('co.run').cancel(run)
  end
end

local background = on_running(function(run)
  require('co.run').send_back(run)
end)

local function again()
  local run = here()
  if run and run.owner then
    -- What a model was allowed, or was held to, is not what a person runs by one key.
    notify.info('a model ran this: `:Co! {command}` runs it as yours')
  elseif run then
    require('co.run').run(run.command, run.cwd, run.stdin, run.options)
  end
end

---@param step 1|-1
local function jump(step)
  windows.jump(require('co.run.shell_buffer').rows(), step)
end

local function open()
  local run = here()
  if not run then
    return
  end
  local block = require('co.run.shell_buffer').block(run)
  local first = block and block:content()
  local row = api.nvim_win_get_cursor(0)[1] - 1
  local counted = block and block.skipped > 0 and first and row == first - 1
  local cut = api.nvim_get_current_line():match('… %d+ more characters$')
  if run.spill and (counted or cut) then
    locations.go({ path = run.spill })
    return
  end
  locations.open(run.cwd)
end

--- Fills the quickfix list from what a run printed.
---@param run co.Run
function M.quickfix(run)
  local block = require('co.run.shell_buffer').block(run)
  local first, tail = nil, nil
  if block then
    first, tail = block:content()
  end
  if not block or not first then
    notify.info('the output of this run is not in the shell buffer')
    return
  end
  local lines = api.nvim_buf_get_lines(block.buf, first, tail --[[@as integer]], false)
  local count = locations.quickfix('Co! ' .. run.command, lines, run.cwd, vim.go.errorformat)
  if count == 0 then
    notify.info("no line of this run fits 'errorformat'")
    return
  end
  vim.cmd('botright copen')
end

--- Maps the keys, in the buffer alone.
---@param buf integer
function M.map(buf)
  local keys = config.get().keys.shell
  local function map(action, run, desc)
    buffer.map(buf, 'n', keys[action], run, desc)
  end
  map('cancel', cancel, 'cancel the run')
  map('hide', function()
    require('co.run.shell_buffer').hide()
  end, 'hide the window')
  map('again', again, 'run it again')
  map('next', function()
    jump(1)
  end, 'next run')
  map('previous', function()
    jump(-1)
  end, 'previous run')
  map('open', open, 'open file:line')
  map('background', background, 'let it go on in the background')
  map('quickfix', function()
    local run = here()
    if run then
      M.quickfix(run)
    end
  end, 'locations into the quickfix list')
  map('help', function()
    require('co.ui.key_help').show('shell')
  end, 'list the keys')
end

return M
