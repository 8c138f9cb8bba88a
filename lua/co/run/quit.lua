--- Keeps Neovim from quitting while commands run, as it does for its own terminals.
---
--- No autocommand can refuse to quit, but a modified buffer can. While Neovim decides there is one, named after the
--- commands; it is gone before the person can do anything else.
local M = {}

local api = vim.api
local notify = require('co.ui.notify')

local AGAIN_MS = 50
-- Characters of one command, and of all.
local SHORT, LONGEST = 60, 300

---@param text string
---@param most integer
---@return string
local function cut(text, most)
  return vim.fn.strchars(text) > most and vim.fn.strcharpart(text, 0, most - 1) .. '…' or text
end

--- The commands that would end with Neovim, the oldest first.
---@return string[]
local function running()
  local runs, chats = package.loaded['co.run'], package.loaded['co.chat']
  ---@type co.Run[]
  local all = runs and runs.all() or {}
  table.sort(all, function(a, b)
    return a.began < b.began
  end)
  ---@type string[]
  local names = {}
  for _, run in ipairs(all) do
    if run.running then
      names[#names + 1] = cut(vim.split(vim.trim(run.command), '\n')[1], SHORT)
    end
  end
  for _, chat in ipairs(chats and chats.all() or {}) do
    vim.list_extend(names, chat.state.commands or {})
  end
  return names
end

--- Makes the buffer that refuses.
---@param names string[]
---@return integer buf
local function create(names)
  local buf = api.nvim_create_buf(false, false)
  local options = vim.bo[buf]
  options.buftype, options.bufhidden, options.swapfile = 'acwrite', 'hide', false
  -- By this the plugin knows its own buffers: it is not where the person works.
  options.filetype = 'co-running'
  api.nvim_buf_set_name(buf, cut('co://running: ' .. table.concat(names, ', '), LONGEST))
  -- `:wqa` and a yes to `:confirm` write it: it stays modified.
  api.nvim_create_autocmd('BufWriteCmd', { buffer = buf, callback = function() end })
  options.modified = true
  return buf
end

--- Shows a buffer in a hidden window: Neovim goes there, and leaves the person's window as it is.
---@param buf integer
---@return integer? win
local function hidden_window(buf)
  local opened, win = pcall(api.nvim_open_win, buf, false, {
    relative = 'editor',
    row = 0,
    col = 0,
    width = 1,
    height = 1,
    focusable = false,
    hide = true,
    noautocmd = true,
  })
  return opened and win or nil
end

---@type integer?
local refusing

--- Takes the buffer away once Neovim has decided to stay.
---@param names string[]
---@param back integer the person's window
---@param win? integer
local function clear(names, back, win)
  if vim.v.exiting ~= vim.NIL then
    return
  end
  if api.nvim_get_mode().mode:match('^r') then
    -- It still asks: what it asks about must be there when it is answered.
    vim.defer_fn(function()
      clear(names, back, win)
    end, AGAIN_MS)
    return
  end
  if win and api.nvim_get_current_win() == win and api.nvim_win_is_valid(back) then
    api.nvim_set_current_win(back)
  end
  if refusing then
    pcall(api.nvim_buf_delete, refusing, { force = true })
    refusing = nil
  end
  notify.warn(
    #names == 1 and ('%s still runs: :qa! ends it and quits'):format(names[1])
      or ('%d commands still run: :qa! ends them and quits'):format(#names)
  )
end

local function on_exit()
  local names = running()
  if #names == 0 or refusing then
    return
  end
  local back = api.nvim_get_current_win()
  refusing = create(names)
  local win = hidden_window(refusing)
  vim.schedule(function()
    clear(names, back, win)
  end)
end

local watching = false

--- Refuses from now on.
function M.watch()
  if watching then
    return
  end
  watching = true
  -- Not for `:q` in one of several windows, and before Neovim looks for modified buffers.
  api.nvim_create_autocmd('ExitPre', {
    group = api.nvim_create_augroup('co.quit', {}),
    callback = on_exit,
  })
end

return M
