--- The terminals of `:Co! ++pty`: terminal buffers of Neovim whose program runs in the backend.
local M = {}

local api = vim.api
local backend = require('co.backend')
local buffer = require('co.ui.buffer')
local config = require('co.config')
local guarded = require('co.ui.guarded')
local windows = require('co.ui.windows')

---@class (exact) co.Terminal
---@field run integer
---@field buf integer
---@field channel integer
---@field size co.Size the size that the backend has
---@field ended boolean

---@type table<integer, co.Terminal> by run
local terminals = {}

-- Resets modes that an ended program may have left: alternate screen, hidden cursor, mouse, colours.
local RESET = '\27[?1047l\27[?25h\27[?1000l\27[?1002l\27[?1003l\27[?2004l\27[m'

--- Returns the size for the terminal: that of the largest window that shows it, as for Neovim's terminals.
---@param buf integer
---@return co.Size?
local function size_of(buf)
  local columns, rows = 0, 0
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    local info = vim.fn.getwininfo(win)[1]
    columns = math.max(columns, info.width - info.textoff)
    rows = math.max(rows, info.height)
  end
  return columns > 0 and rows > 0 and { columns = columns, rows = rows } or nil
end

--- Sends the sizes of the terminals that changed.
local function update_sizes()
  for _, terminal in pairs(terminals) do
    local size = not terminal.ended and buffer.alive(terminal.buf) and size_of(terminal.buf)
    if size and not vim.deep_equal(size, terminal.size) then
      terminal.size = size
      backend.send_if_running({ type = 'run_resize', run = terminal.run, size = size })
    end
  end
end

--- Sets the options of a window that shows a terminal.
---@param win integer
local function set_options(win)
  windows.options(win, {
    number = false,
    relativenumber = false,
    signcolumn = 'no',
    foldcolumn = '0',
    wrap = false,
    spell = false,
  })
end

--- Sends typed keys to the program.
---@param run integer
---@param data string
local function on_input(run, data)
  local terminal = terminals[run]
  if terminal and not terminal.ended then
    backend.send_if_running({ type = 'run_input', run = run, data = data })
  elseif terminal and api.nvim_get_current_buf() == terminal.buf then
    -- The program has ended: the first key leaves terminal mode.
    vim.cmd.stopinsert()
  end
end

--- Sets the autocommands of a terminal.
---@param run integer
---@param buf integer
local function watch(run, buf)
  local group = api.nvim_create_augroup('co.terminal', { clear = false })
  api.nvim_clear_autocmds({ group = group, event = { 'WinResized', 'VimResized' } })
  api.nvim_create_autocmd(
    { 'WinResized', 'VimResized' },
    { group = group, callback = update_sizes }
  )
  api.nvim_create_autocmd('BufWinEnter', {
    group = group,
    buffer = buf,
    callback = function()
      set_options(api.nvim_get_current_win())
      update_sizes()
    end,
  })
  api.nvim_create_autocmd('BufWipeout', {
    group = group,
    buffer = buf,
    callback = function()
      local terminal = terminals[run]
      terminals[run] = nil
      -- A deleted terminal ends its program.
      if terminal and not terminal.ended then
        backend.send_if_running({ type = 'cancel_run', run = run })
      end
    end,
  })
end

--- Maps the keys of a terminal's buffer in normal mode.
---@param run integer
---@param buf integer
local function map(run, buf)
  local keys = config.get().keys.shell
  buffer.map(buf, 'n', keys.hide, function()
    windows.hide(api.nvim_get_current_win())
  end, 'hide the window')
  buffer.map(buf, 'n', keys.cancel, function()
    backend.send_if_running({ type = 'cancel_run', run = run })
  end, 'end the program')
end

--- Returns a window of this tab page whose terminal has ended.
---@return integer?
local function ended_window()
  for _, terminal in pairs(terminals) do
    local win = terminal.ended and buffer.alive(terminal.buf) and windows.in_tabpage(terminal.buf)
    if win then
      return win
    end
  end
end

--- Shows the buffer in the window of a terminal that has ended, else in a new one.
---@param buf integer
---@return integer win
local function show_buffer(buf)
  local win = ended_window()
  if win then
    guarded.set_buf(win, buf)
    return win
  end
  return windows.split(buf, { side = 'below', size = vim.o.lines })
end

--- Opens a terminal for a run and enters it, so that keys go to the program; returns nil and the reason if no window can be opened.
---@param run integer
---@return co.Size?
---@return string? problem
function M.open(run)
  local buf = api.nvim_create_buf(false, true)
  vim.bo[buf].bufhidden = 'hide'
  local fits, win = pcall(show_buffer, buf)
  if not fits then
    local locked = tostring(win):find('E565:', 1, true)
    -- While text is locked, the buffer cannot be deleted.
    vim.schedule(function()
      guarded.delete_buffer(buf)
    end)
    return nil,
      locked and 'no terminal opens from an <expr> mapping, use <Cmd>'
        or 'there is no room for its terminal, close a window first'
  end
  local name = 'co://term/' .. run
  local leftover = vim.fn.bufnr(('^%s$'):format(name))
  if leftover ~= -1 then
    -- A session file left it.
    guarded.delete_buffer(leftover)
  end
  api.nvim_buf_set_name(buf, name)
  set_options(win)
  windows.enter(win)
  local channel = guarded.call(function()
    return api.nvim_open_term(buf, {
      force_crlf = false,
      on_input = function(_, _, _, data)
        on_input(run, data)
      end,
    })
  end)
  guarded.set_option(buf, 'filetype', 'co-terminal')
  local size = size_of(buf) or { columns = 80, rows = 24 }
  terminals[run] = { run = run, buf = buf, channel = channel, size = size, ended = false }
  watch(run, buf)
  map(run, buf)
  if api.nvim_get_current_buf() == buf then
    vim.cmd.startinsert()
  end
  return size
end

--- Goes to the terminal of a run.
---@param run integer
---@return boolean there
function M.show(run)
  local terminal = terminals[run]
  if not terminal or not buffer.alive(terminal.buf) then
    return false
  end
  local win = windows.in_tabpage(terminal.buf)
    or windows.split(terminal.buf, { side = 'below', size = vim.o.lines })
  set_options(win)
  windows.enter(win)
  update_sizes()
  return true
end

--- Returns the run whose program gets the keys that the person types.
---@return integer?
function M.with_keys()
  local buf = api.nvim_get_mode().mode == 't' and api.nvim_get_current_buf()
  for run, terminal in pairs(terminals) do
    if terminal.buf == buf and not terminal.ended then
      return run
    end
  end
end

--- Writes output of the program to its terminal.
---@param message co.RunData
function M.write(message)
  local terminal = terminals[message.run]
  if terminal then
    api.nvim_chan_send(terminal.channel, message.data)
  end
end

--- Writes the status into the terminal after the program ended.
---@param run integer
---@param status string
function M.show_end(run, status)
  local terminal = terminals[run]
  if terminal and not terminal.ended then
    terminal.ended = true
    api.nvim_chan_send(terminal.channel, ('%s\r\n[%s]\r\n'):format(RESET, status))
  end
end

--- Writes a later status into the terminal of a program that has ended.
---@param run integer
---@param status string
function M.show_later(run, status)
  local terminal = terminals[run]
  if terminal and buffer.alive(terminal.buf) then
    api.nvim_chan_send(terminal.channel, ('[%s]\r\n'):format(status))
  end
end

--- Deletes the terminal of a run that has ended.
---@param run integer
function M.delete(run)
  local terminal = terminals[run]
  if terminal and terminal.ended then
    guarded.delete_buffer(terminal.buf)
    terminals[run] = nil
  end
end

return M
