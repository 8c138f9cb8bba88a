--- The one backend process of this Neovim: finds it, starts it, greets it and sends to it.
---
--- Knows nothing of what the messages mean but the handshake.
local M = {}

local config = require('co.config')
local lock = require('co.ui.textlock')
local log = require('co.ui.log')
local message_limit = require('co.backend.message_limit')
local notify = require('co.ui.notify')
local version = require('co.version')

---@class (exact) co.backend.Process
---@field channel integer
---@field path string
---@field ready boolean
---@field ending? string why it is about to end, already told
---@field bin? string the setting it was found by
---@field settings table<string, any> the last it was sent
---@field successor? fun() called when another was started in its place
---@field later? co.FromEditor[] sent to the next backend, after `successor`
---@field stderr string the last part of its standard error

---@type co.backend.Process?
local process
---@type co.FromEditor[]
local queue = {}
---@type co.Ready?
local greeting
---@type string?
local isolation
--- The choice of /sandbox, which outlives a backend that ends by itself.
---@type co.Sandbox?
local sandbox
---@type (fun(reason: string, unsent: co.FromEditor[], later: co.FromEditor[]): fun()?)[]
local mourners = {}

local ANSWER_MS = 10000

-- Enough for the last sentence of a backend.
local STDERR_KEPT = 4096

---@return string
local function plugin_root()
  local source = assert(debug.getinfo(1, 'S')).source:sub(2)
  -- The file is lua/co/backend/init.lua below the root.
  return vim.fn.fnamemodify(source, ':p:h:h:h:h')
end

--- The places a backend is looked for, best first.
---@return string[]
function M.candidates()
  local set = config.get().bin
  if set then
    return { vim.fs.normalize(set) }
  end
  local found = {
    ('%s/co/bin/co-nvim-%s'):format(vim.fn.stdpath('data'), version.version),
    plugin_root() .. '/target/release/co-nvim',
  }
  local on_path = vim.fn.exepath('co-nvim')
  if on_path ~= '' then
    found[#found + 1] = on_path
  end
  return found
end

---@return string? path
---@return string? problem
function M.find()
  for _, path in ipairs(M.candidates()) do
    if vim.fn.executable(path) == 1 then
      return path
    end
  end
  if config.get().bin then
    return nil, ('the setting "bin" names %s, which cannot be executed'):format(config.get().bin)
  end
  return nil, ('no co-nvim found: run `cargo build --release` in %s'):format(plugin_root())
end

--- Tells everybody that the backend is gone, with what it left unanswered.
---@param reason string
---@param later? co.FromEditor[] sent to the next backend
function M.bury(reason, later)
  local unsent = queue
  queue, greeting, isolation = {}, nil, nil
  lock.free(function()
    ---@type fun()[]
    local news = {}
    for _, mourner in ipairs(mourners) do
      news[#news + 1] = mourner(reason, unsent, later or {})
    end
    -- Once all have taken leave of the old one: who hears of it may want a new one at once.
    for _, tell in ipairs(news) do
      tell()
    end
  end)
end

--- Starts the next backend, and sends it the messages that the restart held back.
---@param dead co.backend.Process
---@param reason string the end of the last one, for the case that none can be started
---@param successor fun()
local function succeed(dead, reason, successor)
  sandbox = nil
  local later = dead.later or {}
  if not M.start() then
    queue = later
    M.bury(reason)
    return
  end
  successor()
  for _, message in ipairs(later) do
    M.send(message)
  end
end

--- Returns the reason why a backend ended by itself: its own last sentence, if it has one.
---@param dead co.backend.Process
---@param code integer
---@return string
local function reason_of(dead, code)
  local said
  for line in vim.gsplit(dead.stderr, '\n') do
    -- The system's loader starts its lines with the program's path, not its name.
    said = line:match('^%S-co%-nvim[^%s/]*: (.+)$') or said
  end
  return code ~= 0 and said
    or ('the backend ended (exit %d); the next :Co starts it again'):format(code)
end

---@param dead co.backend.Process
---@param code integer
local function on_exit(dead, code)
  if process ~= dead then
    return
  end
  process = nil
  local reason = dead.ending or reason_of(dead, code)
  if not dead.ending and vim.v.exiting == vim.NIL then
    notify.error(reason .. ', :Co /log says more')
  end
  M.bury(reason, dead.later)
  local successor = dead.successor
  if successor and vim.v.exiting == vim.NIL then
    lock.free(function()
      succeed(dead, reason, successor)
    end)
  end
end

---@param reason string told once, here
local function give_up(reason)
  if not process then
    return
  end
  process.ending = reason
  notify.error(reason)
  vim.fn.jobstop(process.channel)
end

---@param current co.backend.Process
local function expect_answer(current)
  vim.defer_fn(function()
    if process == current and not current.ready and not current.ending then
      give_up(('%s does not answer: is it co-nvim %s?'):format(current.path, version.version))
    end
  end, ANSWER_MS)
end

---@param message co.FromEditor
---@return boolean
local function notify_channel(message)
  if not process then
    return false
  end
  local ok, problem = pcall(vim.rpcnotify, process.channel, 'co', message)
  if not ok then
    log.add('send', tostring(problem))
  end
  return ok
end

---@return co.backend.Process?
local function launch()
  local path, problem = M.find()
  if not path then
    notify.error(problem --[[@as string]])
    return nil
  end
  ---@type co.backend.Process
  local new = {
    channel = 0,
    path = path,
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
      new.stderr = (new.stderr .. text):sub(-STDERR_KEPT)
    end,
    on_exit = function(_, code)
      on_exit(new, code)
    end,
  })
  if not ok or channel <= 0 then
    notify.error(('%s could not be started: %s'):format(path, ok and 'not executable' or channel))
    return nil
  end
  new.channel = channel
  process = new
  notify_channel({
    type = 'hello',
    protocol = version.protocol,
    version = version.version,
    settings = new.settings,
  })
  if sandbox then
    table.insert(queue, 1, sandbox)
  end
  expect_answer(new)
  -- What its answer is read by: loaded while it starts.
  require('co.handlers')
  return new
end

--- Starts the backend unless one runs; one that is about to end takes nothing any more, which is said.
---@return boolean running
function M.start()
  -- A change of the settings is sent first.
  config.get()
  if process and process.ending then
    notify.info('the backend is ending: try again in a moment')
    return false
  end
  return process ~= nil or launch() ~= nil
end

--- Sends, starting the backend where there is none; waits in a queue for the handshake, or for a restart. Refuses a
--- message that is too long, with a notice.
---@param message co.FromEditor
---@return boolean taken
function M.send(message)
  local problem = message_limit.problem(message)
  if problem then
    notify.error(problem)
    return false
  end
  if process and process.later then
    table.insert(process.later, message)
    return true
  end
  if not M.start() then
    return false
  end
  if process and process.ready then
    return notify_channel(message)
  end
  queue[#queue + 1] = message
  return true
end

--- Sends only where there is somebody to read it: what a dead backend asked needs no answer.
---@param message co.FromEditor
---@return boolean taken
function M.tell(message)
  return process ~= nil and not process.ending and M.send(message)
end

--- Sends settings that changed since the backend had them last.
local function update_settings()
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
    and M.tell({ type = 'settings', settings = settings })
  then
    current.settings = settings
  end
end

config.on_change(update_settings)

---@param message co.Ready
function M.on_ready(message)
  if not process then
    return
  end
  if message.protocol ~= version.protocol then
    local fix = message.protocol < version.protocol and 'rebuild co-nvim (`cargo build --release`)'
      or 'update the plugin'
    give_up(
      ('%s speaks protocol %d, the plugin %d: %s'):format(
        process.path,
        message.protocol,
        version.protocol,
        fix
      )
    )
    return
  end
  process.ready, greeting = true, message
  local waiting = queue
  queue = {}
  for _, queued in ipairs(waiting) do
    notify_channel(queued)
  end
end

---@param message co.Isolation
function M.on_isolation(message)
  isolation = message.isolation
end

---@param message co.Sandbox
function M.on_sandbox(message)
  sandbox = message
end

---@param message co.Refused
function M.on_refused(message)
  give_up(message.message)
end

--- Calls `mourner` with the reason, with the messages that were never sent, and with those that the next backend gets,
--- whenever the backend ends; what it returns tells others.
---@param mourner fun(reason: string, unsent: co.FromEditor[], later: co.FromEditor[]): fun()?
function M.on_end(mourner)
  mourners[#mourners + 1] = mourner
end

---@class (exact) co.backend.Status
---@field path? string
---@field running boolean
---@field ready boolean
---@field isolation? string
---@field version? string
---@field pid? integer

---@return co.backend.Status
function M.status()
  local known, pid = pcall(vim.fn.jobpid, process and process.channel or 0)
  return {
    path = process and process.path,
    running = process ~= nil,
    ready = process ~= nil and process.ready,
    isolation = greeting and isolation,
    version = greeting and greeting.version,
    pid = known and pid or nil,
  }
end

--- Ends the backend; the next `send` starts another.
function M.stop()
  if process then
    process.ending = 'the backend was stopped'
    vim.fn.jobstop(process.channel)
  end
end

--- Ends the backend and starts another in its place, then calls `started`.
---@param started fun()
---@return boolean running one runs that can be replaced
function M.restart(started)
  if process and process.successor then
    return true
  end
  if not process or process.ending then
    return false
  end
  process.ending = 'the backend was restarted'
  process.successor, process.later = started, {}
  vim.fn.jobstop(process.channel)
  return true
end

return M
