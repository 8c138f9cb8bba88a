--- Lets the person choose from a list.
local M = {}

--- Shows the list with `vim.ui.select()`. `<C-c>` chooses nothing.
---@generic T
---@param items T[]
---@param opts { prompt?: string, format_item?: fun(item: T): string }
---@param done fun(item?: T)
function M.show(items, opts, done)
  local ok, problem = pcall(vim.ui.select, items, opts, done)
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
