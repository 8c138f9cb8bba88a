--- Reads the errors in the output of a run into the quickfix list, or shows them as diagnostics.
local M = {}

local api = vim.api
local backend = require('co.backend')
local focus = require('co.ui.focus')
local last_window = require('co.ui.last_window')
local locations = require('co.ui.locations')
local notify = require('co.ui.notify')
local printable = require('co.ui.printable')
local requests = require('co.backend.requests')
local shell_buffer = require('co.run.shell_buffer')

-- Parsing more lines takes a noticeable time.
local MAX_EARLIER_LINES = 100000

-- The types of entries by the word that their text begins with.
local TYPES = { warning = 'W', note = 'I' }

local diagnostics = api.nvim_create_namespace('co.run')

---@class (exact) co.ErrorFormat
---@field name string
---@field errorformat string

--- Returns the format of a compiler; nil if `:compiler` does not know it.
---@param name string
---@return co.ErrorFormat?
local function of_compiler(name)
  local buf = api.nvim_create_buf(false, true)
  local known = pcall(api.nvim_buf_call, buf, function()
    vim.cmd.compiler(name)
  end)
  local errorformat = vim.bo[buf].errorformat
  api.nvim_buf_delete(buf, { force = true })
  if known then
    return {
      name = ':compiler ' .. name,
      errorformat = errorformat ~= '' and errorformat or vim.go.errorformat,
    }
  end
end

--- Returns the formats to try: those of the shell buffer and of the last file, as `:compiler` sets them, then the global
--- 'errorformat'.
---@param shell integer
---@return co.ErrorFormat[]
local function formats(shell)
  ---@type co.ErrorFormat[]
  local found = {}
  for _, buf in ipairs({ shell, last_window.buffer() }) do
    local compiler = vim.b[buf].current_compiler ---@type string?
    if vim.bo[buf].errorformat ~= '' then
      local name = compiler and ':compiler ' .. compiler or "'errorformat' of a buffer"
      found[#found + 1] = { name = name, errorformat = vim.bo[buf].errorformat }
    end
  end
  found[#found + 1] = { name = "'errorformat'", errorformat = vim.go.errorformat }
  return found
end

--- Calls `done` with the lines of a run before those that the shell buffer shows, from the file with the whole output. The
--- backend reads them as it reads the shown ones.
---@param run co.Run
---@param count integer
---@param done fun(lines: string[])
local function earlier_lines(run, count, done)
  if count == 0 or not run.spill then
    return done({})
  end
  local most = math.min(count, MAX_EARLIER_LINES)
  local message = { type = 'read_output', file = run.spill, lines = most }
  requests.send(message, backend.send, function(answer)
    done(answer and answer.lines or {})
  end)
end

--- Returns the errors in the output of a run by the first format that fits a line.
---@param run co.Run
---@param tried co.ErrorFormat[]
---@param block co.Block its block
---@param lines string[] those before the shown ones
---@return vim.quickfix.entry[]
---@return co.ErrorFormat? format nil if none fits
local function parse(run, tried, block, lines)
  local first, tail = block:content()
  if not first or not tail then
    return {}
  end
  vim.list_extend(lines, api.nvim_buf_get_lines(block.buf, first, tail, false))
  for _, format in ipairs(tried) do
    local items = locations.parse(lines, run.cwd, format.errorformat)
    if #items > 0 then
      return items, format
    end
  end
  return {}
end

--- Fills the quickfix list from the output of a run, of which `lines` are not shown.
---@param run co.Run
---@param tried co.ErrorFormat[]
---@param block co.Block its block
---@param lines string[]
local function list(run, tried, block, lines)
  local items, format = parse(run, tried, block, lines)
  if block.skipped > MAX_EARLIER_LINES and run.spill then
    local text = 'co read only the first %d and the shown lines of this run'
    notify.info(text:format(MAX_EARLIER_LINES))
  end
  if format then
    local title = ('Co! %s (%s)'):format(printable.first_line(run.command), format.name)
    locations.open_list(title, items)
    notify.info(('%d with %s'):format(#items, format.name))
    return
  end
  local names = vim.tbl_map(function(one)
    return one.name
  end, tried)
  notify.info('no line of this run fits ' .. table.concat(names, ', '))
end

--- Fills the quickfix list from the output of a run with the first format that fits a line. A notice names the format.
---@param run co.Run
---@param compiler? string the only one to try
function M.quickfix(run, compiler)
  focus.asked()
  local block = shell_buffer.block(run)
  if not block or not block:content() then
    notify.info('the output of this run is not in the shell buffer')
    return
  end
  local only = compiler and of_compiler(compiler)
  if compiler and not only then
    notify.error(('there is no :compiler %s'):format(compiler))
    return
  end
  local tried = only and { only } or formats(block.buf)
  earlier_lines(run, block.skipped, function(lines)
    list(run, tried, block, lines)
  end)
end

--- Returns the type of an entry; if the format has none, that which its text begins with.
---@param item vim.quickfix.entry
---@return string
local function type_of(item)
  local word = (item.text or ''):lower():match('^%s*(%a+)')
  return item.type ~= '' and item.type or TYPES[word] or ''
end

--- Replaces the diagnostics of the runs by the errors of a run. Their source names the format.
---@param run co.Run
function M.show_diagnostics(run)
  vim.diagnostic.reset(diagnostics)
  local block = shell_buffer.block(run)
  local items, format = {}, nil
  if block then
    items, format = parse(run, formats(block.buf), block, {})
  end
  for _, item in ipairs(items) do
    item.type = type_of(item)
  end
  ---@type table<integer, vim.Diagnostic[]>
  local found = {}
  for _, item in ipairs(vim.diagnostic.fromqflist(items)) do
    local buf = item.bufnr
    if buf and buf > 0 and vim.uv.fs_stat(api.nvim_buf_get_name(buf)) then
      item.message = printable.trim(item.message)
      item.source = format and format.name
      found[buf] = found[buf] or {}
      table.insert(found[buf], item)
    end
  end
  for buf, list in pairs(found) do
    vim.diagnostic.set(diagnostics, buf, list)
  end
  -- Neovim 0.10 and 0.11 do not draw diagnostics that were set before their buffer was loaded.
  local group = api.nvim_create_augroup('co.run_diagnostics', {})
  if vim.tbl_isempty(found) then
    return
  end
  api.nvim_create_autocmd('BufReadPost', {
    group = group,
    desc = 'co: draw the diagnostics of a file that is read',
    callback = function(event)
      vim.diagnostic.show(diagnostics, event.buf)
    end,
  })
end

return M
