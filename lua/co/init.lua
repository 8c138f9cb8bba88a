--- The public functions: `require('co')`. Each loads the modules that it needs when it is called. Those for other plugins are in
--- `co.user_command.api`.
---@class co: co.api
local M = setmetatable({}, {
  __index = function(_, name)
    return require('co.user_command.api')[name]
  end,
})

--- Sets the settings. The call is optional, may be repeated and starts nothing.
---@param settings? table<string, any> see |co-settings|
function M.setup(settings)
  vim.validate({ settings = { settings, 'table', true } })
  require('co.config').set(settings)
end

--- Puts the cursor into the approval float, from any mode.
---@param from? 'insert'|'replace'|'terminal' the mode to return to
function M.approve(from)
  require('co.question').focus(from)
end

--- Loads the module of the chats. `co.user_command` carries out what is typed into them, so it comes first.
local function load_chats()
  require('co.user_command')
  return require('co.chat')
end

--- Hides the chat if it has the cursor, else shows it with the cursor at its prompt.
function M.toggle()
  local chats = load_chats()
  require('co.ui.windows').attempt(chats.toggle)
end

--- Shows the chat with the cursor at its prompt.
function M.open()
  load_chats().open()
end

--- Cancels the turn of the current chat.
function M.stop()
  require('co.user_command.slash').run(
    'stop',
    '',
    require('co.chat.registry').current(),
    vim.fn.getcwd()
  )
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
  local cwd = require('co.ui.directory').existing()
  return cwd and require('co.run').run(command, cwd, stdin) or nil
end

--- Runs the last command again.
function M.rerun()
  require('co.run').rerun()
end

--- Shows the shell buffer, or hides it.
function M.shell()
  require('co.ui.windows').attempt(require('co.run').toggle_shell)
end

--- Gives a `co://` buffer that a session file or `:edit` created back to the plugin.
---@param buf integer
---@param name string
function M.adopt(buf, name)
  local id, rest = name:match('^co://chat/(%d+)(.*)$')
  if id and rest and (rest == '' or rest == '/prompt' or vim.startswith(rest, '/co: ')) then
    local is = rest == '/prompt' and 'prompt' or 'text'
    load_chats().adopt(buf, tonumber(id) --[[@as integer]], is)
  elseif id and rest == '/plan' then
    require('co.chat.plan').adopt(buf, tonumber(id) --[[@as integer]])
  elseif name == 'co://shell' then
    require('co.run').adopt_shell(buf)
  end
end

--- Takes over or deletes the `co://` buffers that a session file left.
function M.restore()
  load_chats().restore()
end

--- Returns the text for the statusline: the numbers of questions and of runs, and the states of chats. It is empty if
--- there are none.
---@return string
function M.statusline()
  local parts = {}
  local approve, chat, runs =
    package.loaded['co.question'], package.loaded['co.chat.registry'], package.loaded['co.run']
  local pending = approve and #approve.pending() or 0
  if pending > 0 then
    parts[#parts + 1] = '?' .. pending
  end
  for _, one in ipairs(chat and chat.all() or {}) do
    local state = one.state.state
    if state ~= 'idle' and state ~= 'asking' then
      parts[#parts + 1] = require('co.chat.winbar').word(state)
    end
  end
  local running = runs and runs.running() or 0
  if running > 0 then
    parts[#parts + 1] = '!' .. running
  end
  return #parts > 0 and 'co ' .. table.concat(parts, ' ') or ''
end

return M
