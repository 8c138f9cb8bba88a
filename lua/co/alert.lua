--- Alerts of the terminal while it does not have the focus: a question came, or something long has ended.
local M = {}

local api = vim.api
local config = require('co.config')
local printable = require('co.ui.printable')

-- The most characters of an alert.
local LONGEST = 120

local focused = true
-- The start of each turn in nanoseconds, by chat.
---@type table<integer, integer>
local turns = {}

---@type table<string, fun(text: string): string>
local sequences = {
  osc9 = function(text)
    return '\27]9;' .. text .. '\7'
  end,
  osc777 = function(text)
    return '\27]777;notify;Neovim;' .. text .. '\7'
  end,
  bell = function()
    return '\7'
  end,
}

--- Returns the first line of a text without characters that mean something to a terminal.
---@param text string
---@return string
local function plain(text)
  local line = printable.first_line(text):gsub('\194[\128-\159]', ' '):gsub('[%c;]', ' ')
  return vim.fn.strcharpart(line, 0, LONGEST)
end

--- Writes to the terminal of Neovim.
---@param bytes string
local function write(bytes)
  local send = api.nvim_ui_send or function(text)
    api.nvim_chan_send(vim.v.stderr, text)
  end
  pcall(send, bytes)
end

--- Shows an alert if the terminal does not have the focus.
---@param text string
local function alert(text)
  local kind = config.get().alert
  if focused or not kind then
    return
  end
  local bytes = sequences[kind](plain(text))
  if vim.env.TMUX and kind ~= 'bell' then
    bytes = '\27Ptmux;' .. bytes:gsub('\27', '\27\27') .. '\27\\'
  end
  write(bytes)
end

---@type table<string, fun(data: table)>
local on = {
  CoTurnStarted = function(data)
    turns[data.chat] = vim.uv.hrtime()
  end,
  CoTurnDone = function(data)
    local began = turns[data.chat]
    turns[data.chat] = nil
    if began and (vim.uv.hrtime() - began) / 1e9 >= config.get().alert_after then
      alert(('co: the turn of chat %d ended: %s'):format(data.chat, data.reason))
    end
  end,
  CoApprovalRequested = function(data)
    alert('co asks: ' .. data.command)
  end,
  CoJobDone = function(data)
    if data.seconds >= config.get().alert_after then
      alert(('co: %s: %s'):format(data.status, data.command))
    end
  end,
}

--- Starts to watch the focus and the events.
function M.watch()
  local group = api.nvim_create_augroup('co.alert', {})
  api.nvim_create_autocmd({ 'FocusGained', 'FocusLost' }, {
    group = group,
    callback = function(event)
      focused = event.event == 'FocusGained'
    end,
  })
  api.nvim_create_autocmd('User', {
    group = group,
    pattern = vim.tbl_keys(on),
    callback = function(event)
      on[event.match](event.data)
    end,
  })
end

return M
