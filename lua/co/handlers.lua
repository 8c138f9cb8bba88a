--- Receives the messages of the backend and passes each to the module that handles it.
---
--- The backend calls `receive`. It throws no error and never waits.
local M = {}

local alert = require('co.alert')
local backend = require('co.backend')
local events = require('co.ui.events')
local log = require('co.ui.log')
local notify = require('co.ui.notify')
local textlock = require('co.ui.textlock')
local windows = require('co.ui.windows')

alert.watch()

--- Returns the handler that passes messages to a function of a module, which the first message loads.
---@param module string
---@param name string
---@return fun(message: table)
local function to(module, name)
  return function(message)
    require(module)[name](message)
  end
end

---@type table<string, fun(message: table)>
local handlers = {
  ready = function(message)
    backend.on_ready(message)
    vim.schedule(function()
      require('co.buffers').watch_saves()
    end)
  end,
  isolation = function(message)
    backend.on_isolation(message)
    -- The winbars of chats show it. If the module is not loaded, there are no chats.
    local chat = package.loaded['co.chat']
    if chat then
      chat.update_winbars()
    end
  end,
  sandbox = backend.on_sandbox,
  refused = backend.on_refused,
  notice = function(message)
    if message.answer then
      notify.answer(message.message, message.level)
    else
      local say = notify[message.level] or notify.info
      say(message.message)
    end
  end,
  append = to('co.chat', 'append'),
  call = to('co.chat', 'call'),
  block = to('co.chat', 'block'),
  state = to('co.chat', 'state'),
  unsent = to('co.chat', 'unsent'),
  prompts = to('co.chat.drafts', 'receive'),
  draft_kept = to('co.chat.drafts', 'kept'),
  plan = to('co.chat.plan', 'receive'),
  separate_answer = to('co.chat', 'separate_answer'),
  message_begins = to('co.chat', 'message_begins'),
  answer_begins = to('co.chat', 'answer_begins'),
  fold_answer = to('co.chat', 'fold_answer'),
  replace = to('co.chat', 'replace'),
  earlier = to('co.chat.earlier_text', 'receive'),
  choose = function(message)
    if message.name == 'chats' then
      require('co.chat.chat_list').offer(message)
    else
      require('co.chat').choose(message)
    end
  end,
  open_address = function(message)
    require('co.ui.browser').open(message.address)
  end,
  models = to('co.user_command.models', 'receive'),
  server_words = to('co.user_command.server_words', 'receive'),
  agent_words = to('co.user_command.agent_words', 'receive'),
  question = function(message)
    local change = message.change
    if message.choices and message.choices[1] then
      message.kind = require('co.question.choices')
    elseif message.hosts then
      message.kind = require('co.question.hosts')
    elseif message.server then
      message.kind = require('co.question.server_call')
    elseif message.run then
      message.kind = require('co.question.run_trial')
    elseif change and change.undo then
      message.kind = require('co.question.undo')
    elseif message.commit then
      message.kind = require('co.question.commit')
    elseif message.agent and not change then
      message.kind = require('co.question.terminal_agent')
    else
      message.kind = require(change and 'co.question.change' or 'co.question.command')
    end
    require('co.question').add(message)
    if message.review then
      require('co.question.inline').open(message)
    end
  end,
  trust = function(message)
    message.kind = require('co.question.trust')
    message.command, message.destructive = 'trust ' .. message.name, false
    require('co.question').add(message)
  end,
  output_read = to('co.backend.requests', 'receive'),
  agent_call_done = to('co.backend.requests', 'receive'),
  context_read = to('co.backend.requests', 'receive'),
  prompt_file_checked = to('co.backend.requests', 'receive'),
  quickfix = to('co.ui.locations', 'list'),
  changes = to('co.question.changes', 'open'),
  open_changes = to('co.buffers.changed_lines', 'show_open'),
  review_part = to('co.question.review', 'receive'),
  no_undo = to('co.question', 'set_no_undo'),
  settled = function(message)
    require('co.question').settle(message)
    require('co.question.changes').settle(message)
    require('co.backend.requests').settle(message)
  end,
  run_started = to('co.run', 'started'),
  open_terminal = function(message)
    require('co.run').run(message.command, message.cwd, nil, { mode = 'pty' })
  end,
  run_output = to('co.run', 'output'),
  run_data = to('co.run.terminal', 'write'),
  run_ended = to('co.run', 'ended'),
  left_ended = to('co.run', 'left_ended'),
  read_buffers = to('co.buffers', 'read'),
  change_buffer = to('co.buffers', 'change'),
  withdraw_request = function(message)
    require('co.buffers').withdraw(message)
    local file_editor = package.loaded['co.run.file_editor']
    if file_editor then
      file_editor.withdraw(message)
    end
  end,
  file_gone = to('co.buffers.file_gone', 'follow'),
  editor_query = to('co.buffers.editor_query', 'answer'),
  edit_file = to('co.run.file_editor', 'open'),
  commit_message = to('co.chat.commit', 'receive'),
  before_command = to('co.hooks', 'answer'),
  event = function(message)
    events.raise(message.name, message.data)
  end,
}

-- The types of messages that the backend waits for an answer to, other than questions.
local requests = {
  read_buffers = true,
  change_buffer = true,
  editor_query = true,
  before_command = true,
  edit_file = true,
}

--- Returns whether a value is a number that the backend may have given.
---@param value any
---@return boolean
local function is_id(value)
  return type(value) == 'number' and value >= 0 and value % 1 == 0
end

--- Tells the backend that a message failed for whose answer a turn may wait.
---@param message table
local function give_up(message)
  if is_id(message.id) and (message.type == 'question' or message.type == 'changes') then
    require('co.question').deny_unshown(message.id)
  elseif is_id(message.request) and requests[message.type] then
    backend.send_if_running({ type = 'failed', request = message.request })
  end
end

-- The types of messages whose failure was shown.
---@type table<string, boolean>
local reported = {}

--- Calls the handler of a message.
---@param message table
local function handle(message)
  local handler = handlers[message.type]
  if handler then
    handler(message)
  else
    log.add('handlers', ('unknown message "%s"'):format(tostring(message.type)))
  end
end

--- Handles a message. An error is logged, and shown once for each type.
---@param message table
local function try(message)
  local ok, problem = xpcall(handle, debug.traceback, message)
  if ok then
    return
  end
  local kind = type(message) == 'table' and tostring(message.type) or type(message)
  log.add('handlers', ('%s: %s'):format(kind, problem))
  if type(message) == 'table' then
    pcall(give_up, message)
  end
  if not reported[kind] then
    reported[kind] = true
    notify.error(('a message of the backend ("%s") could not be shown: see :Co /log'):format(kind))
  end
end

-- Messages that change no text are handled at once. A greeting that waits would count as none.
local immediate = { ready = true, refused = true, notice = true, run_data = true, models = true }

--- Returns a key for the output that a message shows.
---@param message table
---@return string?
local function output_key(message)
  if message.type == 'run_output' then
    return ('run %s'):format(message.run)
  elseif message.type == 'block' then
    return ('block %s %s'):format(message.chat, message.block)
  end
end

--- Handles a batch of messages in their order. One that fails does not stop the others.
---@param messages table[]
function M.receive(messages)
  for _, message in ipairs(messages) do
    if type(message) ~= 'table' or immediate[message.type] then
      try(message)
    else
      -- A patch from the first line replaces all lines, so it also replaces patches that still wait.
      local patch = message.patch
      textlock.when_unlocked(function()
        try(message)
      end, output_key(message), type(patch) == 'table' and patch.from == 0)
    end
  end
  local question = package.loaded['co.question']
  if question then
    pcall(question.make_room)
  end
  pcall(windows.redraw)
end

return M
