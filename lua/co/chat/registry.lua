--- The chats of this Neovim, and the order in which the person used them.
local M = {}

local api = vim.api

---@type table<integer, co.Chat>
local chats = {}
-- The numbers of the chats. The chat that was used last is at the end.
---@type integer[]
local used = {}
local newest = 0

--- Takes a chat out of the order.
---@param id integer
local function drop(id)
  used = vim.tbl_filter(function(other)
    return other ~= id
  end, used)
end

--- Notes that the person uses a chat.
---@param chat co.Chat
function M.use(chat)
  drop(chat.id)
  used[#used + 1] = chat.id
end

--- Adds a chat.
---@param chat co.Chat
function M.add(chat)
  chats[chat.id], newest = chat, math.max(newest, chat.id)
  M.use(chat)
end

--- Removes a chat.
---@param chat co.Chat
function M.remove(chat)
  chats[chat.id] = nil
  drop(chat.id)
end

--- Returns the chat with a number.
---@param id? integer
---@return co.Chat?
function M.get(id)
  return chats[id]
end

--- Returns the number for the next chat.
---@return integer
function M.next_id()
  return newest + 1
end

--- Returns all chats, the oldest first.
---@return co.Chat[]
function M.all()
  local found = vim.tbl_values(chats)
  table.sort(found, function(a, b)
    return a.id < b.id
  end)
  return found
end

--- Returns all chats. The chat that was used last is at the end.
---@return co.Chat[]
function M.by_use()
  return vim.tbl_map(M.get, used)
end

--- Returns the chat of a buffer: its text or its prompt.
---@param buf? integer the current one by default
---@return co.Chat?
function M.of_buffer(buf)
  buf = buf or api.nvim_get_current_buf()
  for _, chat in pairs(chats) do
    if chat.buf == buf or chat.prompt.buf == buf then
      return chat
    end
  end
end

--- Returns the chat that `:Co` acts on: that of the current buffer, or the one used last.
---@return co.Chat?
function M.current()
  return M.of_buffer() or chats[used[#used]]
end

--- Returns the chat of this Neovim that has a transcript open.
---@param transcript string its id
---@return co.Chat?
function M.with_transcript(transcript)
  for _, chat in pairs(chats) do
    if chat.state.transcript == transcript then
      return chat
    end
  end
end

return M
