--- Delays changes of the person's buffers while a command of the person is half done: the change and the command would
--- both count on the same lines.
---
--- It knows when a change is safe, not how a buffer is changed. Insert mode and Replace mode are safe: Neovim adjusts
--- their cursor.
local M = {}

local api = vim.api
local log = require('co.ui.log')
local retry = require('co.ui.retry')
local textlock = require('co.ui.textlock')

--- A request of the backend that waits.
---@class (exact) co.gate.Request
---@field id integer
---@field chat? integer the chat whose turn waits for the answer
---@field withdrawn? fun() is called if the request is dropped

---@class (exact) co.gate.Entry
---@field bufs integer[] the buffers that `act` changes or reads
---@field act fun()
---@field request? co.gate.Request

---@type co.gate.Entry[]
local waiting = {}
-- The text that is typed will be put into other lines too.
local inserts_block = false
-- The chats whose turns wait for longer than a moment, in their order.
---@type integer[]
local delayed = {}
---@type fun()[]
local listeners = {}

-- Neovim repeats the text of a block at the end of Insert mode, and only the start of Insert mode tells that it will.
-- Completion and `<C-r>=` leave Insert mode for a moment.
api.nvim_create_autocmd('ModeChanged', {
  group = api.nvim_create_augroup('co.gate', {}),
  pattern = '*:[iR]*',
  callback = function(event)
    if not event.match:find('^[icR]') then
      inserts_block = event.match:find('[\22\19].*:') ~= nil
    end
  end,
})

--- Returns the buffers that the command of the person may be about.
---@return 'all'|'current'|nil
local function command_scope()
  if textlock.locked() or vim.fn.getcmdwintype() ~= '' then
    return 'all'
  end
  local now = api.nvim_get_mode()
  local mode = now.mode
  local state = vim.fn.state('moxS')
  if now.blocking or mode:find('^[cr!]') or state:find('[mx]') then
    return 'all'
  elseif mode == 't' then
    -- `state()` calls each moment of terminal mode "not safe".
    return nil
  elseif mode == 'n' or mode == 'nt' then
    -- A register or an operator, or else a function that waits, for instance for a key.
    return state:find('o') and 'current' or state ~= '' and 'all' or nil
  elseif mode == 'i' or mode == 'R' or mode == 'Rv' then
    return state:find('S') and 'all' or inserts_block and 'current' or nil
  end
  return 'current'
end

--- Returns whether a command of the person is half done in one of the buffers.
---@param bufs integer[]
---@return boolean
local function half_done(bufs)
  local scope = bufs[1] and command_scope()
  return scope == 'all'
    or scope == 'current' and vim.list_contains(bufs, api.nvim_get_current_buf())
end

--- Returns whether one of the first entries is about one of the buffers.
---@param bufs integer[]
---@param last integer
---@return boolean
local function is_behind(bufs, last)
  for index = 1, last do
    for _, buf in ipairs(waiting[index].bufs) do
      if vim.list_contains(bufs, buf) then
        return true
      end
    end
  end
  return false
end

--- Calls the waiting functions that are safe now, those about one buffer in their order.
local function run_safe()
  local index = 1
  while waiting[index] do
    local entry = waiting[index]
    if is_behind(entry.bufs, index - 1) or half_done(entry.bufs) then
      index = index + 1
    else
      table.remove(waiting, index)
      local ok, problem = xpcall(entry.act, debug.traceback)
      if not ok then
        log.add('gate', tostring(problem))
      end
      -- It may have changed the mode and the queue.
      index = 1
    end
  end
end

--- Tells the listeners if other chats wait than before.
local function tell()
  local chats = {}
  for _, entry in ipairs(waiting) do
    chats[#chats + 1] = entry.request and entry.request.chat
  end
  if not vim.deep_equal(chats, delayed) then
    delayed = chats
    for _, listener in ipairs(listeners) do
      pcall(listener)
    end
  end
end

local run_later = retry.new(function()
  run_safe()
  tell()
  return waiting[1] ~= nil
end)

--- Returns whether buffers may be changed now: no command of the person is half done in them, and no change waits.
---@param bufs integer[]
---@return boolean
function M.is_open(bufs)
  return not is_behind(bufs, #waiting) and not half_done(bufs)
end

--- Calls `act` as soon as buffers may be changed, after the functions about them that wait already.
---@param bufs integer[] the buffers that `act` changes or reads
---@param act fun()
---@param request? co.gate.Request
function M.when_open(bufs, act, request)
  if M.is_open(bufs) then
    act()
    return
  end
  waiting[#waiting + 1] = { bufs = bufs, act = act, request = request }
  run_later()
end

--- Returns whether a request of the backend about a buffer waits.
---@param buf integer
---@return boolean
function M.has_request(buf)
  for _, entry in ipairs(waiting) do
    if entry.request and vim.list_contains(entry.bufs, buf) then
      return true
    end
  end
  return false
end

--- Returns whether the turn of a chat has to wait for longer than a moment.
---@param chat integer
---@return boolean
function M.delays(chat)
  return vim.list_contains(delayed, chat)
end

--- Calls `listener` when turns begin or cease to wait.
---@param listener fun()
function M.on_delay(listener)
  listeners[#listeners + 1] = listener
end

--- Drops the requests of the backend that wait: those of a chat, the one with a number, or all.
---@param which { id?: integer, chat?: integer }
function M.withdraw(which)
  local dropped = {}
  waiting = vim.tbl_filter(function(entry)
    local request = entry.request
    local drops = request
      and (not which.id or request.id == which.id)
      and (not which.chat or request.chat == which.chat)
    dropped[#dropped + 1] = drops and entry or nil
    return not drops
  end, waiting)
  for _, entry in ipairs(dropped) do
    if entry.request.withdrawn then
      entry.request.withdrawn()
    end
  end
  tell()
end

return M
