--- Brings chats back from a session file of `:mksession`.
---
--- The file keeps the ids of their transcripts in a global variable if 'sessionoptions' has "globals". Without them, the
--- chats are left out.
local M = {}

local api = vim.api
local guarded = require('co.ui.guarded')
local registry = require('co.chat.registry')

--- Notes the ids of all chats for a session file.
function M.note()
  local ids = {}
  for _, chat in ipairs(registry.all()) do
    local transcript = chat.state.transcript or chat.unloaded
    ids[#ids + 1] = transcript and ('%d=%s'):format(chat.id, transcript)
  end
  vim.g.CoChats = table.concat(ids, ' ')
end

--- Returns the id that the session file has for a chat.
---@param id integer of the chat
---@return string? transcript
local function transcript_of(id)
  local ids = ' ' .. tostring(vim.g.CoChats or '')
  return ids:match((' %d=([%%w-]+)'):format(id))
end

--- The buffers of a chat that the session file left. They are empty.
---@class (exact) co.session.Chat
---@field id integer
---@field transcript string
---@field text? integer
---@field prompt? integer

--- Returns the chats that the session file brings back, and deletes the other buffers that it left.
---@return co.session.Chat[]
function M.take()
  ---@type table<integer, co.session.Chat>
  local found = {}
  for _, buf in ipairs(api.nvim_list_bufs()) do
    local name = api.nvim_buf_get_name(buf)
    local number, rest = name:match('^co://chat/(%d+)(.*)$')
    -- The plan comes back with its chat.
    local id = tonumber(rest ~= '/plan' and number or nil) --[[@as integer?]]
    local transcript = id and transcript_of(id)
    local in_use = registry.of_buffer(buf) or not id and vim.bo[buf].buftype ~= ''
    if not vim.startswith(name, 'co://') or in_use then
      -- The session file did not leave it.
    elseif id and transcript and not registry.get(id) then
      found[id] = found[id] or { id = id, transcript = transcript }
      found[id][rest == '/prompt' and 'prompt' or 'text'] = buf
    else
      guarded.delete_buffer(buf)
    end
  end
  return vim.tbl_values(found)
end

return M
