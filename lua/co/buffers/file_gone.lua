--- Lets buffers follow their files, which co deleted or moved.
local M = {}

local api = vim.api
local disk = require('co.ui.file_text')
local gate = require('co.ui.gate')
local guarded = require('co.ui.guarded')
local notify = require('co.ui.notify')

---@param path string
---@return string
local function short(path)
  return vim.fn.fnamemodify(path, ':~:.')
end

--- Removes the buffer without text that `:file` leaves under the old name.
---@param name string
local function wipe(name)
  for _, buf in ipairs(api.nvim_list_bufs()) do
    if api.nvim_buf_get_name(buf) == name and not api.nvim_buf_is_loaded(buf) then
      pcall(api.nvim_buf_delete, buf, { force = true })
    end
  end
end

--- Gives a buffer the new name of its file.
---@param buf integer
---@param to string
local function rename(buf, to)
  local old, modified = api.nvim_buf_get_name(buf), vim.bo[buf].modified
  local ok, problem = pcall(api.nvim_buf_call, buf, function()
    vim.cmd('silent keepalt file ' .. vim.fn.fnameescape(to))
    if not modified then
      -- Else `:w` would refuse to write, as if another program had made the file.
      vim.cmd('silent edit')
    end
  end)
  wipe(old)
  if not ok then
    problem = tostring(problem):gsub('^.-%f[EW]([EW]%d+:)', '%1')
    notify.warn(('the buffer of %s could not follow it to %s: %s'):format(old, short(to), problem))
  elseif modified then
    notify.warn(
      ('%s is %s now; its buffer keeps your unsaved changes: :w! writes them'):format(
        short(old),
        short(to)
      )
    )
  end
end

--- Deletes a buffer. Its windows show the file before it, or no file.
---@param buf integer
local function delete(buf)
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    local before = api.nvim_win_call(win, function()
      return vim.fn.bufnr('#')
    end)
    if before < 1 or before == buf or not vim.bo[before].buflisted then
      before = api.nvim_create_buf(true, false)
    end
    pcall(guarded.set_buf, win, before)
  end
  pcall(api.nvim_buf_delete, buf, {})
end

--- Lets the buffer of a file follow.
---@param message co.FileGone
local function follow(message)
  local buf = disk.buffer(message.file)
  if not buf then
    return
  end
  local typing = buf == api.nvim_get_current_buf() and api.nvim_get_mode().mode ~= 'n'
  if message.to then
    rename(buf, message.to)
  elseif vim.bo[buf].modified or typing then
    local what = typing and 'its buffer stays' or 'its buffer keeps your unsaved changes'
    notify.warn(('%s was deleted; %s: :w writes it again'):format(short(message.file), what))
  else
    delete(buf)
  end
end

--- Renames the buffer of a moved file. Deletes the buffer of a deleted file, unless the buffer has unsaved changes.
--- It waits while a command of the person is half done in the buffer.
---@param message co.FileGone
function M.follow(message)
  local buf = disk.buffer(message.file)
  gate.when_open(buf and { buf } or {}, function()
    follow(message)
  end)
end

return M
