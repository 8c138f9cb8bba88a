--- Prevents Neovim from quitting while commands run, as it does for its own terminals.
---
--- An autocommand cannot refuse to quit, but a modified buffer can. So a buffer named after the commands exists while
--- Neovim decides. It is deleted before the next key.
local M = {}

local api = vim.api
local notify = require('co.ui.notify')

local RETRY_MS = 50
-- The most characters of one command, and of all.
local SHORT, LONGEST = 60, 300

--- Cuts a text to a number of characters.
---@param text string
---@param most integer
---@return string
local function cut(text, most)
  return vim.fn.strchars(text) > most and vim.fn.strcharpart(text, 0, most - 1) .. '…' or text
end

---@type (fun(): string[])[]
local sources = {}

--- Returns the first lines of the commands that would end with Neovim.
---@return string[]
local function running()
  ---@type string[]
  local names = {}
  for _, commands in ipairs(sources) do
    for _, command in ipairs(commands()) do
      names[#names + 1] = cut(vim.split(vim.trim(command), '\n')[1], SHORT)
    end
  end
  return names
end

--- Creates the modified buffer.
---@param names string[]
---@return integer buf
local function create(names)
  local buf = api.nvim_create_buf(false, false)
  local options = vim.bo[buf]
  options.buftype, options.bufhidden, options.swapfile = 'acwrite', 'hide', false
  -- The filetype marks buffers of the plugin.
  options.filetype = 'co-running'
  api.nvim_buf_set_name(buf, cut('co://running: ' .. table.concat(names, ', '), LONGEST))
  -- `:wqa` and the dialogue of `:confirm` write the buffer: it must stay modified.
  api.nvim_create_autocmd('BufWriteCmd', { buffer = buf, callback = function() end })
  options.modified = true
  return buf
end

--- Shows a buffer in a hidden window. Neovim goes to this window instead of changing the person's window.
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
local blocker

--- Deletes the buffer after Neovim decided to stay.
---@param names string[]
---@param back integer the window of the person
---@param win? integer
local function clear(names, back, win)
  if vim.v.exiting ~= vim.NIL then
    return
  end
  if api.nvim_get_mode().mode:match('^r') then
    -- The dialogue is open: it asks about the buffer.
    vim.defer_fn(function()
      clear(names, back, win)
    end, RETRY_MS)
    return
  end
  if win and api.nvim_get_current_win() == win and api.nvim_win_is_valid(back) then
    api.nvim_set_current_win(back)
  end
  if blocker then
    pcall(api.nvim_buf_delete, blocker, { force = true })
    blocker = nil
  end
  notify.warn(
    #names == 1 and ('%s still runs: :qa! ends it and quits'):format(names[1])
      or ('%d commands still run: :qa! ends them and quits'):format(#names)
  )
end

--- Refuses to quit if commands run.
local function on_exit()
  local names = running()
  if #names == 0 or blocker then
    return
  end
  local back = api.nvim_get_current_win()
  blocker = create(names)
  local win = hidden_window(blocker)
  vim.schedule(function()
    clear(names, back, win)
  end)
end

--- Refuses to quit while `commands` returns a command. Each function counts once.
---@param commands fun(): string[] the commands that run now
function M.refuse_while(commands)
  if vim.list_contains(sources, commands) then
    return
  end
  sources[#sources + 1] = commands
  -- This event does not come for `:q` in one of several windows. It comes before the check for modified buffers.
  api.nvim_create_autocmd('ExitPre', {
    group = api.nvim_create_augroup('co.quit', {}),
    callback = on_exit,
  })
end

return M
