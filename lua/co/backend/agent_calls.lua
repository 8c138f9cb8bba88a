--- The calls of co's tools by agents in terminals of this Neovim. `co-nvim mcp`, which such an agent starts, calls `call` and `cancel`
--- through Neovim's RPC, and gets the result as a notification.
local M = {}

local backend = require('co.backend')
local requests = require('co.backend.requests')
local version = require('co.version')

-- The time between two looks for agents that have ended.
local WATCH_MS = 1000

local NO_BACKEND =
  'Not run: the backend of co does not run in Neovim, or has just ended. The person reads there why.'

local CUT_OFF =
  'cut off: the backend of co ended while the call ran; whether it took effect is not known'

---@class (exact) co.AskedAgentCall
---@field protocol integer
---@field channel integer the connection of the agent
---@field number integer the agent's number of the call
---@field agent string
---@field tool string
---@field arguments string JSON
---@field cwd string

---@class (exact) co.OpenAgentCall
---@field channel integer
---@field number integer
---@field request integer the number for the backend

---@type co.OpenAgentCall[]
local open = {}
---@type uv.timer?
local timer

--- Returns the place of a call among those that are open.
---@param channel integer
---@param number integer
---@return integer?
local function place(channel, number)
  for index, call in ipairs(open) do
    if call.channel == channel and call.number == number then
      return index
    end
  end
end

--- Cancels the calls of agents that have ended. Neovim raises no event when one closes its connection.
local function look()
  for _, call in ipairs(vim.list_slice(open)) do
    if vim.tbl_isempty(vim.api.nvim_get_chan_info(call.channel)) then
      M.cancel(call.channel, call.number)
    end
  end
  if not open[1] and timer then
    timer:close()
    timer = nil
  end
end

--- Looks for agents that have ended, as long as calls are open.
local function watch()
  if timer then
    return
  end
  timer = vim.uv.new_timer()
  if timer then
    timer:start(WATCH_MS, WATCH_MS, vim.schedule_wrap(look))
  end
end

--- Passes a call to the backend, which may ask the person first. Starts the backend if none runs.
---@param asked co.AskedAgentCall
---@return string? problem the reason why the call is not passed on, for the agent
function M.call(asked)
  if asked.protocol ~= version.protocol then
    return ('Not run: co-nvim mcp speaks protocol %d, and the plugin co in Neovim %d. The person %s.'):format(
      asked.protocol,
      version.protocol,
      asked.protocol < version.protocol and 'runs :Co /install and names the new co-nvim'
        or 'updates the plugin and restarts Neovim'
    )
  end
  local channel, number = asked.channel, asked.number
  ---@type co.AgentCall
  local message = {
    type = 'agent_call',
    request = 0,
    client = channel,
    agent = asked.agent,
    tool = asked.tool,
    arguments = asked.arguments,
    cwd = asked.cwd,
  }
  local is_done, is_passed = false, false
  requests.send(message, backend.send, function(done)
    is_done = true
    local index = place(channel, number)
    if index then
      table.remove(open, index)
    end
    local text, failed = is_passed and CUT_OFF or NO_BACKEND, true
    if done then
      text, failed = done.text, done.failed
    end
    -- It fails if the agent has ended.
    pcall(vim.rpcnotify, channel, 'co_agent_call_done', number, text, failed)
  end)
  if not is_done then
    is_passed = true
    open[#open + 1] = { channel = channel, number = number, request = message.request }
    watch()
  end
end

--- Cancels a call of an agent that no longer waits for its result.
---@param channel integer
---@param number integer
function M.cancel(channel, number)
  local index = place(channel, number)
  if index then
    local call = table.remove(open, index)
    backend.send_if_running({ type = 'cancel_agent_call', request = call.request })
  end
end

return M
