--- Scratch buffers of the plugin.
local M = {}

local api = vim.api
local guarded = require('co.ui.guarded')
local interruption = require('co.ui.interruption')
local printable = require('co.ui.printable')
local retry = require('co.ui.retry')

-- The most bytes of a row: those of the longest line of an output. Neovim measures a longer one for so long that the person
-- notices it at each key.
local LONGEST_ROW = 200 * 1000

-- The most bytes of what the name of a buffer says about it: a tab line has no room for more.
local LONGEST_TITLE = 40

--- Creates or reuses a scratch buffer.
---@param name string
---@param filetype string
---@param existing? integer a buffer that has the name already
---@return integer buf
function M.scratch(name, filetype, existing)
  local buf = existing or vim.fn.bufnr('^' .. name .. '$')
  if not existing and buf ~= -1 then
    -- A session file left a buffer of that name.
    guarded.delete_buffer(buf)
    buf = -1
  end
  if buf == -1 then
    buf = api.nvim_create_buf(false, true)
    api.nvim_buf_set_name(buf, name)
  end
  local options = vim.bo[buf]
  options.buftype = 'nofile'
  options.bufhidden = 'hide'
  options.swapfile = false
  options.buflisted = false
  options.modeline = false
  options.modifiable = true
  guarded.set_option(buf, 'filetype', filetype)
  return buf
end

--- Returns a name of a buffer whose last part, which a tab line shows, says what the buffer is about.
---@param name string
---@param kind string
---@param about string
---@return string
function M.titled(name, kind, about)
  local title = printable.line(about, LONGEST_TITLE):gsub('/', '-')
  -- With a blank at its end, a pattern of a person's autocommand such as `*.py` does not match it.
  return ('%s/%s: %s'):format(name, kind, (title:gsub('%.%w+$', '%0 ')))
end

-- The names that buffers get when the command-line window is closed.
---@type table<integer, string>
local later = {}

local rename_later = retry.new(function()
  if vim.fn.getcmdwintype() ~= '' then
    return true
  end
  local names = later
  later = {}
  for buf, name in pairs(names) do
    if api.nvim_buf_is_valid(buf) then
      M.rename(buf, name)
    end
  end
  return false
end)

--- Gives a buffer another name: at once, or when the command-line window is closed. There, Neovim wipes out no buffer.
---@param buf integer
---@param name string
function M.rename(buf, name)
  if vim.fn.getcmdwintype() ~= '' then
    later[buf] = name
    rename_later()
    return
  end
  later[buf] = nil
  local before = api.nvim_buf_get_name(buf)
  if before == name then
    return
  end
  -- An alternate file stays what the person left, and no autocommand of another plugin takes part.
  vim.cmd.call({
    ('nvim_buf_set_name(%d, %s)'):format(buf, vim.fn.string(name)),
    mods = { keepalt = true, noautocmd = true },
  })
  -- Neovim keeps the former name as a buffer.
  for _, other in ipairs(api.nvim_list_bufs()) do
    if other ~= buf and api.nvim_buf_get_name(other) == before then
      vim.cmd.bwipeout({ count = other, bang = true, mods = { noautocmd = true } })
    end
  end
end

--- Makes a buffer read-only for the person. It keeps no undo history: `write` would make its line numbers wrong.
---@param buf integer
function M.lock(buf)
  vim.bo[buf].modifiable = false
  vim.bo[buf].undolevels = -1
end

--- Runs `change`, which writes to a locked buffer.
---@param buf integer
---@param change fun()
function M.write(buf, change)
  local scope = { buf = buf }
  local get, set = api.nvim_get_option_value, api.nvim_set_option_value
  set('modifiable', true, scope)
  -- Set only options that differ: setting one takes longer than writing a line, and this runs for each frame.
  if get('readonly', scope) then
    set('readonly', false, scope)
  end
  local ok, problem = pcall(change)
  set('modifiable', false, scope)
  if get('modified', scope) then
    set('modified', false, scope)
  end
  if not ok then
    error(problem, 0)
  end
end

--- Replaces rows of a buffer of the plugin, as `nvim_buf_set_lines` does. A line that Neovim cannot show, or cannot show
--- quickly, is shown as far as it can.
---@param buf integer
---@param first integer
---@param last integer
---@param lines string[]
function M.set_lines(buf, first, last, lines)
  for index, line in ipairs(lines) do
    if #line > LONGEST_ROW or line:find('\n', 1, true) then
      lines[index] = printable.line(line, LONGEST_ROW)
    end
  end
  api.nvim_buf_set_lines(buf, first, last, false, lines)
end

--- Ends the undo block of a buffer, so that undo stops here.
---@param buf integer
function M.close_undo_block(buf)
  vim.bo[buf].undolevels = vim.bo[buf].undolevels
end

--- Returns whether a buffer exists and is loaded.
---@param buf? integer
---@return boolean
function M.alive(buf)
  return buf ~= nil and api.nvim_buf_is_valid(buf) and api.nvim_buf_is_loaded(buf)
end

--- Maps `keys` of a buffer; `false` maps nothing.
---@param buf integer
---@param modes string|string[]
---@param keys string|string[]|false|nil
---@param action fun()|string
---@param desc string
function M.map(buf, modes, keys, action, desc)
  if not keys then
    return
  end
  for _, lhs in ipairs(type(keys) == 'table' and keys or { keys }) do
    vim.keymap.set(
      modes,
      lhs,
      action,
      { buffer = buf, nowait = true, silent = true, desc = 'co: ' .. desc }
    )
    interruption.watch(buf, modes, lhs, action)
  end
end

return M
