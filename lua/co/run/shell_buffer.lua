--- The shell buffer: one block of output for each run, and its window. The module knows no messages.
local M = {}

local api = vim.api
local block = require('co.ui.output_block')
local buffer = require('co.ui.buffer')
local config = require('co.config')
local folds = require('co.ui.folds')
local guarded = require('co.ui.guarded')
local notify = require('co.ui.notify')
local printable = require('co.ui.printable')
local shell_copy = require('co.run.shell_copy')
local terminal = require('co.run.terminal')
local textlock = require('co.ui.textlock')
local windows = require('co.ui.windows')

local NAME = 'co://shell'
-- A run that ends within this time is drawn once, with all its output. The time is too short to see.
local DRAW_DELAY_MS = 5
local RETRY_MS = 50
-- The oldest runs are removed if the buffer has more lines.
local MAX_LINES = 50000
-- The most lines and bytes of a command that are shown.
local MAX_COMMAND_LINES, MAX_COMMAND_BYTES = 200, 16 * 1024

local statuses = api.nvim_create_namespace('co.status')

---@type integer?
local shell
-- The text of the buffer since it was unloaded, until it is loaded again or given up.
---@type co.ShellCopy?
local unloaded
-- The runs that have a block, in the order of the blocks.
---@type co.Run[]
local order = {}
---@type fun(buf: integer)
local on_create

--- Sets the function that is called with each new shell buffer.
---@param callback fun(buf: integer)
function M.on_create(callback)
  on_create = callback
end

---@class (exact) co.shell.Undrawn
---@field run co.Run
---@field forget fun(run: co.Run)

-- The runs whose block is not drawn yet.
---@type co.shell.Undrawn[]
local undrawn = {}

--- Returns the block of a run, if the buffer still has it.
---@param run? co.Run
---@return co.Block?
local function block_of(run)
  local found = run and run.block
  return found and buffer.alive(found.buf) and found or nil
end

--- Returns the rows of the lines around the output of a run.
---@param run? co.Run
---@return integer? head
---@return integer? tail
local function rows_of(run)
  local found = block_of(run)
  if found then
    return found:rows()
  end
end

--- Sets the options of a window that shows the buffer.
---@param win integer
local function set_options(win)
  windows.options(win, {
    wrap = true,
    number = false,
    relativenumber = false,
    signcolumn = 'no',
    foldmethod = 'manual',
    foldenable = true,
    spell = false,
    winfixheight = true,
  })
end

--- Writes the status of a run below its output.
---@param run co.Run
---@param text string
---@param group string
local function write_status(run, text, group)
  local found, _, tail = block_of(run), rows_of(run)
  if not found or not tail then
    return
  end
  text = printable.line(text)
  api.nvim_buf_set_text(found.buf, tail, 0, tail, -1, { text })
  api.nvim_buf_clear_namespace(found.buf, statuses, tail, tail + 1)
  api.nvim_buf_set_extmark(found.buf, statuses, tail, 0, {
    end_col = #text,
    hl_group = group,
    strict = false,
  })
end

--- Folds the output of a run if it is long.
---@param run co.Run
---@param win? integer
local function fold(run, win)
  local found = block_of(run)
  local head, tail = rows_of(run)
  if not found or not head or not tail or tail - head - 1 <= folds.LONG then
    return
  end
  if win then
    folds.close(win, head + 1, tail - 1)
  else
    folds.everywhere(found.buf, head + 1, tail - 1)
  end
end

--- Folds the runs that ended, except the newest one.
---@param win? integer
local function fold_earlier(win)
  for index = 1, #order - 1 do
    local run = order[index]
    if not run.running then
      fold(run, win)
    end
  end
end

--- Returns whether a run needs the buffer: it goes on, or its block is not drawn yet.
---@return boolean
local function needed()
  for _, run in ipairs(order) do
    if run.running then
      return true
    end
  end
  return #undrawn > 0
end

---@type fun(existing?: integer): integer
local create

--- Keeps the text of the buffer, which is unloaded. If no run needs it and nothing loads it again, forgets both.
local function on_unload()
  local buf = shell
  if not buf or vim.v.exiting ~= vim.NIL then
    return
  end
  unloaded = unloaded or shell_copy.take(buf)
  vim.schedule(function()
    textlock.when_unlocked(function()
      if buffer.alive(shell) then
        unloaded = nil
        return
      elseif needed() then
        create()
        return
      end
      shell, unloaded, order, undrawn = nil, nil, {}, {}
      guarded.delete_buffer(buf)
    end)
  end)
end

--- Creates the buffer, with the text that it had before it was unloaded.
---@param existing? integer
---@return integer
function create(existing)
  shell = buffer.scratch(NAME, 'co-shell', existing)
  if unloaded then
    shell_copy.restore(shell, unloaded)
  else
    order = {}
  end
  unloaded = nil
  for _, run in ipairs(order) do
    if run.block then
      run.block.buf = shell
    end
  end
  require('co.ui.highlight').ensure()
  on_create(shell)
  local group = api.nvim_create_augroup('co.shell', {})
  api.nvim_create_autocmd(
    { 'BufUnload', 'BufWipeout' },
    { group = group, buffer = shell, callback = on_unload }
  )
  api.nvim_create_autocmd('BufWinEnter', {
    group = group,
    buffer = shell,
    callback = function()
      local win = api.nvim_get_current_win()
      set_options(win)
      fold_earlier(win)
    end,
  })
  buffer.lock(shell)
  return shell
end

--- Makes the shell buffer of a buffer that a session file or `:edit` named.
---@param buf integer
function M.adopt(buf)
  create(buf)
end

--- Returns the buffer and creates it if there is none.
---@return integer
local function ensure()
  return buffer.alive(shell) and shell --[[@as integer]] or create()
end

--- Returns the row of the first line of a run's command.
---@param run co.Run
---@return integer?
local function first_row(run)
  local head = rows_of(run)
  return head and head - (run.rows or 1) + 1
end

--- Removes the oldest ended runs if the buffer is too long.
---@param buf integer
---@return co.Run[] removed
local function prune(buf)
  local removed, index = {}, 1
  while index < #order and api.nvim_buf_line_count(buf) > MAX_LINES do
    local run = order[index]
    local from, to = first_row(run), first_row(order[index + 1])
    if run.running or not from or not to then
      index = index + 1
    else
      buffer.set_lines(buf, from, to, {})
      removed[#removed + 1] = table.remove(order, index)
    end
  end
  return removed
end

--- Returns the lines that show a command.
---@param run co.Run
---@return string[]
local function command_lines(run)
  local command = (run.options and run.options.trial and '++try ' or '') .. run.command
  local lines, left = printable.lines(command, MAX_COMMAND_LINES, MAX_COMMAND_BYTES)
  for index, line in ipairs(lines) do
    lines[index] = (index == 1 and '$ ' or '> ') .. line
  end
  lines[#lines + 1] = left > 0 and ('> … %s more'):format(printable.size(left)) or nil
  return lines
end

--- Draws the block of a run below the others.
---@param run co.Run
---@return co.Run[] removed runs that no longer fit into the buffer
local function draw(run)
  local buf = ensure()
  ---@type co.Run[]
  local removed = {}
  windows.follow(buf, function()
    buffer.write(buf, function()
      removed = prune(buf)
      local lines = command_lines(run)
      local count = #lines
      run.rows = count
      local empty = #order == 0
      if not empty then
        table.insert(lines, 1, '')
      end
      lines[#lines + 1] = '…'
      local at = empty and 0 or -1
      local first = empty and 0 or api.nvim_buf_line_count(buf) + 1
      buffer.set_lines(buf, at, -1, lines)
      local head = first + count - 1
      for row = first, head do
        local text = lines[row - first + (empty and 1 or 2)]
        api.nvim_buf_set_extmark(
          buf,
          statuses,
          row,
          0,
          { end_col = #text, hl_group = 'CoRunCommand' }
        )
      end
      run.block = block.new(buf, head, head + 1)
      write_status(run, '… running', 'CoRunRunning')
    end)
  end)
  local previous = order[#order]
  order[#order + 1] = run
  -- Earlier runs are folded already.
  if previous and not previous.running then
    fold(previous)
  end
  return removed
end

--- Draws the blocks that wait, and an unloaded buffer if a run goes on. Each function that needs a block calls this first.
local function draw_waiting()
  if unloaded and not buffer.alive(shell) and needed() then
    create()
  end
  while undrawn[1] do
    local waiting = table.remove(undrawn, 1)
    local ok, removed = pcall(draw, waiting.run)
    if not ok then
      table.insert(undrawn, 1, waiting)
      error(removed, 0)
    end
    for _, run in ipairs(removed) do
      waiting.forget(run)
    end
  end
end

--- Draws a block after a delay, unless output or the end of its run drew it before.
---@param waiting co.shell.Undrawn
---@param milliseconds integer
local function draw_later(waiting, milliseconds)
  vim.defer_fn(function()
    if not vim.list_contains(undrawn, waiting) then
      return
    end
    -- Text may be locked: try again later.
    if pcall(draw_waiting) then
      windows.redraw()
    else
      draw_later(waiting, RETRY_MS)
    end
  end, milliseconds)
end

--- Adds the block of a run below the others: at once, or soon if the person sees the buffer already.
---
--- Drawing at once would take the processor from the command that starts.
---@param run co.Run
---@param forget fun(run: co.Run) called for each run that no longer fits into the buffer
function M.add(run, forget)
  ---@type co.shell.Undrawn
  local waiting = { run = run, forget = forget }
  undrawn[#undrawn + 1] = waiting
  if shell and buffer.alive(shell) and not run.owner then
    -- The person has just started it. A cursor at the end follows its block.
    windows.scroll_to_end(shell)
  end
  local seen = shell and windows.in_tabpage(shell)
  if seen or not pcall(draw_waiting) then
    draw_later(waiting, DRAW_DELAY_MS)
  end
end

--- Shows the buffer in this tab page, without focus.
---@return integer win
function M.show()
  local buf = ensure()
  local win = windows.in_tabpage(buf)
  if win then
    return win
  end
  draw_waiting()
  win = windows.split(buf, { side = 'below', size = config.get().shell_height })
  set_options(win)
  api.nvim_win_set_cursor(win, { api.nvim_buf_line_count(buf), 0 })
  fold_earlier(win)
  return win
end

--- Closes the window of the buffer in this tab page. The runs continue.
function M.hide()
  local win = shell and windows.in_tabpage(shell)
  if win then
    windows.hide(win)
  end
end

--- Shows the buffer, or hides it.
function M.toggle()
  if shell and buffer.alive(shell) and windows.in_tabpage(shell) then
    M.hide()
  else
    M.show()
  end
end

--- Writes the status of a run below its output.
---@param run co.Run
---@param text string
---@param group string
function M.status(run, text, group)
  draw_waiting()
  local found = block_of(run)
  if not found then
    return
  end
  windows.follow(found.buf, function()
    buffer.write(found.buf, function()
      write_status(run, text, group)
    end)
    if not run.running and order[#order] ~= run then
      fold(run)
    end
  end)
end

--- Shows new output of a run.
---@param run co.Run
---@param patch co.Patch
function M.output(run, patch)
  draw_waiting()
  local found = block_of(run)
  if not found then
    return
  end
  local _, last = rows_of(run)
  local at_end = vim.tbl_filter(function(win)
    return api.nvim_win_get_cursor(win)[1] - 1 == last
  end, vim.fn.win_findbuf(found.buf))
  windows.follow(found.buf, function()
    buffer.write(found.buf, function()
      found:patch(patch)
    end)
  end)
  local _, tail = rows_of(run)
  if tail then
    for _, win in ipairs(at_end) do
      api.nvim_win_set_cursor(win, { tail + 1, 0 })
    end
  end
end

--- Goes to the first line of a run's output, or shows its end without focus.
---@param run co.Run
---@param where 'head'|'tail'
function M.show_output(run, where)
  if run.mode == 'pty' and terminal.show(run.id) then
    return
  end
  draw_waiting()
  local head, tail = rows_of(run)
  if not head or not tail then
    local kept = run.spill and (': it is kept in ' .. run.spill) or ''
    notify.info(('the output of run %d is no longer shown%s'):format(run.id, kept))
    return
  end
  local win = M.show()
  api.nvim_win_set_cursor(win, { (where == 'head' and head or tail) + 1, 0 })
  if where == 'head' then
    windows.enter(win)
  end
end

--- Returns the run at a row, by default that of the cursor: the last one that begins above it.
---@param row? integer
---@return co.Run?
function M.run_at(row)
  draw_waiting()
  row = row or api.nvim_win_get_cursor(0)[1] - 1
  local found
  for _, run in ipairs(order) do
    local first = first_row(run)
    if first and first <= row then
      found = run
    end
  end
  return found or order[1]
end

--- Returns the block of a run, if the buffer still has it.
---@param run co.Run
---@return co.Block?
function M.block(run)
  draw_waiting()
  return block_of(run)
end

--- Returns the rows of the first lines of all runs.
---@return integer[]
function M.rows()
  draw_waiting()
  local rows = {}
  for _, run in ipairs(order) do
    rows[#rows + 1] = first_row(run)
  end
  return rows
end

return M
