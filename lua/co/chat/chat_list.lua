--- The list of `/chats`: the chats of this Neovim and the earlier ones of the workspace.
local M = {}

local api = vim.api
local chats = require('co.chat')
local choice = require('co.chat.choice')
local notify = require('co.ui.notify')
local printable = require('co.ui.printable')
local registry = require('co.chat.registry')
local winbar = require('co.chat.winbar')
local window = require('co.chat.window')

--- Returns the questions of a chat that wait.
---@param chat co.Chat
---@return co.Question[]
local function questions_of(chat)
  local question = package.loaded['co.question']
  return vim.tbl_filter(function(pending)
    return pending.chat == chat.id
  end, question and question.pending() or {})
end

--- Returns whether nothing has happened in a chat.
---@param chat co.Chat
---@return boolean
local function unused(chat)
  local lines = api.nvim_buf_get_lines(chat.buf, 0, -1, false)
  return not chat.state.transcript
    and not chat.unloaded
    and chat.state.state == 'idle'
    and #chat.waiting_prompts == 0
    and table.concat(lines) == ''
end

--- Returns the label of a chat of this Neovim: its state, its title and age, and what waits.
---@param chat co.Chat
---@param about string its title and age
---@param asking co.Chat the chat in which the person typed `/chats`
---@return string
local function label_of(chat, about, asking)
  local questions = questions_of(chat)
  local waits = #questions > 0 or chat.state.state == 'asking'
  local parts = {
    waits and 'waits for an answer' or chat.state.state == 'idle' and 'ready' or 'running',
    about,
  }
  if questions[1] then
    local first = printable.first_line(questions[1].command)
    local more = #questions > 1 and (' and %d more'):format(#questions - 1) or ''
    parts[#parts + 1] = winbar.shorten(first, 40) .. more
  elseif not waits and chat.state.detail ~= '' then
    parts[#parts + 1] = winbar.shorten(chat.state.detail, 40)
  end
  if #chat.waiting_prompts > 0 then
    parts[#parts + 1] = ('%d queued'):format(#chat.waiting_prompts)
  end
  if not chat.prompt:empty() then
    parts[#parts + 1] = 'a draft'
  end
  if chat == asking then
    parts[#parts + 1] = 'this chat'
  end
  return table.concat(parts, ' · ')
end

--- Continues an earlier chat. Uses the asking chat if nothing has happened in it, or else a new chat.
---@param asking co.Chat
---@param transcript string its id
local function resume(asking, transcript)
  if chats.use_open('resume', transcript) then
    return
  end
  local cwd = asking.state.cwd
  local chat = unused(asking) and asking or chats.new(cwd)
  if not chat then
    return
  end
  local message =
    { type = 'command', chat = chat.id, name = 'resume', args = transcript, cwd = cwd }
  if require('co.chat.send').message(chat, message, cwd) then
    window.go_to(chat)
  end
end

--- Lets the person choose one of the chats, and goes to it.
---@param message co.Choose the earlier chats, also those that this Neovim has open
function M.offer(message)
  local asking = registry.get(message.chat)
  if not asking then
    return
  end
  ---@type table<string, string>
  local abouts = {}
  for _, earlier in ipairs(message.choices) do
    abouts[earlier.value] = earlier.label
  end
  ---@type { label: string, value: fun() }[]
  local choices = {}
  local by_use = registry.by_use()
  for index = #by_use, 1, -1 do
    local chat = by_use[index]
    if not unused(chat) or not chat.prompt:empty() then
      local transcript = chat.state.transcript or chat.unloaded
      local title = chat.state.title or ''
      local about = transcript and abouts[transcript] or title ~= '' and title or 'no title'
      choices[#choices + 1] = {
        label = label_of(chat, about, asking),
        value = function()
          window.go_to(chat)
        end,
      }
      abouts[transcript or ''] = nil
    end
  end
  for _, earlier in ipairs(message.choices) do
    if abouts[earlier.value] then
      choices[#choices + 1] = {
        label = 'earlier · ' .. earlier.label,
        value = function()
          resume(asking, earlier.value)
        end,
      }
    end
  end
  if #choices == 0 then
    notify.info('no chat runs, and none of this workspace is kept yet')
    return
  end
  local list = { name = message.name, title = message.title, choices = choices }
  choice.offer(asking, list, function(go)
    go()
  end)
end

return M
