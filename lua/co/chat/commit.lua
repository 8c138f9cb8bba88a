--- `/commit`: writes a commit message into the buffer of the message. If no commit is being edited, co asks the person
--- about the message, the files and the command of a new commit.
local M = {}

local api = vim.api
local backend = require('co.backend')
local file_editor = require('co.run.file_editor')
local gate = require('co.ui.gate')
local notify = require('co.ui.notify')
local printable = require('co.ui.printable')
local send = require('co.chat.send')
local utf8 = require('co.ui.utf8')

-- The variables that git gives its editor. Without them, the backend would read another repository or another index.
local VARIABLES = { 'GIT_DIR', 'GIT_INDEX_FILE', 'GIT_WORK_TREE' }

-- The most bytes of a message.
local LONGEST = 64 * 1024

-- The buffer that gets the message, by chat.
---@type table<integer, integer>
local waiting = {}

--- Returns the buffer of a commit message: the current one, or another one in this tab page.
---@return integer?
local function commit_buffer()
  local wins = vim.list_extend({ api.nvim_get_current_win() }, api.nvim_tabpage_list_wins(0))
  for _, win in ipairs(wins) do
    local buf = api.nvim_win_get_buf(win)
    if vim.bo[buf].filetype == 'gitcommit' then
      return buf
    end
  end
end

--- Returns the working tree of the commit in a buffer, and the variables that git gave its editor.
---@param buf integer
---@return string directory
---@return string[][] variables
local function place_of(buf)
  local program = file_editor.program(buf)
  if program then
    return program.directory, program.variables
  end
  -- git has started this Neovim.
  ---@type string[][]
  local variables = {}
  for _, name in ipairs(VARIABLES) do
    local value = vim.env[name]
    if value then
      variables[#variables + 1] = { name, value }
    end
  end
  local directory = api.nvim_buf_get_name(buf):match('^(.*)/%.git/[^/]+$') or vim.fn.getcwd()
  return directory, variables
end

--- Shows the reason why there is no message, and ends the wait of a chat for one.
---@param problem string
---@param chat? integer
local function fail(problem, chat)
  if chat then
    waiting[chat] = nil
  end
  notify.error('no commit message: ' .. problem)
end

--- Asks the backend for a new commit. The model of the chat writes the message, and the backend asks about the commit.
---@param chat co.Chat
---@param cwd string the directory of the chat, if it is new
---@return boolean taken
local function ask(chat, cwd)
  local taken = send.message(chat, {
    type = 'command',
    chat = chat.id,
    name = 'commit',
    args = '',
    cwd = cwd,
    options = require('co.run.options').message({}),
  }, cwd)
  if taken then
    require('co.chat.window').show(chat, false)
  end
  return taken
end

--- Asks the model of a chat for the message of the commit that is being edited, or of a new one.
---@param chat co.Chat
---@param cwd string the directory of the chat, if it is new
---@return boolean taken
function M.write(chat, cwd)
  local buf = commit_buffer()
  if not buf then
    return ask(chat, cwd)
  elseif waiting[chat.id] then
    fail('the model still writes one (<C-c> cancels it)')
    return false
  end
  local directory, variables = place_of(buf)
  local names = { directory }
  for _, variable in ipairs(variables) do
    names[#names + 1] = variable[2]
  end
  if not utf8.valid(table.concat(names, ' ')) then
    fail('the name of its directory is not all UTF-8')
    return false
  end
  waiting[chat.id] = buf
  local message = {
    type = 'write_commit',
    chat = chat.id,
    cwd = cwd,
    directory = directory,
    variables = variables,
  }
  if not send.message(chat, message, cwd) then
    waiting[chat.id] = nil
  end
  return true
end

--- Puts the message above the text of its buffer.
---@param message co.CommitMessage
function M.receive(message)
  local buf = waiting[message.chat]
  waiting[message.chat] = nil
  if not message.text then
    return fail(message.problem or 'the model wrote none')
  elseif #message.text > LONGEST then
    return fail(('the model wrote %s'):format(printable.size(#message.text)))
  elseif not buf or not api.nvim_buf_is_loaded(buf) then
    return fail('its buffer was closed')
  end
  local lines = vim.split(message.text, '\n', { plain = true })
  gate.when_open({ buf }, function()
    local open = api.nvim_buf_is_loaded(buf)
    if not open or not pcall(api.nvim_buf_set_lines, buf, 0, 0, true, lines) then
      fail("its buffer is closed or not 'modifiable'")
    end
  end)
end

backend.on_exit(function(reason)
  if next(waiting) then
    waiting = {}
    fail(reason)
  end
end)

return M
