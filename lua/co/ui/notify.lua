--- Notices for the person: one line each, so that Neovim does not ask for a key. A long answer to a typed command opens
--- in a float.
local M = {}

local log = require('co.ui.log')
local popup = require('co.ui.popup')
local printable = require('co.ui.printable')
local textlock = require('co.ui.textlock')

-- The largest number of lines and of bytes of an answer in a float. The log has the whole answer.
local MOST_LINES, MOST_BYTES = 200, 64 * 1024

---@class (exact) co.NoticeEntry
---@field level integer
---@field message string
---@field answer boolean the person typed a command that it answers

---@type co.NoticeEntry[]
local waiting = {}

--- Cuts a message to one line of the screen.
---@param message string
---@return string
local function shorten(message)
  local room = math.max(vim.v.echospace, 1)
  ---@type string[]
  local parts = {}
  -- A character has at most four bytes, and a cell or more.
  for line in printable.head(message, math.max(room * 4, printable.LONGEST_LINE)):gmatch('[^\n]+') do
    line = printable.trim(line)
    parts[#parts + 1] = line ~= '' and line or nil
  end
  message = printable.for_plugins(table.concat(parts, ' · '))
  if vim.fn.strdisplaywidth(message) <= room then
    return message
  end
  local rest = room > 30 and ' … :Co /log' or '…'
  -- Cut in one step: `strcharpart` counts from the first character each time.
  message = vim.fn.strcharpart(message, 0, room)
  while vim.fn.strdisplaywidth(message .. rest) > room do
    message = vim.fn.strcharpart(message, 0, vim.fn.strchars(message) - 1)
  end
  return message .. rest
end

---@type fun()
local flush

local RETRY_MS = 50

--- Shows the notices after the command line closes, or after the key that Neovim waits for.
---@param mode string
local function flush_later(mode)
  if not mode:match('^[cr]') then
    -- There is no event for it.
    vim.defer_fn(flush, RETRY_MS)
    return
  end
  vim.api.nvim_create_autocmd({ 'CmdlineLeave', 'ModeChanged' }, {
    once = true,
    callback = function()
      vim.schedule(flush)
    end,
  })
end

--- Returns whether a message would disturb the person: it would overwrite the command line, wait behind a hit-enter
--- prompt, or fail a command that waits for a key.
---@param mode string
---@return boolean
local function would_disturb(mode)
  local waits = mode ~= 't' and vim.fn.state('S') ~= ''
  return mode:match('^[cr]') ~= nil or waits or textlock.locked()
end

--- Keeps the mode from the last line until the next key of insert mode: it would overwrite a text there at once.
local function hide_mode()
  if not vim.o.showmode then
    return
  end
  vim.o.showmode = false
  vim.api.nvim_create_autocmd({ 'CursorMovedI', 'TextChangedI', 'InsertLeave' }, {
    once = true,
    callback = function()
      vim.o.showmode = true
      return true
    end,
  })
end

--- Shows the answers that are too long for a line in a float, and returns the other notices.
---@param batch co.NoticeEntry[]
---@return co.NoticeEntry[]
local function show_long_answers(batch)
  ---@type co.NoticeEntry[]
  local others = {}
  ---@type string[]
  local lines = {}
  for _, notice in ipairs(batch) do
    if notice.answer and shorten(notice.message) ~= notice.message then
      local text = printable.trim((notice.message:gsub('^co: ', '')))
      local shown, left = printable.lines(text, MOST_LINES, MOST_BYTES)
      vim.list_extend(lines, shown)
      lines[#lines + 1] = left > 0 and ('… %s more: :Co /log'):format(printable.size(left)) or nil
    else
      others[#others + 1] = notice
    end
  end
  if #lines > 0 then
    local shown = pcall(popup.show, lines, ' co ')
    return shown and others or batch
  end
  return others
end

--- Shows the first of the notices that wait, and all long answers.
function flush()
  local mode = vim.api.nvim_get_mode().mode
  if would_disturb(mode) then
    flush_later(mode)
    return
  end
  local batch = show_long_answers(waiting)
  waiting = {}
  table.sort(batch, function(a, b)
    return a.level > b.level
  end)
  local first = batch[1]
  if not first then
    return
  end
  -- Two lines would scroll and wait for <CR>.
  local more = #batch > 1 and (' (and %d more: :Co /log)'):format(#batch - 1) or ''
  local text = #batch > 1 and shorten(first.message .. more) or shorten(first.message)
  -- So would a line after which Neovim did not redraw.
  vim.cmd.redraw()
  if mode:match('^[iR]') then
    hide_mode()
  end
  -- If 'cmdheight' is 0, Neovim waits for <CR> after each error.
  local level = vim.o.cmdheight > 0 and first.level or math.min(first.level, vim.log.levels.WARN)
  vim.notify(text, level, { title = 'co' })
end

--- Adds a notice to those that wait and to the log.
---@param level integer
---@param message string
---@param answer? boolean the person typed a command that it answers
local function add(level, message, answer)
  log.add('notice', message)
  waiting[#waiting + 1] = { level = level, message = 'co: ' .. message, answer = answer or false }
  if #waiting == 1 then
    vim.schedule(flush)
  end
end

--- Shows the answer to a command that the person typed: whole, in a float if it is long.
---@param message string
---@param level? 'info'|'warn'|'error'
function M.answer(message, level)
  add(vim.log.levels[(level or 'info'):upper()], message, true)
end

--- Shows how far something got, in place of the last such line. The log does not get it.
---@param message string
function M.progress(message)
  local mode = vim.api.nvim_get_mode().mode
  if mode:match('^n') and #waiting == 0 and not would_disturb(mode) then
    vim.api.nvim_echo({ { shorten('co: ' .. message) } }, false, {})
  end
end

--- Shows a notice.
---@param message string
function M.info(message)
  add(vim.log.levels.INFO, message)
end

--- Shows a warning.
---@param message string
function M.warn(message)
  add(vim.log.levels.WARN, message)
end

--- Shows an error.
---@param message string
function M.error(message)
  add(vim.log.levels.ERROR, message)
end

return M
