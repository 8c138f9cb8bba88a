-- Installs the backend. lazy.nvim runs this file after it installed or updated co, in a coroutine. Hooks of other plugin
-- managers may run it with `dofile`, and scripts with `nvim -l build.lua`.

if vim.fn.has('nvim-0.10') == 0 then
  error('co needs Neovim 0.10 or later: please update Neovim', 0)
end

-- The program is the person's own.
if type(vim.g.co) == 'table' and vim.g.co.bin then
  return
end

-- A `require` could find the files of an older co, or none.
local root = vim.fn.fnamemodify(assert(debug.getinfo(1, 'S')).source:sub(2), ':p:h')
local install = dofile(root .. '/lua/co/install.lua')

---@class (exact) co.build.Message
---@field msg string
---@field level integer

---@type co.build.Message[]
local messages = {}
local finished = false
---@type string?
local problem
-- The step that is left for the person.
local advice = ''

--- Returns what the person must do to use the installed program.
---@return string
local function next_step()
  local version, backend = package.loaded['co.version'], package.loaded['co.backend']
  if version and version.version ~= dofile(root .. '/lua/co/version.lua').version then
    return '; restart Neovim to use it'
  end
  -- An older co that is loaded may lack the function.
  local is_old = backend and backend.is_outdated and backend.is_outdated()
  return is_old and '; :Co /restart starts it' or ''
end

--- Starts the installation.
---@param show fun(message: string, level: integer) TRACE is for progress
---@return fun() cancel
local function start(show)
  return install.start({
    on_step = function(message)
      show(message, vim.log.levels.INFO)
    end,
    on_progress = function(message)
      show(message, vim.log.levels.TRACE)
    end,
    on_done = function(reason, message)
      finished, problem = true, reason
      if reason then
        show(reason, vim.log.levels.ERROR)
      else
        advice = next_step()
        show(message .. advice, vim.log.levels.INFO)
      end
    end,
  })
end

--- Gives lazy.nvim time to do other things. A coroutine that only yields keeps a processor busy.
---@async
---@param message? co.build.Message
local function yield(message)
  local async = package.loaded['lazy.async']
  if not message and async and async.running() then
    async.sleep(100)
  elseif coroutine.yield(message) == 'abort' then
    error('aborted', 0)
  end
end

--- Waits in a coroutine, and yields each message.
---@async
local function wait_in_coroutine()
  local cancel = start(function(msg, level)
    if level < vim.log.levels.ERROR then
      messages[#messages + 1] = { msg = msg, level = level }
    end
  end)
  while messages[1] or not finished do
    local ok, reason = pcall(yield, table.remove(messages, 1))
    if not ok then
      cancel()
      error(reason, 0)
    end
  end
  -- lazy.nvim hides what a task said when it ends.
  if advice ~= '' then
    vim.notify('co: the program is installed' .. advice, vim.log.levels.INFO, { title = 'co' })
  end
end

local thread, is_main = coroutine.running()
if thread and not is_main then
  ---@diagnostic disable-next-line: await-in-sync -- this is a coroutine
  wait_in_coroutine()
elseif #vim.api.nvim_list_uis() == 0 then
  ---@diagnostic disable-next-line: undefined-field -- the checker knows little of libuv
  local is_terminal = vim.uv.guess_handle(2) == 'tty'
  local start_of_line = ''
  -- A script must not end before the installation.
  start(function(message, level)
    if level > vim.log.levels.TRACE then
      io.stderr:write(start_of_line, 'co: ', message, '\n')
      start_of_line = ''
    elseif is_terminal then
      start_of_line = '\r\27[K'
      io.stderr:write(start_of_line, 'co: ', message)
    end
  end)
  vim.wait(2 ^ 31 - 1, function()
    return finished
  end)
  if problem and _G.arg then
    -- `nvim -l` would print a traceback below the sentence.
    os.exit(1)
  end
else
  start(function(message, level)
    if level > vim.log.levels.TRACE then
      vim.notify('co: ' .. message, level, { title = 'co' })
    elseif vim.api.nvim_get_mode().mode == 'n' and #message < vim.v.echospace - 4 then
      vim.api.nvim_echo({ { 'co: ' .. message } }, false, {})
    end
  end)
end
if problem then
  error(problem, 0)
end
