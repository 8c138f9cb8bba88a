--- Reloads buffers whose files commands changed, when no command of the person is half done in them.
local M = {}

local api = vim.api
local disk = require('co.ui.file_text')
local gate = require('co.ui.gate')
local notify = require('co.ui.notify')

-- The most bytes of a file that is compared with its buffer.
local LARGEST = 8 * 1024 * 1024
-- The most bytes of a buffer whose text before the reload is kept.
local LARGEST_KEPT = 256 * 1024

--- Gets the texts of a buffer before and after its reload.
---@alias co.reload.Callback fun(buf: integer, before: string, after: string)

-- The buffers whose reload waits, with what is called for each.
---@type table<integer, co.reload.Callback|false>
local waiting = {}

--- Chooses between reloading a buffer and keeping it.
---@param buf integer
---@param always integer[] the buffers that are reloaded without 'autoread' too
---@return string choice for 'v:fcs_choice'; the empty one keeps the buffer and shows no dialogue
local function choose(buf, always)
  if vim.bo[buf].modified then
    local name = vim.fn.fnamemodify(api.nvim_buf_get_name(buf), ':~:.')
    notify.warn(
      ('%s changed on disk; the buffer keeps your changes: :edit! takes the new text'):format(name)
    )
    return ''
  end
  local wanted = vim.o.autoread or vim.tbl_contains(always, buf)
  return wanted and vim.v.fcs_reason ~= 'deleted' and 'reload' or ''
end

--- Returns whether a reload would change the text of a buffer.
---@param buf integer
---@return boolean
local function is_stale(buf)
  local stat = vim.uv.fs_stat(api.nvim_buf_get_name(buf))
  if vim.bo[buf].modified or not stat or stat.type ~= 'file' then
    return false
  end
  return stat.size > LARGEST or disk.saved(buf) ~= disk.unsaved(buf)
end

--- Returns whether a buffer is short enough for its text to be kept.
---@param buf integer
---@return boolean
local function is_short(buf)
  return api.nvim_buf_get_offset(buf, api.nvim_buf_line_count(buf)) <= LARGEST_KEPT
end

--- Reloads those of the buffers that are unmodified and whose files changed. For a modified buffer it shows a notice.
---@param bufs integer[]
---@param always? integer[] the buffers that are reloaded without 'autoread' too
---@param reloaded? co.reload.Callback is called for each short buffer
local function check(bufs, always, reloaded)
  ---@type table<integer, string>
  local before = {}
  local watcher = api.nvim_create_autocmd('FileChangedShell', {
    callback = function(event)
      vim.v.fcs_choice = choose(event.buf, always or {})
    end,
  })
  for _, buf in ipairs(bufs) do
    if api.nvim_buf_is_loaded(buf) then
      -- With 'autoread', no event tells of the text before.
      if reloaded and is_short(buf) and is_stale(buf) then
        before[buf] = disk.unsaved(buf)
      end
      pcall(api.nvim_command, ('silent checktime %d'):format(buf))
    end
  end
  pcall(api.nvim_del_autocmd, watcher)
  for buf, text in pairs(before) do
    if reloaded and api.nvim_buf_is_loaded(buf) then
      reloaded(buf, text, disk.unsaved(buf))
    end
  end
end

--- Reloads each unmodified buffer whose file changed, as soon as no command of the person is half done in it.
---@param reloaded? co.reload.Callback is called for each short buffer
function M.changed_files(reloaded)
  local bufs = vim.tbl_filter(function(buf)
    local has_name = api.nvim_buf_is_loaded(buf) and api.nvim_buf_get_name(buf) ~= ''
    return has_name and vim.bo[buf].buftype == ''
  end, api.nvim_list_bufs())
  if gate.is_open(bufs) then
    return check(bufs, nil, reloaded)
  end
  for _, buf in ipairs(bufs) do
    local waits = waiting[buf] ~= nil
    waiting[buf] = reloaded or waiting[buf] or false
    if not waits then
      gate.when_open({ buf }, function()
        local callback = waiting[buf] or nil
        waiting[buf] = nil
        check({ buf }, nil, callback)
      end)
    end
  end
end

--- Calls `act` when buffers have the text of their files, or unsaved changes, and no change of them waits. Then a change
--- that is based on this text undoes nothing.
---@param bufs integer[]
---@param request co.gate.Request
---@param act fun()
function M.when_current(bufs, request, act)
  local open, late = {}, {}
  for _, buf in ipairs(bufs) do
    if gate.is_open({ buf }) then
      open[#open + 1] = buf
    elseif gate.has_request(buf) or is_stale(buf) then
      late[#late + 1] = buf
    end
  end
  check(open, open)
  if not late[1] then
    act()
    return
  end
  gate.when_open(late, function()
    check(late, late)
    act()
  end, request)
end

return M
