--- Offers the earlier commands of `:Co!`.
local M = {}

local notify = require('co.ui.notify')
local select = require('co.ui.select')

--- Returns the commands of `:Co!` in the history of the command line, each once, the newest first.
---@return string[]
local function commands()
  local found, seen = {}, {}
  for index = vim.fn.histnr(':'), 1, -1 do
    local command = vim.fn.histget(':', index):match('^%s*Co!%s*(.-)%s*$')
    if command and command ~= '' and not seen[command] then
      seen[command] = true
      found[#found + 1] = command
    end
  end
  return found
end

--- Puts the chosen command on the command line.
function M.choose()
  local choices = commands()
  if #choices == 0 then
    notify.info('the history of the command line has no :Co!')
    return
  end
  select.show(choices, { prompt = 'Earlier commands' }, function(command)
    if command then
      vim.api.nvim_feedkeys(vim.keycode('<C-Bslash><C-n>') .. ':Co! ' .. command, 'n', false)
    end
  end)
end

return M
