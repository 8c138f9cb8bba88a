--- The commands that run or ran: what `:Co!` starts and what the backend says of it.
local M = {}

local backend = require('co.backend')
local events = require('co.ui.events')
local files = require('co.ui.reload')
local notify = require('co.ui.notify')
local run_options = require('co.run.options')
local shell = require('co.run.shell_buffer')
local terminal = require('co.run.terminal')
local windows = require('co.ui.windows')

---@class (exact) co.Run
---@field id integer
---@field command string
---@field cwd string
---@field stdin? string
---@field mode? co.RunMode
---@field options? co.RunOptions none where the person did not start it
---@field block? co.Block none where it has a terminal
---@field running boolean
---@field background? boolean its end is told
---@field owner? co.Owner the model's job that it is
---@field kept? boolean it outlives its chat
---@field left? boolean it has ended, and what it left running goes on
---@field forgotten? boolean off the list of jobs
---@field began integer ns
---@field finished? integer ns
---@field status? string
---@field exit? integer
---@field spill? string

---@alias co.RunMode 'open'|'pty' what is more than a command: an open standard input, or a terminal

---@type table<integer, co.Run>
local runs = {}
local newest = 0

-- The list of jobs, where it was ever opened.
local function changed()
  local jobs = package.loaded['co.run.job_list']
  if jobs then
    jobs.refresh()
  end
end

--- Gives a run its block; what the buffer has no room for any more is forgotten.
---@param run co.Run
local function open_block(run)
  shell.open(run, function(removed)
    runs[removed.id] = nil
  end)
end

---@param id integer
---@param command string
---@param cwd string
---@return co.Run
local function add(id, command, cwd)
  ---@type co.Run
  local run = { id = id, command = command, cwd = cwd, running = true, began = vim.uv.hrtime() }
  runs[id] = run
  require('co.run.quit').watch()
  return run
end

--- Runs a command in `cwd` and shows what it prints.
---@param command string
---@param cwd string
---@param stdin? string
---@param options? co.RunOptions
---@return integer? run
function M.run(command, cwd, stdin, options)
  if not backend.start() then
    return nil
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
  -- Sent first: the command starts while Neovim draws. Neovim reads its output after that.
  if not backend.send(request) then
    terminal.ended(request.run, 'not run')
    return nil
  end
  newest = request.run
  local run = add(newest, command, cwd)
  run.stdin, run.mode, run.options = stdin, mode, options
  if mode ~= 'pty' then
    open_block(run)
    if not pcall(shell.show) then
      -- While an expression is evaluated no window opens; soon one may.
      vim.schedule(function()
        if not pcall(shell.show) then
          notify.warn('it runs unseen: there is no room for the window of the shell buffer')
        end
      end)
    end
  end
  changed()
  return run.id
end

--- Runs a command that was typed into a chat after a `!`.
---@param chat co.Chat
---@param typed string
---@param cwd string
---@return boolean taken
function M.run_in_chat(chat, typed, cwd)
  local command, options, problem = run_options.parse(typed)
  if not problem and options.mode then
    problem = 'a chat has no terminal and no input, :Co! ++pty has both'
  end
  if problem or not command or command == '' then
    notify.warn(problem and 'not run: ' .. problem or 'type a command after !')
    return false
  end
  local taken = require('co.chat.send').message(chat, {
    type = 'command',
    session = chat.id,
    name = '!',
    args = command,
    cwd = cwd,
    options = run_options.message(options),
  }, cwd)
  if taken then
    windows.to_end(chat.buf)
  end
  return taken
end

--- Runs the last command again, where it ran.
function M.rerun()
  local last = runs[newest]
  if not last then
    notify.info('nothing has been run yet: :Co! {command} runs one')
    return
  end
  M.run(last.command, last.cwd, last.stdin, last.options)
end

--- What a run is called.
---@param run co.Run
---@return string
function M.label(run)
  local owner = run.owner
  return owner and ('job %d of chat %d'):format(owner.job, owner.session)
    or ('run %d'):format(run.id)
end

--- Takes in a job that a model started: nobody asked for a window.
---@param message co.RunStarted
local function adopt_job(message)
  local run = add(message.run, message.command, message.cwd)
  run.owner, run.background, run.mode = message.owner, true, 'open'
  open_block(run)
  shell.status(run, ('… running, %s: :Co /jobs lists it'):format(M.label(run)), 'CoRunRunning')
  changed()
end

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
end

---@param message co.RunOutput
function M.output(message)
  local run = runs[message.run]
  if run then
    shell.output(run, message.patch)
  end
end

---@param run co.Run
---@param text string
local function finish(run, text)
  -- What it names, such as a directory, may be of several lines; that which shows it is of one.
  text = text:gsub('%s*\n%s*', ' ')
  run.running, run.finished, run.status = false, vim.uv.hrtime(), text
  if run.mode == 'pty' then
    terminal.ended(run.id, text)
  end
end

--- Tells those who listen that a run has ended; they do not wait for the screen.
---@param run co.Run
local function raise_end(run)
  events.raise('CoJobDone', {
    run = run.id,
    session = run.owner and run.owner.session,
    job = run.owner and run.owner.job,
    command = run.command,
    exit = run.exit,
    status = run.status,
  })
end

--- Shows how a run came to its end.
---@param run co.Run
local function show_end(run)
  changed()
  local group = run.exit == 0 and 'CoRunOk' or 'CoRunFailed'
  shell.status(run, run.status --[[@as string]], group)
end

---@param message co.RunEnded
function M.ended(message)
  local run = runs[message.run]
  if not run then
    return
  end
  run.spill, run.exit, run.left = message.spill, message.exit, message.left
  finish(run, message.status)
  files.refresh()
  raise_end(run)
  show_end(run)
  if run.background then
    local say = message.exit == 0 and notify.info or notify.warn
    say(('%s: %s: %s'):format(M.label(run), message.status, run.command))
  end
end

--- Takes in that the processes that a run left running have ended.
---@param message co.LeftEnded
function M.left_ended(message)
  local run = runs[message.run]
  if run then
    run.left = nil
  end
end

--- Ends a run and all it started; of one that has ended, what it left running.
---@param run co.Run
function M.cancel(run)
  if not backend.tell({ type = 'cancel_run', run = run.id }) then
    notify.info('this run has ended')
  end
end

--- Lets a run go on unseen: its block says so, and its end is told.
---@param run co.Run
function M.send_back(run)
  run.background = true
  shell.status(run, '… running in the background, :Co /jobs lists it', 'CoRunRunning')
  changed()
end

--- Every run there is, in no order.
---@return co.Run[]
function M.all()
  return vim.tbl_filter(function(run)
    return not run.forgotten
  end, vim.tbl_values(runs))
end

--- Takes a run that has ended off the list of jobs; its block stays in the buffer.
---@param run co.Run
function M.forget(run)
  run.forgotten = true
  terminal.delete(run.id)
  -- Where no block shows it, nothing speaks of it any more.
  if not shell.block(run) then
    runs[run.id] = nil
  end
end

---@return integer
function M.running()
  local count = 0
  for _, run in pairs(runs) do
    count = count + (run.running and 1 or 0)
  end
  return count
end

backend.on_end(function(reason)
  ---@type co.Run[]
  local ended = {}
  for _, run in pairs(runs) do
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
