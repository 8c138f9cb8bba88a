--- Reads and changes buffers for the backend.
local M = {}

local api = vim.api
local backend = require('co.backend')
local buffer = require('co.ui.buffer')
local changed_lines = require('co.buffers.changed_lines')
local diagnostics = require('co.buffers.diagnostics')
local disk = require('co.ui.file_text')
local gate = require('co.ui.gate')
local log = require('co.ui.log')
local reload = require('co.ui.reload')
local replace_lines = require('co.buffers.replace_lines')
local utf8 = require('co.ui.utf8')

--- The largest text that is read, in bytes. A message has at most 16 MiB.
local LARGEST = 8 * 1024 * 1024

--- Returns whether Neovim writes other bytes for the text of a file than the file has. Some encodings have several byte
--- sequences for one character.
---@param buf integer
---@return boolean
local function is_reencoded(buf)
  local encoding = vim.bo[buf].fileencoding
  -- In these forms of Unicode, a character has one byte sequence.
  if encoding == '' or encoding:find('^utf%-[138]') or encoding:find('^ucs') then
    return false
  end
  local bytes = disk.read(api.nvim_buf_get_name(buf), LARGEST)
  local text = bytes and vim.iconv(bytes, encoding, 'utf-8')
  return text ~= nil and vim.iconv(text, 'utf-8', encoding) ~= bytes
end

--- Returns the reason why a buffer cannot be read or changed.
---@param buf integer
---@return string?
local function problem_of(buf)
  if not vim.bo[buf].modifiable or vim.bo[buf].readonly then
    return "its buffer is 'readonly' or not 'modifiable'"
  end
  local last = api.nvim_buf_line_count(buf)
  if api.nvim_buf_get_offset(buf, last) > LARGEST then
    return 'its buffer has more than 8 MiB'
  end
  if not vim.bo[buf].modified and is_reencoded(buf) then
    local problem = 'Neovim would write other bytes for characters that stay, in its encoding, %s'
    return problem:format(vim.bo[buf].fileencoding)
  end
end

--- Returns what the backend gets to know of a buffer.
---@param buf integer
---@param file string
---@return co.BufferText
local function describe(buf, file)
  local problem = problem_of(buf)
  return {
    file = file,
    text = problem and '' or disk.unsaved(buf),
    tick = api.nvim_buf_get_changedtick(buf),
    encoding = vim.bo[buf].fileencoding,
    modified = vim.bo[buf].modified,
    problem = problem,
  }
end

--- Returns the buffers with unsaved changes of a file, or of the files below a directory, by their real paths.
---@param path string real
---@return table<string, integer>
local function modified_below(path)
  local found, bytes = {}, 0
  local below = path:gsub('/$', '') .. '/'
  for _, buf in ipairs(api.nvim_list_bufs()) do
    local name = api.nvim_buf_get_name(buf)
    if name ~= '' and vim.bo[buf].modified and disk.buffer(name) == buf then
      local file = vim.fn.resolve(name)
      local size = api.nvim_buf_get_offset(buf, api.nvim_buf_line_count(buf))
      local is_below = file == path or vim.startswith(file, below)
      if is_below and bytes + size <= LARGEST and utf8.valid(file) then
        bytes = bytes + size
        found[file] = buf
      end
    end
  end
  return found
end

--- Returns the buffers that a message asks about, by the paths of their files.
---@param message co.ReadBuffers
---@return table<string, integer>
local function wanted(message)
  local buffers = {}
  for _, file in ipairs(message.files) do
    buffers[file] = disk.buffer(file)
  end
  if message.modified_below then
    buffers = vim.tbl_extend('keep', buffers, modified_below(message.modified_below))
  end
  return buffers
end

--- Sends the texts of buffers: those of their files, if these changed on the disk.
---@param message co.ReadBuffers
function M.read(message)
  local request = { id = message.request, chat = message.chat }
  reload.when_current(vim.tbl_values(wanted(message)), request, function()
    local found = {}
    for file, buf in pairs(wanted(message)) do
      found[#found + 1] = describe(buf, file)
    end
    backend.send_if_running({ type = 'buffers', request = message.request, buffers = found })
  end)
end

--- Returns the reason why the file of a buffer cannot have some new lines.
---@param buf integer
---@param replacements co.Replacement[]
---@return string?
local function encoding_problem(buf, replacements)
  local encoding = vim.bo[buf].fileencoding
  if encoding == '' or encoding == 'utf-8' then
    return nil
  end
  local function has(text)
    local stored = vim.iconv(text, 'utf-8', encoding)
    return stored and vim.iconv(stored, encoding, 'utf-8') == text
  end
  for _, replacement in ipairs(replacements) do
    for _, line in ipairs(replacement.lines) do
      if not has(line) then
        local missing = vim.tbl_filter(function(character)
          return not has(character)
        end, vim.fn.split(line, '\\zs'))
        local problem = 'its encoding, %s, has no character `%s`: leave that character out'
        return problem:format(encoding, missing[1] or line)
      end
    end
  end
end

--- Writes a buffer with its autocommands. A final line break is not added.
---@param buf integer
---@return boolean ok
---@return string? problem
local function write(buf)
  local fix = vim.bo[buf].fixendofline
  vim.bo[buf].fixendofline = false
  -- For `:Co! ++watch`.
  vim.b[buf].co_writes = true
  local ok, problem = pcall(api.nvim_buf_call, buf, function()
    vim.cmd({ cmd = 'write', mods = { silent = true } })
  end)
  vim.bo[buf].fixendofline = fix
  vim.b[buf].co_writes = nil
  -- Without the place in this file, and without the stack.
  problem = ok and '' or tostring(problem):gsub('\nstack traceback:.*', '')
  return ok, (problem:gsub('^.-%.lua:%d+: ', ''):gsub('^.-%f[EW]([EW]%d+:)', '%1'))
end

--- Changes a buffer in one block of undo, and writes it if it had no unsaved changes.
---@param message co.ChangeBuffer
---@param buf? integer
---@return co.BufferChanged reply without its type and request
local function change(message, buf)
  if not buf or api.nvim_buf_get_changedtick(buf) ~= message.tick then
    return { moved = true }
  end
  local problem = problem_of(buf) or encoding_problem(buf, message.replacements)
  if problem then
    return { problem = problem }
  end
  local modified = vim.bo[buf].modified
  buffer.close_undo_block(buf)
  problem = replace_lines.replace(buf, message.replacements, message.final_newline)
  buffer.close_undo_block(buf)
  if problem then
    return { problem = problem }
  end
  if message.chat then
    changed_lines.add(
      buf,
      vim.tbl_map(function(one)
        return { first = one.start + 1, removed = one['end'] - one.start, added = #one.lines }
      end, message.replacements)
    )
  end
  if modified then
    return { unsaved = 'it had unsaved changes' }
  end
  local before = disk.unsaved(buf)
  local ok, why = write(buf)
  local after = disk.unsaved(buf)
  return {
    unsaved = not ok and why or nil,
    text = after ~= before and #after <= LARGEST and after or nil,
  }
end

--- Changes a buffer and sends the result, with the diagnostics that the change caused.
---@param message co.ChangeBuffer
local function change_and_reply(message)
  local buf = disk.buffer(message.file)
  local before = buf and diagnostics.count(buf) or {}
  local ok, reply = xpcall(change, debug.traceback, message, buf)
  if not ok then
    log.add('buffers', tostring(reply))
    reply = { problem = 'Neovim refused the change: see :Co /log' }
  end
  ---@cast reply co.BufferChanged
  reply.type, reply.request = 'buffer_changed', message.request
  if not buf or reply.moved or reply.problem then
    backend.send_if_running(reply)
    return
  end
  diagnostics.wait(buf, before, function(new)
    reply.diagnostics = new
    backend.send_if_running(reply)
  end)
end

--- Changes a buffer as soon as no command of the person is half done in it, and sends the result.
---@param message co.ChangeBuffer
function M.change(message)
  local buf = disk.buffer(message.file)
  gate.when_open(buf and { buf } or {}, function()
    change_and_reply(message)
  end, {
    id = message.request,
    chat = message.chat,
    withdrawn = function()
      local problem = 'the turn was cancelled before the change could be made'
      local reply = { type = 'buffer_changed', request = message.request, problem = problem }
      backend.send_if_running(reply)
    end,
  })
end

--- Drops a request that waits for the end of a command of the person. A change is answered.
---@param message co.WithdrawRequest
function M.withdraw(message)
  gate.withdraw({ id = message.request })
end

-- The next backend numbers its own requests.
backend.on_exit(function()
  gate.withdraw({})
end)

--- Tells the backend of each file that the person saves, so that no command is taken for the one that changed it.
--- Before and after: the file may change before the backend reads a message.
function M.watch_saves()
  local events = { 'BufWritePre', 'BufWritePost', 'FileWritePre', 'FileWritePost' }
  vim.list_extend(events, { 'FileAppendPre', 'FileAppendPost' })
  api.nvim_create_autocmd(events, {
    group = api.nvim_create_augroup('co.saves', {}),
    callback = function(event)
      local file = vim.fn.resolve(vim.fn.fnamemodify(event.match, ':p'))
      backend.send_if_running({ type = 'saved', file = file })
    end,
  })
end

return M
