--- What others may call: `require('co')`. Loads the rest when it is used.
local M = {}

--- Takes settings; optional, may be called again, starts nothing.
---@param settings? table<string, any> see |co-settings|
function M.setup(settings)
  vim.validate({ settings = { settings, 'table', true } })
  require('co.config').set(settings)
end

--- Puts the cursor into the approval float, from any mode.
---@param from? 'insert'|'terminal' the mode that was just left
function M.approve(from)
  require('co.question').focus(from)
end

--- Shows the chat with the cursor at its prompt, or hides it.
function M.toggle()
  local chat = require('co.chat')
  local current = chat.current()
  if current and require('co.ui.windows').here(current.buf) then
    chat.hide(current)
  else
    require('co.ui.windows').attempt(M.open)
  end
end

--- Shows the chat with the cursor at its prompt.
function M.open()
  local chat = require('co.chat')
  local shown = chat.current() or require('co.user_command').new_chat()
  if shown then
    chat.show(shown, true)
  end
end

--- Cancels the turn of the current chat.
function M.stop()
  require('co.user_command.slash').run('stop', '', require('co.chat').current(), vim.fn.getcwd())
end

--- Sends a prompt to the current chat.
---@param text string
---@param context? co.Context[]
---@return boolean taken
function M.prompt(text, context)
  return require('co.user_command').prompt(text, context)
end

--- Runs a command in the current window's directory.
---@param command string
---@param stdin? string
---@return integer? run
function M.run(command, stdin)
  local cwd = require('co.user_command').cwd()
  return cwd and require('co.run').run(command, cwd, stdin) or nil
end

--- Runs the last command again.
function M.rerun()
  require('co.run').rerun()
end

--- Shows the shell buffer, or hides it.
function M.shell()
  require('co.ui.windows').attempt(require('co.run.shell_buffer').toggle)
end

--- Takes over a `co://` buffer that something else made.
---@param buf integer
---@param name string
function M.adopt(buf, name)
  local id = name:match('^co://chat/(%d+)$')
  if id then
    require('co.chat').adopt(buf, tonumber(id) --[[@as integer]])
  elseif name == 'co://shell' then
    require('co.run.shell_buffer').adopt(buf)
  end
end

--- For the statusline: what waits and what runs; empty while nothing does, and before the first use.
---@return string
function M.statusline()
  local parts = {}
  local approve, chat, runs =
    package.loaded['co.question'], package.loaded['co.chat'], package.loaded['co.run']
  local pending = approve and #approve.pending() or 0
  if pending > 0 then
    parts[#parts + 1] = '?' .. pending
  end
  for _, one in ipairs(chat and chat.all() or {}) do
    local state = one.state.state
    if state ~= 'idle' and state ~= 'asking' then
      parts[#parts + 1] = state
    end
  end
  local running = runs and runs.running() or 0
  if running > 0 then
    parts[#parts + 1] = '!' .. running
  end
  return #parts > 0 and 'co ' .. table.concat(parts, ' ') or ''
end

return M
