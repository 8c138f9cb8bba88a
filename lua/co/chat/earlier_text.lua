--- Loads the text of a resumed chat above its end, which the person sees at once.
---
--- The backend sends one part when this module asks for it, so Neovim handles keys between two parts.
local M = {}

local api = vim.api
local backend = require('co.backend')
local buffer = require('co.ui.buffer')
local registry = require('co.chat.registry')
local textlock = require('co.ui.textlock')

-- The least milliseconds between two parts.
local PAUSE = 5
-- Milliseconds until the next try if a part has to wait.
local RETRY = 50

--- Asks for the next part, if there is one and the backend can send it.
---@param chat co.Chat
function M.ask(chat)
  if chat.text.above == 0 or not buffer.alive(chat.buf) then
    return
  end
  local message = { type = 'earlier_text', chat = chat.id, above = chat.text.above }
  if chat.unloaded or not backend.send_if_running(message) then
    -- The backend ended while a part waited, and another one may run that has not loaded the chat.
    chat.text:stop_loading()
  end
end

--- Returns true if new text above would disturb the person. A selection, a pending operator and the command line use
--- line numbers, and Neovim does not adjust these numbers.
---@param chat co.Chat
---@return boolean
local function disturbs(chat)
  return api.nvim_get_current_buf() == chat.buf and api.nvim_get_mode().mode ~= 'n'
end

--- Puts a part above the text as soon as it does not disturb the person, and asks for the next one.
---@param part co.Earlier
function M.receive(part)
  local chat = registry.get(part.chat)
  local alive = chat and buffer.alive(chat.buf)
  if not chat or not alive or chat.text.above ~= part.above + #part.text then
    -- The chat was closed, or the part belongs to a text that was replaced.
    return
  end
  if disturbs(chat) then
    vim.defer_fn(function()
      textlock.when_unlocked(function()
        M.receive(part)
      end)
    end, RETRY)
    return
  end
  local began = vim.uv.hrtime()
  chat.text:prepend(part)
  local took = (vim.uv.hrtime() - began) / 1e6
  vim.defer_fn(function()
    M.ask(chat)
  end, math.max(PAUSE, math.ceil(took)))
end

return M
