--- The list of runs and of the models' jobs, `co://jobs`. Those that still run come first.
local M = {}

local api = vim.api
local backend = require('co.backend')
local buffer = require('co.ui.buffer')
local config = require('co.config')
local highlight = require('co.ui.highlight')
local key_help = require('co.ui.key_help')
local notify = require('co.ui.notify')
local printable = require('co.ui.printable')
local runs = require('co.run')
local shell_buffer = require('co.run.shell_buffer')
local textlock = require('co.ui.textlock')
local watch = require('co.run.watch')
local windows = require('co.ui.windows')

local NAME = 'co://jobs'
local TICK_MS = 1000

local colours = api.nvim_create_namespace('co.jobs')

---@type integer?
local list
-- The run of each line.
---@type co.Run[]
local rows = {}
local ticking = false

--- Returns the state of a run and its highlight group.
---@param run co.Run
---@return string text
---@return string group
local function state(run)
  if run.running and run.owner then
    return run.kept and 'running, kept' or 'running', 'CoRunRunning'
  elseif run.running then
    return run.background and 'background' or 'running', 'CoRunRunning'
  end
  local text = (run.status or ''):gsub(', after .*$', '')
  if run.options and run.options.trial and not vim.startswith(text, 'not run') then
    text = (run.left and 'asks: ' or 'tried: ') .. text
  end
  text = watch.words(run) ~= '' and 'watch: ' .. text or text
  return text, run.exit == 0 and 'CoRunOk' or 'CoRunFailed'
end

--- Returns the time that a run has taken.
---@param run co.Run
---@return string
local function clock(run)
  local seconds = math.floor(((run.finished or vim.uv.hrtime()) - run.began) / 1e9)
  local minutes = math.floor(seconds / 60)
  if minutes < 60 then
    return ('%d:%02d'):format(minutes, seconds % 60)
  end
  return ('%d:%02d:%02d'):format(math.floor(minutes / 60), minutes % 60, seconds % 60)
end

--- Cuts or pads a text to a width.
---@param text string
---@param width integer
---@return string
local function cell(text, width)
  if vim.fn.strdisplaywidth(text) > width then
    text = vim.fn.strcharpart(text, 0, width - 1) .. '…'
  end
  return text .. (' '):rep(width - vim.fn.strdisplaywidth(text))
end

--- Returns the runs in the order of the list.
---@return co.Run[]
local function sorted()
  local all = runs.all()
  table.sort(all, function(a, b)
    if a.running ~= b.running then
      return a.running
    end
    return a.began > b.began
  end)
  return all
end

--- Returns the number of a run or of a job of a chat, and its starter.
---@param run co.Run
---@return string number
---@return string starter the chat, or the person
local function origin(run)
  local owner = run.owner
  if owner then
    return 'j' .. owner.job, ('chat %d'):format(owner.chat)
  end
  return tostring(run.id), 'you'
end

--- Writes the list into its buffer.
---@param buf integer
local function draw(buf)
  rows = sorted()
  local lines, marks = {}, {}
  for index, run in ipairs(rows) do
    local text, group = state(run)
    local number, who = origin(run)
    local head = ('%4s  '):format(number)
    local shown = cell(text, 18)
    local command = printable.label(printable.first_line(run.command))
    local rest = ('%8s  %s  %s'):format(clock(run), cell(who, 7), command)
    lines[index] = ('%s%s %s'):format(head, shown, rest)
    marks[index] = { #head, #head + #shown, group }
  end
  if #lines == 0 then
    lines[1] = 'nothing has been run yet: :Co! {command} runs one'
  end
  buffer.write(buf, function()
    buffer.set_lines(buf, 0, -1, lines)
    api.nvim_buf_clear_namespace(buf, colours, 0, -1)
    for index, mark in ipairs(marks) do
      api.nvim_buf_set_extmark(buf, colours, index - 1, mark[1], {
        end_col = mark[2],
        hl_group = mark[3],
      })
    end
  end)
end

--- Draws the list again in its windows. The cursors stay on their runs.
function M.refresh()
  local buf = list
  local wins = buf and buffer.alive(buf) and vim.fn.win_findbuf(buf) or {}
  if not buf or #wins == 0 then
    return
  end
  local at = {}
  for _, win in ipairs(wins) do
    at[win] = rows[api.nvim_win_get_cursor(win)[1]]
  end
  draw(buf)
  for win, run in pairs(at) do
    for row, other in ipairs(rows) do
      if other == run then
        api.nvim_win_set_cursor(win, { row, api.nvim_win_get_cursor(win)[2] })
      end
    end
  end
end

-- Updates the times while a window shows the list.
--- Starts the timer of the updates.
local function tick()
  if ticking then
    return
  end
  ticking = true
  vim.defer_fn(function()
    ticking = false
    if list and buffer.alive(list) and #vim.fn.win_findbuf(list) > 0 then
      if not textlock.locked() then
        M.refresh()
      end
      tick()
    end
  end, TICK_MS)
end

--- Returns the run under the cursor; nil, after a notice, if there is none.
---@return co.Run?
local function run_at_cursor()
  local run = rows[api.nvim_win_get_cursor(0)[1]]
  if not run then
    notify.info('no run here: :Co! {command} runs one')
  end
  return run
end

--- Returns a function that calls `action` with the run under the cursor.
---@param action fun(run: co.Run)
---@return fun()
local function on_run(action)
  return function()
    local run = run_at_cursor()
    if run then
      action(run)
    end
  end
end

--- Returns a function that calls `action` with the run under the cursor if it has not ended.
---@param action fun(run: co.Run)
---@return fun()
local function on_running(action)
  return on_run(function(run)
    if run.running then
      action(run)
    else
      notify.info(('%s has ended'):format(runs.label(run)))
    end
  end)
end

--- Asks for a line and writes it to the standard input of a run.
---@param run co.Run
local function write(run)
  if not run.mode then
    local label = runs.label(run)
    notify.info(('%s has no input: :Co! ++stdin {command} keeps it open'):format(label))
    return
  end
  local prompt = ('stdin of %s: '):format(runs.label(run))
  vim.ui.input({ prompt = prompt }, function(text)
    if text then
      -- A terminal turns the carriage return into a line break.
      local terminal = run.mode == 'pty' or run.owner and run.owner.terminal
      local data = text .. (terminal and '\r' or '\n')
      backend.send_if_running({ type = 'run_input', run = run.id, data = data })
    end
  end)
end

--- Closes the standard input of a run.
---@param run co.Run
local function close_input(run)
  if run.mode then
    backend.send_if_running({ type = 'run_input', run = run.id, close = true })
  else
    local label = runs.label(run)
    notify.info(('the input of %s is closed already'):format(label))
  end
end

--- Removes a run that has ended from the list.
---@param run co.Run
local function delete(run)
  if run.running then
    notify.info(('%s has not ended: cancel it first'):format(runs.label(run)))
    return
  end
  runs.forget(run)
  M.refresh()
end

--- Sets or resets that a job outlives its chat.
---@param run co.Run
local function keep(run)
  if not run.owner then
    notify.info(('run %d is yours: it ends with no chat'):format(run.id))
    return
  end
  run.kept = not run.kept
  backend.send_if_running({ type = 'keep_run', run = run.id, keep = run.kept })
  M.refresh()
end

--- Maps the keys of the list.
---@param buf integer
local function map(buf)
  local keys = config.get().keys.jobs
  local function set(action, run, desc)
    buffer.map(buf, 'n', keys[action], run, desc)
  end
  set(
    'open',
    on_run(function(run)
      shell_buffer.show_output(run, 'head')
    end),
    'go to its output'
  )
  set(
    'tail',
    on_run(function(run)
      shell_buffer.show_output(run, 'tail')
    end),
    'show the end of its output, and stay there'
  )
  set('cancel', on_run(runs.cancel), 'cancel it, or what it left running')
  set('quickfix', on_run(require('co.run.errors').quickfix), 'locations into the quickfix list')
  set('keep', on_running(keep), 'keep a job running after its chat closes; again: undo that')
  set('delete', on_run(delete), 'remove a finished one from the list')
  set('write', on_running(write), 'write a line to its standard input')
  set('close', on_running(close_input), 'close its standard input')
  set('hide', function()
    windows.hide(api.nvim_get_current_win())
  end, 'hide the list')
  set('help', function()
    key_help.show('jobs', keys)
  end, 'list the keys')
end

--- Opens the list and goes to it.
function M.open()
  if not buffer.alive(list) then
    list = buffer.scratch(NAME, 'co-jobs')
    highlight.ensure()
    map(list)
    buffer.lock(list)
  end
  local buf = list --[[@as integer]]
  draw(buf)
  local win = windows.in_tabpage(buf)
    or windows.split(buf, { side = 'below', size = math.max(3, math.min(#rows, 10)) })
  windows.options(win, {
    wrap = false,
    number = false,
    relativenumber = false,
    signcolumn = 'no',
    spell = false,
    cursorline = true,
    winfixheight = true,
  })
  windows.enter(win)
  tick()
end

runs.on_change(M.refresh)

return M
