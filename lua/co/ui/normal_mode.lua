--- Leaves the present mode for something that needs normal mode: a `y` must not go into a command line.
local M = {}

local api = vim.api

---@alias co.normal_mode.From 'insert'|'replace'|'terminal'

-- The function that waits for normal mode.
---@type fun(from?: co.normal_mode.From)?
local waiting

--- Calls the function that waits for normal mode.
---@param from? co.normal_mode.From the mode before
function M.continue(from)
  local act = waiting
  waiting = nil
  if act then
    act(from)
  end
end

--- Returns the mode that a command may lead back to.
---@param mode string as `nvim_get_mode()` tells it
---@return co.normal_mode.From?
local function origin(mode)
  if mode:match('^R') or mode:match('^ni[RV]') then
    return 'replace'
  elseif mode:match('^i') or mode:match('^ni') then
    return 'insert'
  end
  return mode:match('^t') and 'terminal' or nil
end

--- Leaves the present mode, then calls `act`.
---@param act fun(from?: co.normal_mode.From) gets the mode before
function M.enter(act)
  local mode = api.nvim_get_mode().mode
  if vim.fn.getcmdwintype() ~= '' then
    vim.cmd.quit()
    vim.schedule(act)
  elseif mode:match('^ni') then
    vim.cmd.stopinsert()
    act(origin(mode))
  elseif mode == 'n' or mode:match('^nt') then
    act()
  else
    waiting = act
    local from = vim.inspect(origin(mode))
    local keys = ('<C-\\><C-N><Cmd>lua require("co.ui.normal_mode").continue(%s)<CR>'):format(from)
    api.nvim_feedkeys(vim.keycode(keys), 'in', false)
  end
end

return M
