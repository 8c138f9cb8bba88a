--- The hooks of other plugins before a command of a model.
local M = {}

local backend = require('co.backend')
local log = require('co.ui.log')
local utf8 = require('co.ui.utf8')

--- A command of a model that is about to start. The person or a rule allowed it, or it only looks.
---@class (exact) co.api.Command
---@field chat integer
---@field command string
---@field cwd string
---@field unasked boolean it only looks, so nobody was asked

--- Returns a reason to refuse the command, or nil. It cannot allow anything.
---@alias co.api.CommandHook fun(command: co.api.Command): string?

---@type co.api.CommandHook[]
local hooks = {}

--- Adds a hook. The command waits until it has returned.
---@param hook co.api.CommandHook
---@return fun() remove
function M.add(hook)
  assert(type(hook) == 'function', 'a hook is a function')
  -- Equal functions are several hooks.
  local function entry(command)
    return hook(command)
  end
  hooks[#hooks + 1] = entry
  backend.set_hooks({ type = 'hooks', before_command = true })
  return function()
    hooks = vim.tbl_filter(function(other)
      return other ~= entry
    end, hooks)
    backend.set_hooks({ type = 'hooks', before_command = #hooks > 0 })
  end
end

--- Calls the hooks until one refuses. One that fails refuses too: it may be there to protect something.
---@param command co.api.Command
---@return string? refusal
local function refusal_of(command)
  for _, hook in ipairs(hooks) do
    local ok, refusal = pcall(hook, vim.deepcopy(command))
    if not ok then
      log.add('before_command', tostring(refusal))
      return 'its hook failed: ' .. tostring(refusal)
    elseif refusal ~= nil and refusal ~= true then
      return refusal == false and 'it gives no reason' or tostring(refusal)
    end
  end
end

--- Calls the hooks for a command and sends the answer.
---@param message co.BeforeCommand
function M.answer(message)
  local refusal = refusal_of({
    chat = message.chat,
    command = message.command,
    cwd = message.cwd,
    unasked = message.unasked,
  })
  if refusal and not utf8.valid(refusal) then
    refusal = 'its reason is not all UTF-8'
  end
  backend.send_if_running({
    type = 'command_hooked',
    request = message.request,
    refusal = refusal,
  })
end

return M
