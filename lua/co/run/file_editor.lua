--- The editor of the person's commands: a program that wants a file edited, such as `git commit`, waits until the person has
--- closed it here.
local M = {}

local api = vim.api
local backend = require('co.backend')
local buffer = require('co.ui.buffer')
local config = require('co.config')
local disk = require('co.ui.file_text')
local focus = require('co.ui.focus')
local gate = require('co.ui.gate')
local guarded = require('co.ui.guarded')
local notify = require('co.ui.notify')
local printable = require('co.ui.printable')
local runs = require('co.run')
local terminal = require('co.run.terminal')
local windows = require('co.ui.windows')

-- A window with fewer rows is not split.
local LEAST_ROWS = 20
local LONGEST_COMMAND = 60

--- A program that waits for a file.
---@class (exact) co.EditingProgram
---@field directory string its working directory
---@field variables string[][] names and values of those of git

--- A file that a program waits for.
---@class (exact) co.FileEditing
---@field request integer
---@field buf integer
---@field win integer the window in which co opened it
---@field command string
---@field new boolean co loaded the buffer for it
---@field program co.EditingProgram

---@type table<integer, co.FileEditing> by request
local edits = {}

local group = api.nvim_create_augroup('co.file_editor', {})

--- Returns the edits of a buffer.
---@param buf integer
---@return co.FileEditing[]
local function edits_of(buf)
  return vim.tbl_filter(function(edit)
    return edit.buf == buf
  end, vim.tbl_values(edits))
end

--- Tells the backend that the program may go on, or must fail.
---@param request integer
---@param problem? string
local function reply(request, problem)
  edits[request] = nil
  backend.send_if_running({ type = 'file_edited', request = request, problem = problem })
end

--- Shows a text in the winbars of a buffer, or none.
---@param buf integer
---@param text? string
local function set_winbar(buf, text)
  local winbar = text and ' ' .. text:gsub('%%', '%%%%') .. '%<' or ''
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    if windows.fits_winbar(win) then
      windows.options(win, { winbar = winbar })
    end
  end
end

--- Shows the keys and the command that waits in the winbars of a buffer.
---@param edit co.FileEditing
local function show_keys(edit)
  ---@type string[]
  local parts = { ':wq goes on' }
  local abort = config.get().keys.editor.abort
  if abort then
    parts[#parts + 1] = ('%s aborts'):format(type(abort) == 'table' and abort[1] or abort)
  end
  parts[#parts + 1] = ('`%s` waits'):format(edit.command)
  set_winbar(edit.buf, table.concat(parts, ' · '))
end

--- Makes a buffer the person's own again: nothing waits for it any more.
---@param buf integer
---@param winbar? string
local function release(buf, winbar)
  if not api.nvim_buf_is_valid(buf) then
    return
  end
  api.nvim_clear_autocmds({ group = group, buffer = buf })
  vim.bo[buf].bufhidden = ''
  local abort = config.get().keys.editor.abort
  for _, lhs in ipairs(type(abort) == 'table' and abort or { abort or nil }) do
    pcall(vim.keymap.del, 'n', lhs, { buffer = buf })
  end
  set_winbar(buf, winbar)
end

--- Lets the programs go on that wait for a buffer, if no window shows it and its text is in the file.
---@param buf integer
local function check_closed(buf)
  -- At its end, Neovim unloads buffers that the person did not close.
  local shown = buffer.alive(buf) and (#vim.fn.win_findbuf(buf) > 0 or vim.bo[buf].modified)
  if shown or vim.v.exiting ~= vim.NIL then
    return
  end
  for _, edit in ipairs(edits_of(buf)) do
    reply(edit.request)
  end
  release(buf)
  -- The next file of the same program, as of a rebase.
  focus.asked()
end

--- Lets the programs fail that wait for a buffer, and closes it without saving.
---@param buf integer
local function abort(buf)
  local ended = edits_of(buf)
  for _, edit in ipairs(ended) do
    reply(edit.request, 'aborted in Neovim')
  end
  release(buf)
  for _, edit in ipairs(ended) do
    if edit.new then
      guarded.delete_buffer(buf)
    elseif api.nvim_win_is_valid(edit.win) and api.nvim_win_get_buf(edit.win) == buf then
      windows.hide(edit.win)
    end
  end
end

--- Maps the key of a buffer, and notices when it is closed.
---@param edit co.FileEditing
local function watch(edit)
  local buf = edit.buf
  buffer.map(buf, 'n', config.get().keys.editor.abort, function()
    abort(buf)
  end, 'abort the command that waits for this file')
  api.nvim_clear_autocmds({ group = group, buffer = buf })
  api.nvim_create_autocmd({ 'BufHidden', 'BufUnload', 'BufDelete', 'BufWipeout', 'BufWritePost' }, {
    group = group,
    buffer = buf,
    callback = function()
      vim.schedule(function()
        check_closed(buf)
      end)
    end,
  })
  api.nvim_create_autocmd('BufWinEnter', {
    group = group,
    buffer = buf,
    callback = function()
      show_keys(edit)
    end,
  })
  show_keys(edit)
end

--- Returns the reason why a file cannot be edited.
---@param file string
---@return string?
local function problem_of(file)
  local stat = vim.uv.fs_stat(file)
  -- Another name could be one that Neovim runs, such as `term://`.
  if file:sub(1, 1) ~= '/' or stat and stat.type ~= 'file' then
    return file .. ' is not a regular file'
  elseif stat and vim.fn.filereadable(file) == 0 then
    return file .. ' cannot be read'
  end
end

--- Returns whether the person waits for the command: they have typed nothing since, or their keys go to its terminal.
---@param command string
---@return boolean
local function is_awaited(command)
  local run = terminal.with_keys()
  return focus.is_waiting() or run ~= nil and runs.command(run) == command
end

--- Opens a file, and lets its program wait.
---@param message co.EditFile
local function open(message)
  local problem = problem_of(message.file)
  if problem then
    reply(message.request, problem)
    return
  end
  local awaited = is_awaited(message.command)
  local loaded = disk.buffer(message.file)
  local buf = loaded or vim.fn.bufadd(message.file)
  local float = awaited and api.nvim_win_get_height(0) < LEAST_ROWS
  local opened, win = pcall(windows.open, buf, float and 'float' or 'horizontal')
  if not opened then
    reply(message.request, 'Neovim has no room for a window')
    return
  end
  if not loaded then
    vim.bo[buf].buflisted = true
    -- A window that is closed, or shows another file, closes the file.
    vim.bo[buf].bufhidden = 'wipe'
    -- Some programs have the file open, so it must stay the same one.
    vim.bo[buf].backupcopy = 'yes'
  end
  local others = edits_of(buf)
  ---@type co.FileEditing
  local edit = {
    request = message.request,
    buf = buf,
    win = win,
    command = printable.line(printable.first_line(message.command), LONGEST_COMMAND),
    new = not loaded or (others[1] ~= nil and others[1].new),
    program = { directory = message.directory, variables = message.variables },
  }
  edits[message.request] = edit
  watch(edit)
  if message.line then
    pcall(api.nvim_win_set_cursor, win, { math.min(message.line, api.nvim_buf_line_count(buf)), 0 })
  end
  if not (awaited and windows.enter(win)) then
    local name = printable.line(vim.fn.fnamemodify(message.file, ':t'))
    notify.info(('`%s` waits until you close %s'):format(edit.command, name))
  end
end

--- Returns the program that waits for a buffer.
---@param buf integer
---@return co.EditingProgram?
function M.program(buf)
  local edit = edits_of(buf)[1]
  return edit and edit.program
end

--- Opens a file as soon as no command of the person is half done.
---@param message co.EditFile
function M.open(message)
  gate.when_open({ api.nvim_get_current_buf() }, function()
    open(message)
  end, { id = message.request })
end

--- Marks the file of a program that has ended. Its text stays.
---@param edit co.FileEditing
local function mark_ended(edit)
  edits[edit.request] = nil
  if not edits_of(edit.buf)[1] then
    local text = ('`%s` has ended and no longer waits for this file'):format(edit.command)
    release(edit.buf, text)
    notify.warn(text)
  end
end

--- Marks the file of a request that the backend has withdrawn.
---@param message co.WithdrawRequest
function M.withdraw(message)
  local edit = edits[message.request]
  if edit then
    mark_ended(edit)
  end
end

backend.on_exit(function()
  vim.tbl_map(mark_ended, vim.tbl_values(edits))
end)

return M
