--- Prevents Neovim from quitting while commands run or questions wait, as it does for its own terminals.
---
--- An autocommand cannot refuse to quit, but a modified buffer can. So a buffer named after the commands exists while
--- Neovim decides. It is deleted before the next key.
local M = {}

local api = vim.api
local guarded = require('co.ui.guarded')
local notify = require('co.ui.notify')
local printable = require('co.ui.printable')

local RETRY_MS = 50
-- The most characters of one command, and of all.
local SHORT, LONGEST = 60, 300

--- Cuts a text to at most `most` characters.
---@param text string
---@param most integer
---@return string
local function cut(text, most)
  return vim.fn.strchars(text) > most and vim.fn.strcharpart(text, 0, most - 1) .. '…' or text
end

---@class (exact) co.quit.Reasons the first lines of commands
---@field running string[] they would end with Neovim
---@field unanswered string[] their questions would get no answer

---@class (exact) co.quit.Source
---@field kind 'running'|'unanswered'
---@field commands fun(): string[]

---@type co.quit.Source[]
local sources = {}

--- Returns the reasons to stay.
---@return co.quit.Reasons
local function find_reasons()
  ---@type co.quit.Reasons
  local reasons = { running = {}, unanswered = {} }
  for _, source in ipairs(sources) do
    for _, command in ipairs(source.commands()) do
      table.insert(reasons[source.kind], cut(printable.first_line(printable.trim(command)), SHORT))
    end
  end
  return reasons
end

--- Returns the name of the modified buffer. Neovim's error shows it.
---@param reasons co.quit.Reasons
---@return string
local function buffer_name(reasons)
  local parts = {}
  for _, kind in ipairs({ 'running', 'unanswered' }) do
    if #reasons[kind] > 0 then
      parts[#parts + 1] = ('%s: %s'):format(kind, table.concat(reasons[kind], ', '))
    end
  end
  return cut('co://' .. table.concat(parts, '; '), LONGEST)
end

--- Returns the count and a phrase, such as '2 questions wait': `one` if the count is 1, otherwise `many`. Returns nil
--- if the count is 0.
---@param count integer
---@param one string
---@param many string
---@return string?
local function counted(count, one, many)
  return count > 0 and ('%d %s'):format(count, count == 1 and one or many) or nil
end

--- Returns the notice after Neovim stayed.
---@param reasons co.quit.Reasons
---@return string
local function notice(reasons)
  local running = reasons.running
  local questions = counted(#reasons.unanswered, 'question waits', 'questions wait')
  if not questions then
    return #running == 1 and ('%s still runs: :qa! ends it and quits'):format(running[1])
      or ('%d commands still run: :qa! ends them and quits'):format(#running)
  end
  local commands = counted(#running, 'command still runs, ', 'commands still run, ') or ''
  return ('%s%s: :qa! quits anyway'):format(commands, questions)
end

--- Creates the modified buffer.
---@param reasons co.quit.Reasons
---@return integer buf
local function create(reasons)
  local buf = api.nvim_create_buf(false, false)
  local options = vim.bo[buf]
  options.buftype, options.bufhidden, options.swapfile = 'acwrite', 'hide', false
  -- The filetype marks buffers of the plugin.
  guarded.set_option(buf, 'filetype', 'co-running')
  api.nvim_buf_set_name(buf, buffer_name(reasons))
  -- `:wqa` and the dialogue of `:confirm` write the buffer: it must stay modified.
  api.nvim_create_autocmd('BufWriteCmd', { buffer = buf, callback = function() end })
  options.modified = true
  return buf
end

--- Shows a buffer in a hidden window. Neovim goes to this window instead of changing the person's window.
---@param buf integer
---@return integer? win
local function hidden_window(buf)
  local opened, win = pcall(guarded.open_window, buf, false, {
    relative = 'editor',
    row = 0,
    col = 0,
    width = 1,
    height = 1,
    focusable = false,
    hide = true,
    noautocmd = true,
  })
  return opened and win or nil
end

---@type integer?
local blocker

--- Deletes the buffer after Neovim decided to stay.
---@param reasons co.quit.Reasons
---@param back integer the window of the person
---@param win? integer
local function clear(reasons, back, win)
  if vim.v.exiting ~= vim.NIL then
    return
  end
  if api.nvim_get_mode().mode:match('^r') then
    -- The dialogue is open: it asks about the buffer.
    vim.defer_fn(function()
      clear(reasons, back, win)
    end, RETRY_MS)
    return
  end
  if win and api.nvim_get_current_win() == win and api.nvim_win_is_valid(back) then
    guarded.go_to_window(back)
  end
  if blocker then
    guarded.delete_buffer(blocker)
    blocker = nil
  end
  notify.warn(notice(reasons))
end

--- Refuses to quit if there is a reason.
local function on_exit()
  local reasons = find_reasons()
  if #reasons.running + #reasons.unanswered == 0 or blocker then
    return
  end
  local back = api.nvim_get_current_win()
  blocker = create(reasons)
  local win = hidden_window(blocker)
  vim.schedule(function()
    clear(reasons, back, win)
  end)
end

--- Refuses to quit while `commands` returns a command. Each function counts once.
---@param kind 'running'|'unanswered' the commands run, or wait for an answer
---@param commands fun(): string[]
function M.refuse_while(kind, commands)
  for _, source in ipairs(sources) do
    if source.commands == commands then
      return
    end
  end
  sources[#sources + 1] = { kind = kind, commands = commands }
  -- This event does not come for `:q` in one of several windows. It comes before the check for modified buffers.
  api.nvim_create_autocmd('ExitPre', {
    group = api.nvim_create_augroup('co.quit', {}),
    callback = on_exit,
  })
end

return M
