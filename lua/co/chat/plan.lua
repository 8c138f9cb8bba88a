--- The buffer of a chat's plan, `co://chat/1/plan`: the person edits what the model answered to `/plan`, and `:w` keeps it.
local M = {}

local api = vim.api
local buffer = require('co.ui.buffer')
local config = require('co.config')
local focus = require('co.ui.focus')
local gate = require('co.ui.gate')
local guarded = require('co.ui.guarded')
local notify = require('co.ui.notify')
local registry = require('co.chat.registry')
local send = require('co.chat.send')
local utf8 = require('co.ui.utf8')
local windows = require('co.ui.windows')

-- The start of a prompt that asks for a plan.
local PLAN = '/plan '

--- Returns the buffer of the plan of a chat.
---@param id integer
---@return integer? buf
local function find(id)
  local buf = vim.fn.bufnr(('^co://chat/%d/plan$'):format(id))
  return buf ~= -1 and buf or nil
end

--- Saves the text of the buffer as the plan of the chat. Returns true if the backend gets the text.
---@param id integer of the chat
---@param buf integer
---@return boolean kept
local function keep(id, buf)
  local chat = registry.get(id)
  local text = table.concat(api.nvim_buf_get_lines(buf, 0, -1, false), '\n')
  if not chat then
    notify.error('the plan was not kept: its chat is closed; copy the text')
    return false
  elseif not utf8.valid(text) then
    notify.error('the plan was not kept: it is not all UTF-8; change that, then :write it')
    return false
  end
  local message = { type = 'keep_plan', chat = id, cwd = chat.state.cwd, text = text }
  local kept = send.message(chat, message, chat.state.cwd)
  if kept then
    vim.bo[buf].modified = false
  end
  return kept
end

--- Asks the backend for the plan. With the answer, the buffer opens.
---@param chat co.Chat
---@param cwd string
---@return boolean taken
local function ask(chat, cwd)
  local message = { type = 'command', chat = chat.id, name = 'plan', args = '', cwd = cwd }
  return send.message(chat, message, cwd)
end

--- Makes the buffer of the plan of a chat.
---@param id integer
---@param existing? integer a buffer that has the name already
---@return integer buf
local function make(id, existing)
  local buf = buffer.scratch(('co://chat/%d/plan'):format(id), 'co-plan', existing)
  vim.bo[buf].buftype = 'acwrite'
  -- No parser: the person may type what it takes long for.
  guarded.set_option(buf, 'syntax', 'markdown')
  local group = api.nvim_create_augroup('co.plan.' .. id, {})
  api.nvim_create_autocmd('BufWriteCmd', {
    group = group,
    buffer = buf,
    callback = function()
      keep(id, buf)
    end,
  })
  return buf
end

--- Puts a plan into its buffer.
---@param buf integer
---@param text string
local function set(buf, text)
  buffer.close_undo_block(buf)
  buffer.set_lines(buf, 0, -1, vim.split(text, '\n', { plain = true }))
  buffer.close_undo_block(buf)
  vim.bo[buf].modified = false
end

--- Shows the buffer of the plan in a window.
---@param buf integer
local function show(buf)
  local win = windows.in_tabpage(buf)
  windows.attempt(function()
    win = win or windows.open(buf, config.get().layout == 'float' and 'float' or 'horizontal')
  end)
  if win and focus.is_waiting() then
    windows.enter(win)
  end
end

--- Takes in the plan of a chat.
---@param message co.Plan
function M.receive(message)
  if not registry.get(message.chat) then
    return
  end
  local known = find(message.chat)
  local buf = known and buffer.alive(known) and known or make(message.chat)
  gate.when_open({ buf }, function()
    if not buffer.alive(buf) then
      return
    elseif not vim.bo[buf].modified then
      set(buf, message.text)
    elseif not message.open then
      notify.warn(
        'the buffer of the plan keeps your changes: :write keeps them in place of the new plan, :edit! shows that'
      )
    end
    if message.open then
      show(buf)
    end
  end)
end

--- Carries out `/plan`: asks for a plan of a task, or opens the plan.
---@param chat co.Chat
---@param task string
---@param cwd string
---@param context? co.Context[]
---@return boolean taken
function M.plan(chat, task, cwd, context)
  if task == '' then
    return ask(chat, cwd)
  end
  return send.prompt(chat, PLAN .. task, cwd, context)
end

--- Carries out `/go`: saves the person's changes of the plan, and starts the work with the plan.
---@param chat co.Chat
---@param cwd string
---@return boolean taken
function M.go(chat, cwd)
  if chat.state.state ~= 'idle' then
    notify.info('a turn is running: send /go when it has ended')
    return false
  end
  local buf = find(chat.id)
  if buf and buffer.alive(buf) and vim.bo[buf].modified and not keep(chat.id, buf) then
    return false
  end
  return send.prompt(chat, '/go', cwd)
end

--- Adds `/plan` to the start of a chat's prompt, or removes it.
---@param chat co.Chat
function M.toggle(chat)
  local lines = chat.prompt:lines()
  local first = lines[1] or ''
  local old = vim.startswith(first, PLAN) and PLAN or first == '/plan' and first or ''
  local new = old == '' and PLAN or ''
  local cursor = api.nvim_win_get_cursor(0)
  lines[1] = new .. first:sub(#old + 1)
  chat.prompt:set(lines)
  if cursor[1] == 1 then
    cursor[2] = math.max(0, cursor[2] + #new - #old)
    pcall(api.nvim_win_set_cursor, 0, cursor)
  end
end

--- Makes a buffer that `:edit` named the buffer of a plan, and reads the plan.
---@param buf integer
---@param id integer of the chat
function M.adopt(buf, id)
  local chat = registry.get(id)
  if chat then
    make(id, buf)
    ask(chat, chat.state.cwd)
  end
end

--- Deletes the buffer of the plan of a chat that has ended, unless it has changes.
---@param id integer
function M.forget(id)
  local buf = find(id)
  if buf and not vim.bo[buf].modified then
    guarded.delete_buffer(buf)
  end
end

return M
