--- Saves the draft of each chat's prompt. The backend writes the drafts to disk. A resumed chat gets its draft and its
--- earlier prompts back.
local M = {}

local api = vim.api
local backend = require('co.backend')
local buffer = require('co.ui.buffer')
local chat_prompt = require('co.chat.prompt')
local registry = require('co.chat.registry')
local send = require('co.chat.send')
local utf8 = require('co.ui.utf8')

-- Milliseconds from a change of a draft until it is saved.
local SAVE_AFTER = 500
-- The most bytes of a draft that is saved.
local LONGEST = 1024 * 1024
-- The longest time in milliseconds that a quitting Neovim waits until the drafts are saved. A backend may have to start
-- first.
local MOST_WAIT = 2000

--- The draft of a chat in the form that the backend stores.
---@class (exact) co.Draft
---@field text string
---@field transcript? string the id of the transcript that it belongs to

-- The chats whose draft is saved soon.
---@type table<co.Chat, true>
local due = setmetatable({}, { __mode = 'k' })

-- The drafts as they were when they were last saved. A signal that ends Neovim empties the buffers before any event.
---@type table<co.Chat, string>
local typed = setmetatable({}, { __mode = 'k' })

-- For each chat, the number of sent drafts that the backend has not confirmed yet.
---@type table<integer, integer>
local unsaved = {}

-- True if Neovim quits and waits until the drafts are saved.
local ends = false

--- Sends a draft to the backend if the draft has changed. If `begins` is true, a draft may begin a new transcript.
---@param chat co.Chat
---@param text string
---@param begins boolean
local function send_draft(chat, text, begins)
  if #text > LONGEST or not utf8.valid(text) then
    -- An older draft in its place would be misleading.
    text = ''
  end
  local transcript = chat.state.transcript or chat.unloaded
  local known = chat.draft
  local changed = text ~= known.text or transcript ~= known.transcript
  local about = transcript ~= nil or begins and text ~= ''
  if not changed or not about then
    return
  end
  local cwd = chat.state.cwd
  local message = { type = 'draft', chat = chat.id, cwd = cwd, text = text, begins = begins }
  local sent
  if begins then
    sent = send.message(chat, message, cwd)
  else
    sent = not chat.unloaded and backend.send_if_running(message)
  end
  if sent then
    chat.draft = { text = text, transcript = transcript }
    unsaved[chat.id] = (unsaved[chat.id] or 0) + 1
  end
end

--- Saves the draft of a chat that has begun.
---@param chat co.Chat
function M.save(chat)
  if not ends and registry.get(chat.id) == chat and buffer.alive(chat.prompt.buf) then
    typed[chat] = chat.prompt:draft_text()
    send_draft(chat, typed[chat], false)
  end
end

--- Saves the draft soon.
---@param chat co.Chat
function M.save_soon(chat)
  if due[chat] then
    return
  end
  due[chat] = true
  vim.defer_fn(function()
    due[chat] = nil
    M.save(chat)
  end, SAVE_AFTER)
end

--- Saves all drafts, because Neovim may quit now. The draft of a chat includes the prompts that wait for their turn.
local function save_all()
  for _, chat in ipairs(registry.all()) do
    local draft = buffer.alive(chat.prompt.buf) and chat.prompt:draft_text()
    draft = draft or vim.v.dying > 0 and typed[chat]
    if draft then
      local parts = vim.list_extend({}, chat.waiting_prompts)
      parts[#parts + 1] = draft ~= '' and draft or nil
      send_draft(chat, table.concat(parts, '\n'), true)
    end
  end
  -- If Neovim stays, the prompts wait on.
  vim.schedule(function()
    vim.tbl_map(M.save, registry.all())
  end)
end

--- Saves all drafts when Neovim quits. If a signal ends Neovim, there was no `ExitPre`. Waits until the backend has
--- confirmed the drafts, because a backend that is killed may not read its last messages.
local function save_and_wait()
  save_all()
  ends = true
  vim.wait(MOST_WAIT, function()
    return not next(unsaved) or not backend.status().running
  end, 10)
end

--- Notes that the backend has confirmed a draft.
---@param message co.DraftKept
function M.kept(message)
  local left = (unsaved[message.chat] or 1) - 1
  unsaved[message.chat] = left > 0 and left or nil
end

--- Gives a resumed chat its prompts and its draft.
---@param message co.Prompts
function M.receive(message)
  local chat = registry.get(message.chat)
  if not chat or not buffer.alive(chat.prompt.buf) then
    return
  end
  chat_prompt.add_history(message.prompts)
  local before = chat.draft
  if before.transcript == message.transcript then
    -- Another backend runs. The buffer has the draft.
    return
  end
  chat.draft = { text = message.draft or '', transcript = message.transcript }
  -- The draft of the chat that was shown before stays on disk with that chat.
  chat.prompt:restore(message.draft, before.transcript and before.text)
end

backend.on_exit(function()
  unsaved = {}
end)

--- Saves the drafts when Neovim ends.
function M.watch()
  local group = api.nvim_create_augroup('co.drafts', {})
  api.nvim_create_autocmd('ExitPre', { group = group, callback = save_all })
  -- Not earlier: if a window closes in a wait before Neovim has decided to end, `:qa` does nothing.
  api.nvim_create_autocmd('VimLeavePre', { group = group, callback = save_and_wait })
end

return M
