--- The prompts of the tool servers of chats, as slash commands, and their resources, as contexts.
local M = {}

local async = require('co.ui.async')
local backend = require('co.backend')
local notify = require('co.ui.notify')
local now = vim.uv.now

-- The longest wait for a server while the person waits for a completion, in milliseconds.
local WAIT_MS = 200

-- The age at which words are asked for again, in milliseconds.
local OLD_MS = 5 * 1000

---@type table<integer, co.ServerWords>
local told = {}

--- The words that the backend was asked for last.
---@class (exact) co.server_words.Asked
---@field query string
---@field time integer
---@field words? string[] nil: they have not come yet

---@type co.server_words.Asked?
local asked

--- Returns the words that the backend gets from a server. They may come too late for this key; then the next one has them.
---@param query co.ContextQuery
---@param wait boolean wait a short time, since the person does
---@return string[]
local function ask(query, wait)
  local chat = require('co.chat.registry').current()
  if not chat then
    return {}
  end
  local key = ('%d %s'):format(chat.id, vim.inspect(query))
  local known = asked
  if not known or known.query ~= key or now() - known.time > OLD_MS then
    if not wait then
      -- Words that the person only types must not leave the machine.
      return {}
    end
    ---@type co.server_words.Asked
    local new = { query = key, time = now() }
    known, asked = new, new
    local message = { type = 'read_context', chat = chat.id, cwd = chat.state.cwd, word = '' }
    message.query = query
    local requests = require('co.backend.requests')
    -- A completion starts no backend.
    requests.send(message, backend.send_if_running, function(read)
      local words = vim.split(read and read.text or '', '\n', { plain = true })
      new.words = vim.tbl_filter(function(word)
        return word ~= ''
      end, words)
    end)
  end
  if wait and not known.words then
    vim.wait(WAIT_MS, function()
      return known.words ~= nil
    end, 5)
  end
  return known.words or {}
end

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

--- Returns the arguments of a prompt that are not given yet, as `NAME=`.
---@param name string such as `server:prompt`
---@param given string the arguments before
---@return string[]
function M.arguments(name, given)
  local words = current()
  local before = ' ' .. given
  for _, prompt in ipairs(words and words.prompts or {}) do
    if prompt.name == name then
      local open = vim.tbl_filter(function(argument)
        return not before:find((' %s='):format(argument), 1, true)
      end, prompt.arguments)
      return vim.tbl_map(function(argument)
        return argument .. '='
      end, open)
    end
  end
  return {}
end

--- Returns a word for the arguments of a prompt, in quotes if it has blanks; nil if no quotes hold it.
---@param word string
---@return string?
local function quoted(word)
  if not word:find('[%s"\']') then
    return word
  end
  local quote = not word:find('"', 1, true) and '"' or "'"
  return not word:find(quote, 1, true) and quote .. word .. quote or nil
end

--- Returns the words that a server gives for an argument of its prompt.
---@param name string such as `server:prompt`
---@param given string the arguments before
---@param lead string
---@param wait boolean wait a short time for the server
---@return string[]
function M.values(name, given, lead, wait)
  local server, prompt = name:match('^([%w_-]+):(.+)$')
  if not current() or not server then
    return {}
  end
  local query = {
    kind = 'server_arguments',
    server = server,
    name = prompt,
    arguments = require('co.chat.prompt_files').words(given),
    text = lead,
  }
  ---@type string[]
  local found = {}
  for _, word in ipairs(ask(query, wait)) do
    found[#found + 1] = quoted(word)
  end
  return found
end

--- Returns the addresses that a server gives for the start of one, if it has a template that fits.
---@param lead string such as `@mcp:server:notes://20`
---@param wait boolean wait a short time for the server
---@return string[]
function M.addresses(lead, wait)
  local words = current()
  local typed = lead:sub(#'@mcp:' + 1):gsub('\\ ', ' ')
  for _, resource in ipairs(words and words.resources or {}) do
    if resource.arguments[1] and vim.startswith(typed, resource.name) then
      local server, uri = typed:match('^([%w_-]+):(.*)$')
      local query = { kind = 'server_addresses', server = server, uri = uri }
      return vim.tbl_map(function(address)
        return ('@mcp:%s:%s'):format(server, (address:gsub(' ', '\\ ')))
      end, ask(query, wait))
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
