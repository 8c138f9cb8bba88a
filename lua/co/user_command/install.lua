--- `:Co /install` installs the backend.
local M = {}

local backend = require('co.backend')
local executable = require('co.backend.executable')
local install = require('co.install')
local notify = require('co.ui.notify')
local version = require('co.version')

local running = false

--- Returns what the person must do to use the installed program.
---@return string
local function next_step()
  local found = executable.find()
  if found ~= install.path(version.version) then
    return ('; the setting "bin" names another: %s'):format(found)
  end
  return backend.is_outdated() and '; :Co /restart starts it' or ''
end

--- Installs the backend, and tells how far that got.
function M.run()
  if running then
    notify.info('co-nvim is being installed already')
    return
  end
  running = true
  install.start({
    on_step = notify.info,
    on_progress = notify.progress,
    on_done = function(problem, message)
      running = false
      notify.answer(problem or message .. next_step(), problem and 'error' or 'info')
    end,
  })
end

return M
