--- The backend process of this Neovim: starts it, does the handshake and sends messages to it.
---
--- It knows no other messages than those of the handshake. `co.handlers` receives all messages.
local M = {}

local config = require('co.config')
local executable = require('co.backend.executable')
local log = require('co.ui.log')
local message_check = require('co.backend.message_check')
local notify = require('co.ui.notify')
local textlock = require('co.ui.textlock')
local version = require('co.version')

---@class (exact) co.backend.Process
---@field channel integer
---@field path string
---@field file? string identifies the file at `path` when it was started
---@field ready boolean
---@field ending? string the reason why it is about to end; the person knows it already
---@field bin? string the setting `bin` when it was started
---@field settings table<string, any> the settings that it got last
---@field on_restarted? fun() called when the next backend runs; set during a restart
---@field held? co.FromEditor[] messages for the next backend, sent after `on_restarted`
---@field stderr string the end of its standard error

---@type co.backend.Process?
local process
---@type co.FromEditor[]
local queue = {}
---@type co.Ready?
local ready_message
---@type string?
local isolation
-- The choice of /sandbox. The next backend gets it if the present one ends by itself.
---@type co.Sandbox?
local sandbox
-- Each backend gets it before any other message.
---@type co.Hooks?
local hooks
-- A backend may start before its first message. False after one has ended, because the next one may end too.
local may_start_early = true
---@type (fun(reason: string, unsent: co.FromEditor[], held: co.FromEditor[]): fun()?)[]
local on_exit_callbacks = {}

local GREETING_MS = 10000

-- Bytes of standard error that are kept: more than one line of the backend.
local STDERR_BYTES = 4096

--- Forgets the backend that ended and calls the callbacks of `on_exit`.
---@param reason string
---@param held? co.FromEditor[] messages that the next backend gets
function M.handle_exit(reason, held)
  local unsent = queue
  queue, ready_message, isolation = {}, nil, nil
  textlock.when_unlocked(function()
    ---@type fun()[]
    local events = {}
    for _, callback in ipairs(on_exit_callbacks) do
      events[#events + 1] = callback(reason, unsent, held or {})
    end
    -- After all callbacks, because an autocommand may start the next backend.
    for _, raise in ipairs(events) do
      raise()
    end
  end)
end

--- Starts the next backend and sends it the messages that came during the restart.
---@param dead co.backend.Process
---@param reason string why the last one ended; told if the next one cannot start
---@param on_restarted fun()
local function start_next(dead, reason, on_restarted)
  sandbox = nil
  local held = dead.held or {}
  if not M.start() then
    queue = held
    M.handle_exit(reason)
    return
  end
  on_restarted()
  for _, message in ipairs(held) do
    M.send(message)
  end
end

--- Returns the reason why a backend ended by itself: its last line on standard error, if it wrote one.
---@param dead co.backend.Process
---@param code integer
---@return string
local function exit_reason(dead, code)
  local said
  for line in vim.gsplit(dead.stderr, '\n') do
    -- The dynamic loader starts its lines with the path of the program instead.
    said = line:match('^%S-co%-nvim[^%s/]*: (.+)$') or said
  end
  return code ~= 0 and said
    or ('the backend ended (exit %d); the next :Co starts it again'):format(code)
end

--- Handles the exit of the process: calls the callbacks, and starts the next backend during a restart.
---@param dead co.backend.Process
---@param code integer
local function on_exit(dead, code)
  if process ~= dead then
    return
  end
  process, may_start_early = nil, false
  local reason = dead.ending or exit_reason(dead, code)
  if not dead.ending and vim.v.exiting == vim.NIL then
    notify.error(reason .. ', :Co /log says more')
  end
  M.handle_exit(reason, dead.held)
  local on_restarted = dead.on_restarted
  if on_restarted and vim.v.exiting == vim.NIL then
    textlock.when_unlocked(function()
      start_next(dead, reason, on_restarted)
    end)
  end
end

--- Shows an error and ends the backend.
---@param reason string
local function stop_with_error(reason)
  if not process then
    return
  end
  process.ending = reason
  notify.error(reason)
  vim.fn.jobstop(process.channel)
end

--- Ends the backend if it does not greet in time.
---@param current co.backend.Process
local function expect_greeting(current)
  vim.defer_fn(function()
    if process == current and not current.ready and not current.ending then
      stop_with_error(
        ('%s does not answer: is it co-nvim %s?'):format(current.path, version.version)
      )
    end
  end, GREETING_MS)
end

--- Sends a message to the process at once.
---@param message co.FromEditor
---@return boolean sent
local function send_now(message)
  if not process then
    return false
  end
  local ok, problem = pcall(vim.rpcnotify, process.channel, 'co', message)
  if not ok then
    log.add('send', tostring(problem))
  end
  return ok
end

--- Returns what identifies a file until it is replaced or written.
---@param path string
---@return string?
local function identity(path)
  local stat = vim.uv.fs_stat(path)
  ---@diagnostic disable-next-line: undefined-field -- the checker knows little of libuv
  return stat and ('%d %d %d.%d'):format(stat.dev, stat.ino, stat.mtime.sec, stat.mtime.nsec)
end

--- Starts the process and sends the greeting.
---@param begins_chat? boolean
---@return string? problem the reason why it did not start
local function launch(begins_chat)
  local path, problem = executable.find()
  if not path then
    return problem
  end
  ---@type co.backend.Process
  local new = {
    channel = 0,
    path = path,
    file = identity(path),
    ready = false,
    bin = config.get().bin,
    settings = config.settings(),
    stderr = '',
  }
  local ok, channel = pcall(vim.fn.jobstart, { path }, {
    rpc = true,
    on_stderr = function(_, data)
      local text = table.concat(data, '\n')
      log.add('backend', text)
      new.stderr = (new.stderr .. text):sub(-STDERR_BYTES)
    end,
    on_exit = function(_, code)
      on_exit(new, code)
    end,
  })
  if not ok or channel <= 0 then
    return ('%s could not be started: %s'):format(path, ok and 'not executable' or channel)
  end
  new.channel = channel
  process = new
  send_now({
    type = 'hello',
    protocol = version.protocol,
    version = version.version,
    settings = new.settings,
    begins_chat = begins_chat,
  })
  if sandbox then
    table.insert(queue, 1, sandbox)
  end
  if hooks then
    table.insert(queue, 1, hooks)
  end
  expect_greeting(new)
end

--- Returns whether Neovim ends. It waits then for all processes, also for one that starts meanwhile. If a signal ends Neovim, a
--- draft may need a backend.
---@return boolean
local function is_ending()
  return vim.v.exiting ~= vim.NIL and vim.v.dying == 0
end

--- Starts the backend if none runs. A backend that is about to end takes no messages: a notice says so.
---@return boolean running
function M.start()
  if is_ending() then
    return false
  end
  -- This sends settings that changed.
  config.get()
  if process and process.ending then
    notify.info('the backend is ending: try again in a moment')
    return false
  end
  local problem = not process and launch()
  if problem then
    notify.error(problem)
  end
  return process ~= nil
end

--- Starts the backend before its first message, if none has run: it gets ready while Neovim loads more files, or while the
--- person types. If no program can be started, the first message tells the reason.
---@param begins_chat boolean the person is about to begin a chat
function M.start_early(begins_chat)
  if may_start_early and not process and not is_ending() then
    launch(begins_chat)
  end
end

--- Sends a message, and starts the backend if none runs. The message waits for the handshake and for a restart. A
--- message that is too long, or has a value that cannot be sent, is refused with a notice.
---@param message co.FromEditor
---@return boolean taken
function M.send(message)
  local problem = message_check.problem(message)
  if problem then
    notify.error(problem)
    return false
  end
  if process and process.held then
    table.insert(process.held, message)
    return true
  end
  if not M.start() then
    return false
  end
  if process and process.ready then
    return send_now(message)
  end
  queue[#queue + 1] = message
  return true
end

--- Sends a message if a backend runs. It starts none: an answer or a `cancel` is for the backend that runs.
---@param message co.FromEditor
---@return boolean taken
function M.send_if_running(message)
  return process ~= nil and not process.ending and M.send(message)
end

--- Sends the settings if they changed since they were sent last.
local function send_changed_settings()
  if not process or process.ending then
    return
  end
  local settings, bin = config.settings(), config.get().bin
  if bin ~= process.bin then
    process.bin = bin
    notify.info('bin needs a new backend (:Co /restart)')
  end
  local current = process
  if
    not vim.deep_equal(settings, current.settings)
    and M.send_if_running({ type = 'settings', settings = settings })
  then
    current.settings = settings
  end
end

config.on_change(send_changed_settings)

--- Checks the version of the protocol and sends the messages that wait.
---@param message co.Ready
function M.on_ready(message)
  if not process then
    return
  end
  if message.protocol ~= version.protocol then
    local fix = message.protocol < version.protocol and 'run :Co /install' or 'update the plugin'
    stop_with_error(
      ('%s speaks protocol %d, the plugin %d: %s'):format(
        process.path,
        message.protocol,
        version.protocol,
        fix
      )
    )
    return
  end
  process.ready, ready_message, may_start_early = true, message, true
  local waiting = queue
  queue = {}
  for _, queued in ipairs(waiting) do
    send_now(queued)
  end
end

--- Keeps the confinement of commands that need no approval, for the winbars.
---@param message co.Isolation
function M.on_isolation(message)
  isolation = message.isolation
end

--- Keeps the choice of /sandbox.
---@param message co.Sandbox
function M.on_sandbox(message)
  sandbox = message
end

--- Tells this and each later backend whether plugins have hooks.
---@param message co.Hooks
function M.set_hooks(message)
  hooks = message
  M.send_if_running(message)
end

--- Shows the reason why the backend cannot work, and ends it.
---@param message co.Refused
function M.on_refused(message)
  stop_with_error(message.message)
end

--- Calls `callback` when the backend ends, with the reason, the messages that were never sent and those that the next
--- backend gets. The function that it returns runs after all callbacks, to raise events.
---@param callback fun(reason: string, unsent: co.FromEditor[], held: co.FromEditor[]): fun()?
function M.on_exit(callback)
  on_exit_callbacks[#on_exit_callbacks + 1] = callback
end

---@class (exact) co.backend.Status
---@field path? string
---@field running boolean
---@field ready boolean
---@field isolation? string
---@field version? string
---@field pid? integer

--- Returns what is known of the backend.
---@return co.backend.Status
function M.status()
  local known, pid = pcall(vim.fn.jobpid, process and process.channel or 0)
  return {
    path = process and process.path,
    running = process ~= nil,
    ready = process ~= nil and process.ready,
    isolation = ready_message and isolation,
    version = ready_message and ready_message.version,
    pid = known and pid or nil,
  }
end

--- Returns whether a backend runs that is not the program which a restart would start.
---@return boolean
function M.is_outdated()
  local path = executable.find()
  return process ~= nil and path ~= nil and identity(path) ~= process.file
end

--- Ends the backend; the next `send` starts another.
function M.stop()
  if process then
    process.ending = 'the backend was stopped'
    vim.fn.jobstop(process.channel)
  end
end

--- Ends the backend and starts another one, then calls `on_restarted`.
---@param on_restarted fun()
---@return boolean running a backend runs that can be replaced
function M.restart(on_restarted)
  if process and process.on_restarted then
    return true
  end
  if not process or process.ending then
    return false
  end
  process.ending = 'the backend was restarted'
  process.on_restarted, process.held = on_restarted, {}
  vim.fn.jobstop(process.channel)
  return true
end

return M
