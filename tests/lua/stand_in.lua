-- A program in the place of co-nvim that speaks msgpack-RPC on its standard streams.
--
-- Its argument says what it does: `ready`, `mismatch`, `refuse`, `die` (after the handshake), `mute`, `noise`,
-- `queue` (answers no prompt, and dies of a run).
-- Every message it gets is a line in the file that CO_TEST_LOG names.

package.path = vim.fs.dirname(arg[0]) .. '/?.lua;' .. package.path
local messages = require('messages')
local version = dofile(vim.fs.dirname(arg[0]) .. '/../../lua/co/version.lua')

local behaviour = arg[1]
local log = assert(io.open(assert(os.getenv('CO_TEST_LOG')), 'a'))

---@param message table
local function send(message)
  local call = { 2, 'nvim_exec_lua', { "require('co.handlers').receive(...)", { { message } } } }
  io.stdout:write(vim.mpack.encode(call))
  io.stdout:flush()
end

---@param protocol integer
local function ready(protocol)
  send({ type = 'ready', protocol = protocol, version = '0.1.0' })
  send({ type = 'isolation', isolation = 'unasked: read-only' })
end

---@type table<string, fun()>
local greetings = {
  ready = function()
    ready(version.protocol)
  end,
  mismatch = function()
    ready(99)
  end,
  refuse = function()
    send({ type = 'refused', message = 'the plugin is too old: update it' })
  end,
  die = function()
    ready(version.protocol)
  end,
  noise = function()
    io.stderr:write('a line for the log\n')
    ready(version.protocol)
  end,
  queue = function()
    ready(version.protocol)
  end,
  mute = function() end,
}

local prompts = 0

---@type table<string, fun(message: table)>
local answers = {
  hello = function()
    greetings[behaviour]()
  end,
  prompt = function(message)
    if behaviour == 'queue' then
      prompts = prompts + 1
      local fields = { chat = message.chat, queued = prompts - 1, taken_prompts = 1 }
      if prompts == 1 then
        send(messages.state('idle', fields))
      end
      send(messages.state('thinking', fields))
    end
  end,
  run = function(message)
    if behaviour == 'die' or behaviour == 'queue' then
      os.exit(3)
    end
    send({
      type = 'run_output',
      run = message.run,
      patch = { skipped = 0, from = 0, lines = { 'ran ' .. message.command }, styles = {} },
    })
    send({ type = 'run_ended', run = message.run, status = 'exit 0', exit = 0 })
  end,
}

local unpack_message = vim.mpack.Unpacker()
local pending = ''
while true do
  local byte = io.read(1)
  if not byte then
    os.exit(0)
  end
  pending = pending .. byte
  local message, after = unpack_message(pending)
  if message ~= nil then
    pending = pending:sub(after)
    local body = message[3][1]
    log:write(vim.json.encode(body), '\n')
    log:flush()
    if answers[body.type] then
      answers[body.type](body)
    end
  elseif after > #pending then
    pending = ''
  end
end
