--- Sentences for the person: one line each, never long or many enough to need a key.
local M = {}

local log = require('co.log')

---@type { level: integer, message: string }[]
local waiting = {}

---@param message string
---@return string
local function fitting(message)
  message = message:gsub('%s*\n%s*', ' · ')
  local room = math.max(vim.v.echospace, 20)
  if vim.fn.strdisplaywidth(message) <= room then
    return message
  end
  local rest = ' … :Co /log'
  while vim.fn.strdisplaywidth(message .. rest) > room do
    message = vim.fn.strcharpart(message, 0, vim.fn.strchars(message) - 1)
  end
  return message .. rest
end

---@type fun()
local flush

-- A message would tear the command line that is being typed, or wait behind a hit-enter prompt.
local function later()
  vim.api.nvim_create_autocmd({ 'CmdlineLeave', 'ModeChanged' }, {
    once = true,
    callback = function()
      vim.schedule(flush)
    end,
  })
end

function flush()
  if vim.api.nvim_get_mode().mode:match('^[cr]') then
    later()
    return
  end
  local batch = waiting
  waiting = {}
  table.sort(batch, function(a, b)
    return a.level > b.level
  end)
  local first = batch[1]
  if not first then
    return
  end
  -- Two lines at once would scroll and wait for <CR>.
  local more = #batch > 1 and (' (and %d more: :Co /log)'):format(#batch - 1) or ''
  local text = #batch > 1 and fitting(first.message .. more) or fitting(first.message)
  -- The same with one that nothing was drawn after.
  vim.cmd.redraw()
  vim.notify(text, first.level, { title = 'co' })
end

---@param level integer
---@param message string
local function say(level, message)
  log.add('notice', message)
  waiting[#waiting + 1] = { level = level, message = 'co: ' .. message }
  if #waiting == 1 then
    vim.schedule(flush)
  end
end

---@param message string
function M.info(message)
  say(vim.log.levels.INFO, message)
end

---@param message string
function M.warn(message)
  say(vim.log.levels.WARN, message)
end

---@param message string
function M.error(message)
  say(vim.log.levels.ERROR, message)
end

return M
