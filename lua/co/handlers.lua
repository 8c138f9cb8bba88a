--- Where the backend's messages come in. Never throws and never waits.
local M = {}

local lock = require('co.ui.textlock')
local log = require('co.ui.log')
local notify = require('co.ui.notify')
local windows = require('co.ui.windows')

---@type table<string, fun(message: table)>
local handlers = {
  ready = function(message)
    require('co.backend').on_ready(message)
  end,
  isolation = function(message)
    require('co.backend').on_isolation(message)
    -- Where there is no chat, nothing shows it.
    local chat = package.loaded['co.chat']
    if chat then
      chat.refresh()
    end
  end,
  sandbox = function(message)
    require('co.backend').on_sandbox(message)
  end,
  refused = function(message)
    require('co.backend').on_refused(message)
  end,
  notice = function(message)
    local say = notify[message.level] or notify.info
    say(message.message)
  end,
  append = function(message)
    require('co.chat').append(message)
  end,
  block = function(message)
    require('co.chat').block(message)
  end,
  state = function(message)
    require('co.chat').state(message)
  end,
  unsent = function(message)
    require('co.chat').unsent(message)
  end,
  answer_begins = function(message)
    require('co.chat').answer_begins(message)
  end,
  fold_answer = function(message)
    require('co.chat').fold_answer(message)
  end,
  replace = function(message)
    require('co.chat').replace(message)
  end,
  choose = function(message)
    require('co.chat').choose(message)
  end,
  ask = function(message)
    message.kind = require('co.question.command')
    require('co.question').ask(message)
  end,
  trust = function(message)
    message.kind = require('co.question.trust')
    message.command, message.destructive = 'trust ' .. message.name, false
    require('co.question').ask(message)
  end,
  settled = function(message)
    require('co.question').settled(message)
  end,
  run_started = function(message)
    require('co.run').started(message)
  end,
  run_output = function(message)
    require('co.run').output(message)
  end,
  run_data = function(message)
    require('co.run.terminal').data(message)
  end,
  run_ended = function(message)
    require('co.run').ended(message)
  end,
  left_ended = function(message)
    require('co.run').left_ended(message)
  end,
  event = function(message)
    require('co.ui.events').raise(message.name, message.data)
  end,
}

---@type table<string, boolean>
local told = {}

---@param message table
local function handle(message)
  -- What is absent in the backend arrives as vim.NIL.
  for name, value in pairs(message) do
    if value == vim.NIL then
      message[name] = nil
    end
  end
  local handler = handlers[message.type]
  if handler then
    handler(message)
  else
    log.add('sink', ('unknown message "%s"'):format(tostring(message.type)))
  end
end

---@param message table
local function try(message)
  local ok, problem = xpcall(handle, debug.traceback, message)
  if ok then
    return
  end
  local kind = type(message) == 'table' and tostring(message.type) or type(message)
  log.add('sink', ('%s: %s'):format(kind, problem))
  if not told[kind] then
    told[kind] = true
    notify.error(('a message of the backend ("%s") could not be shown: see :Co /log'):format(kind))
  end
end

-- These change no text; a backend whose greeting waits counts as one that does not answer.
local free = { ready = true, refused = true, notice = true, run_data = true }

--- What a message shows the output of.
---@param message table
---@return string?
local function output_of(message)
  if message.type == 'run_output' then
    return 'run ' .. message.run
  elseif message.type == 'block' then
    return ('block %d %d'):format(message.session, message.block)
  end
end

--- Takes a batch of messages, in order. One that fails is logged, told once, and the rest go on.
---@param messages table[]
function M.receive(messages)
  for _, message in ipairs(messages) do
    if type(message) ~= 'table' or free[message.type] then
      try(message)
    else
      -- A flood replaces all of its lines each time: of what waits, the last is enough.
      local patch = message.patch
      lock.free(function()
        try(message)
      end, output_of(message), type(patch) == 'table' and patch.from == 0)
    end
  end
  pcall(windows.redraw)
end

return M
