--- The hooks of other plugins: before a command of a model, and after an edit.
local M = {}

local api = vim.api
local backend = require('co.backend')
local log = require('co.ui.log')
local notify = require('co.ui.notify')
local utf8 = require('co.ui.utf8')

--- A command of a model that is about to start. The person or a rule allowed it, it only looks, or it is a trial.
---@class (exact) co.api.Command
---@field chat integer
---@field command string
---@field cwd string
---@field unasked boolean it runs without approval: it only looks, or is a trial
---@field job? integer the job into which the model types `command`

--- Returns a reason to refuse the command, or nil. It cannot allow anything.
---@alias co.api.CommandHook fun(command: co.api.Command): string?

---@type { hook: co.api.CommandHook }[]
local hooks = {}

-- The most characters of an error in a sentence.
local LONGEST = 120

--- Returns what a hook threw or returned, in a few words.
---@param value any
---@return string
local function words_of(value)
  if type(value) == 'table' then
    value = type(value.message) == 'string' and value.message
      or getmetatable(value) and tostring(value)
      or vim.inspect(value, { newline = ' ', indent = '' })
  end
  local line = vim.split(tostring(value), '\n', { plain = true })[1]
  -- The name of the hook says where it is.
  line = line:gsub('^.-%.lua:%d+: ', ''):gsub('^%[string ".-"%]:%d+: ', '')
  return vim.fn.strchars(line) > LONGEST and vim.fn.strcharpart(line, 0, LONGEST) .. '…' or line
end

--- Returns the place of a hook in its source.
---@param hook function
---@return string
local function name_of(hook)
  local info = assert(debug.getinfo(hook, 'S'))
  local file = info.source:match('^@(.*)$')
  return ('%s:%d'):format(file and vim.fs.basename(file) or info.short_src, info.linedefined)
end

--- Calls a hook. An error is logged as a whole.
---@param kind string
---@param hook function
---@param argument any
---@return boolean ok
---@return any answer of the hook, or its name and the reason why it failed
local function call(kind, hook, argument)
  return xpcall(hook, function(problem)
    log.add(kind, debug.traceback(type(problem) == 'string' and problem or vim.inspect(problem)))
    return ('%s failed: %s'):format(name_of(hook), words_of(problem))
  end, argument)
end

--- Adds a hook after an edit. One that fails stops nothing.
---@param hook fun(edit: co.api.Edit)
---@return fun() remove
function M.add_after_edit(hook)
  assert(type(hook) == 'function', 'a hook is a function')
  local id = api.nvim_create_autocmd('User', {
    pattern = 'CoEdited',
    desc = 'co: a hook of a plugin',
    callback = function(event)
      local ok, problem = call('after_edit', hook, event.data)
      if not ok then
        notify.error('the hook ' .. problem)
      end
    end,
  })
  return function()
    api.nvim_del_autocmd(id)
  end
end

--- Adds a hook before a command. The command waits until it has returned.
---@param hook co.api.CommandHook
---@return fun() remove
function M.add(hook)
  assert(type(hook) == 'function', 'a hook is a function')
  -- Equal functions are several hooks.
  local entry = { hook = hook }
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
  for _, entry in ipairs(hooks) do
    local ok, refusal = call('before_command', entry.hook, vim.deepcopy(command))
    if not ok then
      return 'its hook ' .. refusal
    elseif type(refusal) == 'table' then
      return words_of(refusal)
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
    job = message.job,
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
