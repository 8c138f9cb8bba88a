--- Runs actions that start autocommands. An error in an autocommand of another plugin is logged, and stops nothing.
local M = {}

local api = vim.api
local log = require('co.ui.log')

---@type fun()?
local act_now

--- Runs the action that `call` has set. Only `call` uses it.
function M.act()
  assert(act_now)()
end

--- Calls `act`, and returns its result. An error in an autocommand of another plugin is logged: it stops neither `act` nor other
--- autocommands, and the person sees no message of it.
---@generic T
---@param act fun(): T
---@return T
function M.call(act)
  if act_now then
    return act()
  end
  local ok, result
  act_now = function()
    ok, result = pcall(act)
  end
  local before = vim.v.errmsg
  vim.v.errmsg = ''
  -- As with `silent!`, an error is no exception, so other autocommands run. Messages are shown.
  local called, problem = pcall(api.nvim_cmd, {
    cmd = 'lua',
    args = { "require('co.ui.guarded').act()" },
    mods = { emsg_silent = true, unsilent = true },
  }, {})
  act_now = nil
  local failed = not called and tostring(problem) or vim.v.errmsg
  vim.v.errmsg = before
  if ok == false then
    error(failed == '' and result or ('%s: %s'):format(result, failed), 0)
  elseif failed ~= '' then
    log.add('autocommands', failed)
  end
  return result
end

--- Runs the autocommands of an event.
---@param event string
---@param opts vim.api.keyset.exec_autocmds
function M.run_autocommands(event, opts)
  opts.modeline = false
  M.call(function()
    api.nvim_exec_autocmds(event, opts)
  end)
end

--- Opens a window.
---@param buf integer
---@param focus boolean
---@param config vim.api.keyset.win_config
---@return integer win
function M.open_window(buf, focus, config)
  return M.call(function()
    return api.nvim_open_win(buf, focus, config)
  end)
end

--- Makes an ordinary window the current one of a tab page that is not shown, if a float is the current one there. Neovim
--- crashes when it returns to a tab page whose current window was a float that is closed meanwhile.
---@param float integer
local function leave_in_other_tab(float)
  local tab = api.nvim_win_get_tabpage(float)
  if tab == api.nvim_get_current_tabpage() or api.nvim_tabpage_get_win(tab) ~= float then
    return
  end
  for _, win in ipairs(api.nvim_tabpage_list_wins(tab)) do
    if win ~= float and api.nvim_win_get_config(win).relative == '' then
      api.nvim_tabpage_set_win(tab, win)
      return
    end
  end
end

--- Closes a window. A buffer with unsaved text stays.
---@param win integer
---@param force? boolean
function M.close_window(win, force)
  M.call(function()
    leave_in_other_tab(win)
    api.nvim_win_close(win, force or false)
    if api.nvim_win_is_valid(win) then
      error('the window stays', 0)
    end
  end)
end

--- Makes a window the current one.
---@param win integer
function M.go_to_window(win)
  M.call(function()
    api.nvim_set_current_win(win)
  end)
end

--- Makes a tab page the current one.
---@param tab integer
function M.go_to_tab(tab)
  M.call(function()
    api.nvim_set_current_tabpage(tab)
  end)
end

--- Shows a buffer in a window.
---@param win integer
---@param buf integer
function M.set_buf(win, buf)
  M.call(function()
    api.nvim_win_set_buf(win, buf)
    if api.nvim_win_get_buf(win) ~= buf then
      error('the window keeps its buffer', 0)
    end
  end)
end

--- Shows a buffer in a new tab page.
---@param buf integer
function M.open_tab(buf)
  M.call(function()
    vim.cmd('tab sbuffer ' .. buf)
    if api.nvim_get_current_buf() ~= buf then
      error('no tab page opens', 0)
    end
  end)
end

--- Closes a tab page.
---@param tab integer
function M.close_tab(tab)
  M.call(function()
    vim.cmd.tabclose(api.nvim_tabpage_get_number(tab))
  end)
end

--- Sets an option of a buffer of the plugin.
---@param buf integer
---@param name 'filetype'|'syntax'
---@param value string
function M.set_option(buf, name, value)
  M.call(function()
    vim.bo[buf][name] = value
  end)
end

--- Deletes a buffer of the plugin with its text, if it still exists.
---@param buf integer
function M.delete_buffer(buf)
  if api.nvim_buf_is_valid(buf) then
    M.call(function()
      pcall(api.nvim_buf_delete, buf, { force = true })
    end)
  end
end

return M
