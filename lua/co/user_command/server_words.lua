--- The prompts of the tool servers of chats, as slash commands, and their resources, as contexts.
local M = {}

local async = require('co.ui.async')
local notify = require('co.ui.notify')

---@type table<integer, co.ServerWords>
local told = {}

--- Keeps the words that the backend sends.
---@param message co.ServerWords
function M.receive(message)
  told[message.chat] = message
end

--- Returns the words of the current chat's servers.
---@return co.ServerWords?
local function current()
  local chat = require('co.chat.registry').current()
  return chat and told[chat.id] or nil
end

--- Returns the prompts of the current chat's servers as slash commands, with a few words about each.
---@return table<string, string>
function M.commands()
  ---@type table<string, string>
  local found = {}
  local words = current()
  for _, prompt in ipairs(words and words.prompts or {}) do
    found['/mcp:' .. prompt.name] = prompt.about
  end
  return found
end

--- Returns the resources of the current chat's servers as contexts.
---@return string[]
function M.contexts()
  local words = current()
  return vim.tbl_map(function(resource)
    return '@mcp:' .. (resource.name:gsub(' ', '\\ '))
  end, words and words.resources or {})
end

--- Returns the arguments of a prompt, as `NAME=`.
---@param name string such as `server:prompt`
---@return string[]
function M.arguments(name)
  local words = current()
  for _, prompt in ipairs(words and words.prompts or {}) do
    if prompt.name == name then
      return vim.tbl_map(function(argument)
        return argument .. '='
      end, prompt.arguments)
    end
  end
  return {}
end

--- Puts a prompt of a server into the draft of a chat, where the person reads it before they send it.
---@param name string such as `server:prompt`
---@param args string
---@param chat? co.Chat
---@param cwd string
---@return boolean taken
function M.run(name, args, chat, cwd)
  local server, prompt = name:match('^([%w_-]+):(.+)$')
  if not server then
    notify.error('a prompt of a tool server is /mcp:SERVER:NAME; /mcp:<Tab> lists them')
    return false
  end
  chat = chat or require('co.chat').new(cwd)
  if not chat then
    return false
  end
  local query = {
    kind = 'server_prompt',
    server = server,
    name = prompt,
    arguments = require('co.chat.prompt_files').words(args),
  }
  local function send(message)
    return require('co.chat.send').message(chat, message, message.cwd)
  end
  local reader = require('co.chat.workspace_context').reader(chat.id, cwd, send)
  async.run(function()
    local read = reader('/mcp:' .. name, query)
    if read.cancelled or read.problem then
      notify.error(('/mcp:%s was not read: %s'):format(name, read.problem or 'it was cancelled'))
      return
    end
    chat.prompt:restore(read.text or '')
    require('co.chat.window').show(chat, true)
  end)
  return true
end

return M
