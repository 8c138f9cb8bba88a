--- Lets the person choose from a list.
local M = {}

local printable = require('co.ui.printable')

--- Shows the list with `vim.ui.select()`, each item as one line. `<C-c>` chooses nothing.
---@generic T
---@param items T[]
---@param opts { prompt?: string, format_item?: fun(item: T): string }
---@param done fun(item?: T)
function M.show(items, opts, done)
  local format = opts.format_item or tostring
  local shown = {
    prompt = printable.for_plugins(opts.prompt or 'Choose'),
    format_item = function(item)
      return printable.for_plugins(format(item))
    end,
  }
  local ok, problem = pcall(vim.ui.select, items, shown, done)
  -- The list of Neovim itself throws an error then.
  if ok then
    return
  elseif not tostring(problem):find('Keyboard interrupt', 1, true) then
    error(problem, 0)
  end
  -- Else Neovim asks for a key.
  vim.cmd.redraw()
end

return M
