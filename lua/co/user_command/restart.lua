--- `:Co /restart` replaces the backend by a new one.
local M = {}

local backend = require('co.backend')
local notify = require('co.ui.notify')
local registry = require('co.chat.registry')

-- More names do not fit into one line.
local NAMED = 3

--- Returns the name of a run with its command.
---@param run co.Run
---@return string
local function name(run)
  local label = require('co.run').label(run)
  if run.left and run.options and run.options.trial then
    return ('the question about %s'):format(label)
  elseif run.left then
    return ('the processes that %s left running'):format(label)
  end
  return ('%s (%s)'):format(label, vim.fn.strcharpart(vim.split(run.command, '\n')[1], 0, 40))
end

--- Returns the names of the runs, turns and commands that would end with the backend.
---@return string[]
local function busy()
  local found = {}
  local runs = require('co.run').all()
  table.sort(runs, function(a, b)
    return a.id < b.id
  end)
  for _, run in ipairs(runs) do
    if run.running or run.left then
      found[#found + 1] = name(run)
    end
  end
  for _, chat in ipairs(registry.all()) do
    if chat.state.state ~= 'idle' then
      found[#found + 1] = ('the turn of chat %d'):format(chat.id)
    elseif #(chat.state.commands or {}) > 0 then
      found[#found + 1] = ('the ! command of chat %d'):format(chat.id)
    end
  end
  return found
end

--- Loads the transcript of each chat in the new backend.
local function resume_chats()
  for _, chat in ipairs(registry.all()) do
    if chat.unloaded then
      local cwd = chat.state.cwd
      local message =
        { type = 'command', chat = chat.id, name = 'resume', args = chat.unloaded, cwd = cwd }
      require('co.chat.send').message(chat, message, cwd)
    end
  end
  notify.info('a new backend runs')
end

--- Starts a new backend. If something runs, `force` is needed: without it, a notice names what runs.
---@param force boolean
---@return boolean taken
function M.restart(force)
  local running = busy()
  if #running > 0 and not force then
    local named = table.concat(vim.list_slice(running, 1, NAMED), ', ')
    local more = #running > NAMED and (' and %d more'):format(#running - NAMED) or ''
    notify.warn(('not restarted: %s%s would end; :Co /restart! ends them'):format(named, more))
    return false
  end
  if not backend.restart(resume_chats) then
    notify.info('no backend runs: the next :Co starts one')
  end
  return true
end

return M
