--- The runs: commands of `:Co!` and the jobs of models, and the messages of the backend about them.
local M = {}

local backend = require('co.backend')
local config = require('co.config')
local errors = require('co.run.errors')
local events = require('co.ui.events')
local focus = require('co.ui.focus')
local notify = require('co.ui.notify')
local printable = require('co.ui.printable')
local reload = require('co.ui.reload')
local run_options = require('co.run.options')
local shell_buffer = require('co.run.shell_buffer')
local shell_keys = require('co.run.shell_keys')
local terminal = require('co.run.terminal')
local watch = require('co.run.watch')

---@class (exact) co.Run
---@field id integer
---@field command string
---@field cwd string
---@field stdin? string
---@field mode? co.RunMode
---@field options? co.RunOptions nil if a model started it
---@field block? co.Block nil if it has a terminal
---@field rows? integer the rows of its command above the block
---@field running boolean
---@field background? boolean a notice tells its end
---@field detail? string what is shown of it while it runs
---@field owner? co.Owner the chat and the job number, if a model started it
---@field kept? boolean it continues after its chat is closed
---@field left? boolean it has ended, but processes that it started continue, or the question about its trial waits
---@field forgotten? boolean removed from the list of jobs
---@field began integer nanoseconds
---@field finished? integer ns
---@field status? string
---@field exit? integer
---@field spill? string

---@alias co.RunMode 'open'|'pty' what is more than a command: an open standard input, or a terminal

---@type table<integer, co.Run>
local runs = {}
local newest = 0

---@type (fun())[]
local on_change_callbacks = {}

--- Redraws the statuslines and calls the callbacks of `on_change`.
local function changed()
  vim.cmd('redrawstatus!')
  for _, callback in ipairs(on_change_callbacks) do
    callback()
  end
end

--- Calls `callback` after each change of a run.
---@param callback fun()
function M.on_change(callback)
  on_change_callbacks[#on_change_callbacks + 1] = callback
end

--- Returns the commands that run, the oldest first.
---@return string[]
local function running_commands()
  local running = vim.tbl_filter(function(run)
    return run.running and not run.forgotten
  end, vim.tbl_values(runs))
  table.sort(running, function(a, b)
    return a.began < b.began
  end)
  return vim.tbl_map(function(run)
    return run.command
  end, running)
end

--- Creates the block of a run. Runs whose blocks no longer fit into the buffer are forgotten.
---@param run co.Run
local function open_block(run)
  shell_buffer.add(run, function(removed)
    runs[removed.id] = nil
  end)
end

--- Adds a run.
---@param id integer
---@param command string
---@param cwd string
---@return co.Run
local function add(id, command, cwd)
  ---@type co.Run
  local run = { id = id, command = command, cwd = cwd, running = true, began = vim.uv.hrtime() }
  runs[id] = run
  require('co.ui.quit').refuse_while('running', running_commands)
  return run
end

--- Shows the status of a run that has ended.
---@param run co.Run
local function show_status(run)
  local group = run.exit == 0 and 'CoRunOk' or 'CoRunFailed'
  shell_buffer.status(run, run.status .. watch.words(run), group)
end

--- Opens the window of the shell buffer, now or as soon as Neovim allows it.
local function show_shell()
  if pcall(shell_buffer.show) then
    return
  end
  -- No window opens while Neovim evaluates an expression. Try again soon.
  vim.schedule(function()
    if not pcall(shell_buffer.show) then
      notify.warn('it runs unseen: there is no room for the window of the shell buffer')
    end
  end)
end

--- Runs a command in `cwd` and shows its output.
---@param command string
---@param cwd string
---@param stdin? string
---@param options? co.RunOptions
---@param unseen? boolean a hidden shell buffer stays hidden
---@return integer? run
function M.run(command, cwd, stdin, options, unseen)
  if not backend.start() then
    return nil
  end
  if not unseen then
    focus.asked()
  end
  options = options or {}
  local mode = options.mode
  ---@type co.RunRequest
  local request = {
    type = 'run',
    run = newest + 1,
    command = command,
    cwd = cwd,
    stdin = stdin,
    options = run_options.message(options),
  }
  if mode == 'pty' then
    local size, why = terminal.open(request.run)
    if not size then
      notify.error('not run: ' .. why)
      return nil
    end
    request.terminal = size
  end
  request.open = mode == 'open' or nil
  -- Send first: the command starts while Neovim draws.
  if not backend.send(request) then
    terminal.show_end(request.run, 'not run')
    return nil
  end
  newest = request.run
  local run = add(newest, command, cwd)
  run.stdin, run.mode, run.options = stdin, mode, options
  if mode ~= 'pty' then
    open_block(run)
    if not unseen then
      show_shell()
    end
  end
  if options.watch then
    local previous = watch.add(run, function()
      return M.run(command, cwd, stdin, options, true) ~= nil
    end)
    if previous and not previous.running then
      show_status(previous)
      M.forget(previous)
    end
  end
  changed()
  return run.id
end

--- Runs the last command again in its directory.
function M.rerun()
  local last = runs[newest]
  if not last then
    notify.info('nothing has been run yet: :Co! {command} runs one')
    return
  end
  M.run(last.command, last.cwd, last.stdin, last.options)
end

--- Returns the name of a run for notices.
---@param run co.Run
---@return string
function M.label(run)
  local owner = run.owner
  return owner and ('job %d of chat %d'):format(owner.job, owner.chat) or ('run %d'):format(run.id)
end

--- Shows that a run has not ended.
---@param run co.Run
---@param more string
local function show_running(run, more)
  local detail = run.detail and ('; ' .. run.detail) or ''
  shell_buffer.status(run, '… running' .. more .. detail, 'CoRunRunning')
end

--- Adds a job that a model started. No window opens.
---@param message co.RunStarted
local function adopt_job(message)
  local run = add(message.run, message.command, message.cwd)
  run.owner, run.background, run.mode = message.owner, true, 'open'
  run.detail = message.detail
  open_block(run)
  show_running(run, (', %s: :Co /jobs lists it'):format(M.label(run)))
  changed()
end

--- Adds a run that the backend started by itself.
---@param message co.RunStarted
function M.started(message)
  local run = runs[message.run]
  if message.owner and not run then
    adopt_job(message)
    return
  end
  if not run then
    newest = math.max(newest, message.run)
    run = add(message.run, message.command, message.cwd)
    open_block(run)
  end
  run.detail = message.detail
  if run.detail and run.running and not run.background then
    show_running(run, '')
  end
end

--- Shows output of a run.
---@param message co.RunOutput
function M.output(message)
  local run = runs[message.run]
  if run then
    shell_buffer.output(run, message.patch)
  end
end

--- Notes the end of a run and its status.
---@param run co.Run
---@param text string
local function finish(run, text)
  text = printable.line(text)
  run.running, run.finished, run.status = false, vim.uv.hrtime(), text
  if run.mode == 'pty' then
    terminal.show_end(run.id, text)
  end
end

--- Raises the event for the end of a run.
---@param run co.Run
local function raise_end(run)
  events.raise('CoJobDone', {
    run = run.id,
    chat = run.owner and run.owner.chat,
    job = run.owner and run.owner.job,
    command = run.command,
    exit = run.exit,
    status = run.status,
    seconds = ((run.finished or run.began) - run.began) / 1e9,
  })
end

--- Shows the end of a run.
---@param run co.Run
local function show_end(run)
  changed()
  show_status(run)
  if not run.owner and config.get().run_diagnostics then
    errors.show_diagnostics(run)
  end
  watch.ended(run)
end

--- Notes the end of a run, raises the event and shows it.
---@param message co.RunEnded
function M.ended(message)
  local run = runs[message.run]
  if not run then
    return
  end
  run.spill, run.exit, run.left = message.spill, message.exit, message.left
  finish(run, message.status)
  reload.changed_files()
  raise_end(run)
  show_end(run)
  if run.background then
    local say = message.exit == 0 and notify.info or notify.warn
    say(('%s: %s: %s'):format(M.label(run), message.status, run.command))
  end
end

--- Shows the status of a run when the processes that it left have ended, or the question about its trial is settled.
---@param run co.Run
---@param text string
local function show_later(run, text)
  run.left, run.status = nil, printable.line(text)
  show_status(run)
  if run.mode == 'pty' then
    terminal.show_later(run.id, run.status)
  end
  changed()
end

--- Notes that the processes that a run left have ended, or that the question about its trial is settled.
---@param message co.LeftEnded
function M.left_ended(message)
  local run = runs[message.run]
  if not run then
    return
  end
  show_later(run, message.status)
  if message.again then
    local options = vim.tbl_extend('force', run.options or {}, {})
    options.trial = nil
    M.run(run.command, run.cwd, run.stdin, options)
  end
end

--- Cancels a run and its processes, and ends its watch; for a run that has ended, cancels the processes that it left.
---@param run co.Run
function M.cancel(run)
  local watched = watch.stop(run)
  if watched and not run.running then
    show_status(run)
    changed()
  end
  if run.running or run.left then
    backend.send_if_running({ type = 'cancel_run', run = run.id })
  elseif watched then
    notify.info('a save no longer runs it again')
  else
    notify.info(('%s has ended, and nothing of it runs'):format(M.label(run)))
  end
end

--- Marks a run as a background run: its block says so, and a notice tells its end.
---@param run co.Run
function M.to_background(run)
  run.background = true
  show_running(run, ' in the background, :Co /jobs lists it')
  changed()
end

--- Returns all runs, in no order.
---@return co.Run[]
function M.all()
  return vim.tbl_filter(function(run)
    return not run.forgotten
  end, vim.tbl_values(runs))
end

--- Returns the command of a run.
---@param id integer
---@return string?
function M.command(id)
  return runs[id] and runs[id].command
end

--- Returns the last run of the person.
---@return co.Run?
function M.last()
  local last
  for _, run in ipairs(M.all()) do
    if not run.owner and (not last or run.began > last.began) then
      last = run
    end
  end
  return last
end

--- Removes a run that has ended from the list of jobs. Its block stays in the buffer.
---@param run co.Run
function M.forget(run)
  run.forgotten = true
  watch.stop(run)
  terminal.delete(run.id)
  -- Nothing shows a run without a block.
  if not shell_buffer.block(run) then
    runs[run.id] = nil
  end
end

--- Returns the number of runs that have not ended.
---@return integer
function M.running()
  local count = 0
  for _, run in pairs(runs) do
    count = count + (run.running and 1 or 0)
  end
  return count
end

--- Shows the shell buffer, or hides it.
function M.toggle_shell()
  shell_buffer.toggle()
end

--- Makes the shell buffer of a buffer that a session file or `:edit` named.
---@param buf integer
function M.adopt_shell(buf)
  shell_buffer.adopt(buf)
end

shell_buffer.on_create(function(buf)
  shell_keys.map(buf, M)
end)

backend.on_exit(function(reason)
  ---@type co.Run[]
  local ended = {}
  for _, run in pairs(runs) do
    if run.left and run.options and run.options.trial then
      show_later(run, 'its changes are dropped: ' .. reason)
    end
    run.left = nil
    if run.running then
      finish(run, reason)
      show_end(run)
      ended[#ended + 1] = run
    end
  end
  return function()
    vim.tbl_map(raise_end, ended)
  end
end)

return M
