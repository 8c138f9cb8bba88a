--- Reads the errors in the output of a run into the quickfix list.
local M = {}

local api = vim.api
local last_window = require('co.ui.last_window')
local locations = require('co.ui.locations')
local notify = require('co.ui.notify')
local shell_buffer = require('co.run.shell_buffer')

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

--- Fills the quickfix list from the output of a run with the first format that fits a line. A notice names the format.
---@param run co.Run
---@param compiler? string the only one to try
function M.quickfix(run, compiler)
  local block = shell_buffer.block(run)
  local first, tail = nil, nil
  if block then
    first, tail = block:content()
  end
  if not block or not first then
    notify.info('the output of this run is not in the shell buffer')
    return
  end
  local only = compiler and of_compiler(compiler)
  if compiler and not only then
    notify.error(('there is no :compiler %s'):format(compiler))
    return
  end
  local tried = only and { only } or formats(block.buf)
  for _, format in ipairs(tried) do
    local lines = api.nvim_buf_get_lines(block.buf, first, tail --[[@as integer]], false)
    local title = ('Co! %s (%s)'):format(run.command, format.name)
    local count = locations.quickfix(title, lines, run.cwd, format.errorformat)
    if count > 0 then
      vim.cmd('botright copen')
      notify.info(('%d with %s'):format(count, format.name))
      return
    end
  end
  local names = vim.tbl_map(function(format)
    return format.name
  end, tried)
  notify.info('no line of this run fits ' .. table.concat(names, ', '))
end

return M
