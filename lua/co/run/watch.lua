--- The watches of `:Co! ++watch`: each runs its command again after a save below the directory of the run.
local M = {}

local api = vim.api
local config = require('co.config')

---@class (exact) co.Watch
---@field run co.Run the newest run
---@field rerun fun(): boolean runs the command again, returns false if it cannot
---@field again boolean a file was saved while the command ran
---@field waits boolean the command runs again in a moment

---@type co.Watch[]
local watches = {}

--- Returns the watch whose newest run is `run`, and its index.
---@param run co.Run
---@return co.Watch?
---@return integer? index
local function watch_of(run)
  for index, watch in ipairs(watches) do
    if watch.run == run then
      return watch, index
    end
  end
end

--- Runs the command of a watch again soon, once for all files that one command saves.
---@param watch co.Watch
local function rerun_soon(watch)
  if watch.waits then
    return
  end
  watch.waits = true
  vim.schedule(function()
    watch.waits, watch.again = false, false
    if watch_of(watch.run) and not watch.rerun() then
      M.stop(watch.run)
    end
  end)
end

--- Handles a save.
---@param file string the real path
local function on_save(file)
  for _, watch in ipairs(watches) do
    local below = vim.fn.resolve(watch.run.cwd):gsub('/$', '') .. '/'
    if not vim.startswith(file, below) or file:sub(#below):find('/.git/', 1, true) then
      -- It is elsewhere, or a file such as a commit message.
    elseif watch.run.running then
      watch.again = true
    else
      rerun_soon(watch)
    end
  end
end

--- Watches for saves while there are watches.
local function update_autocommand()
  local group = api.nvim_create_augroup('co.watch', {})
  if #watches == 0 then
    return
  end
  api.nvim_create_autocmd('BufWritePost', {
    group = group,
    callback = function(event)
      -- The model's edits start no command of the person.
      if not vim.b[event.buf].co_writes then
        on_save(vim.fn.resolve(vim.fn.fnamemodify(event.match, ':p')))
      end
    end,
  })
end

--- Makes `run` the newest run of the watch of its command and directory, which is created if there is none.
---@param run co.Run
---@param rerun fun(): boolean
---@return co.Run? previous the run before, if there is one
function M.add(run, rerun)
  for _, watch in ipairs(watches) do
    local previous = watch.run
    if previous.command == run.command and previous.cwd == run.cwd then
      watch.run, watch.rerun, watch.again = run, rerun, false
      return previous
    end
  end
  watches[#watches + 1] = { run = run, rerun = rerun, again = false, waits = false }
  update_autocommand()
end

--- Runs a command again if a file was saved while it ran.
---@param run co.Run that has ended
function M.ended(run)
  local watch = watch_of(run)
  if watch and watch.again then
    rerun_soon(watch)
  end
end

--- Ends the watch of a run.
---@param run co.Run
---@return boolean ended false if it has none
function M.stop(run)
  local _, index = watch_of(run)
  if index then
    table.remove(watches, index)
    update_autocommand()
  end
  return index ~= nil
end

--- Returns the words for the status of a run; empty if it is not the newest one of a watch.
---@param run co.Run
---@return string
function M.words(run)
  if not watch_of(run) then
    return ''
  end
  local key = config.get().keys.shell.cancel
  key = type(key) == 'table' and key[1] or key
  return ' · again on save' .. (key and (', %s ends that'):format(key) or '')
end

return M
