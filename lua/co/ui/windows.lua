--- Opens and closes windows. The person's windows keep their place, size and view.
local M = {}

local api = vim.api
local notify = require('co.ui.notify')

--- Returns whether a window is a float.
---@param win integer
---@return boolean
function M.is_float(win)
  return api.nvim_win_get_config(win).relative ~= ''
end

--- Sets options of a window.
---@param win integer
---@param options table<string, any>
function M.options(win, options)
  for name, value in pairs(options) do
    -- The local scope: another buffer in the same window gets the values of the person.
    api.nvim_set_option_value(name, value, { win = win, scope = 'local' })
  end
end

--- Sets 'equalalways' again, without the change of all sizes that comes with it.
local function set_equalalways()
  local fixed = {}
  for _, win in ipairs(api.nvim_tabpage_list_wins(0)) do
    local options = vim.wo[win]
    fixed[win] = { winfixwidth = options.winfixwidth, winfixheight = options.winfixheight }
    M.options(win, { winfixwidth = true, winfixheight = true })
  end
  vim.o.equalalways = true
  for win, options in pairs(fixed) do
    M.options(win, options)
  end
end

--- Runs `change`. Other windows keep their sizes and their text.
---@generic T
---@param change fun(): T
---@return T
local function keep_layout(change)
  local options = { splitkeep = 'screen' }
  -- With these two, the room of a closed window goes to the window that it was taken from.
  options.splitright, options.splitbelow = true, true
  local before = {}
  for name, value in pairs(options) do
    before[name], vim.o[name] = vim.o[name], value
  end
  local equal = vim.o.equalalways
  vim.o.equalalways = false
  local ok, result = pcall(change)
  if equal then
    set_equalalways()
  end
  for name, value in pairs(before) do
    vim.o[name] = value
  end
  if not ok then
    error(result, 0)
  end
  return result
end

--- Returns the window to split: the current one, or the last one that is no float.
---@return integer
local function window_to_split()
  local win = api.nvim_get_current_win()
  if not M.is_float(win) then
    return win
  end
  local previous = vim.fn.win_getid(vim.fn.winnr('#'))
  if previous ~= 0 and not M.is_float(previous) then
    return previous
  end
  for _, other in ipairs(api.nvim_tabpage_list_wins(0)) do
    if not M.is_float(other) then
      return other
    end
  end
  return win
end

--- Calls `act`, which opens windows. A notice names the reason if none can be opened.
---@param act fun()
function M.attempt(act)
  local ok, problem = pcall(act)
  if ok then
    return
  elseif tostring(problem):find('E36:', 1, true) then
    notify.error('there is no room for a window: close another, or make Neovim larger')
  elseif tostring(problem):find('E565:', 1, true) then
    notify.error('no window opens from an <expr> mapping, use <Cmd>')
  else
    error(problem, 0)
  end
end

--- Goes to a window, or shows the reason why it cannot.
---@param win integer
---@return boolean there
function M.enter(win)
  local another = api.nvim_win_get_buf(win) ~= api.nvim_get_current_buf()
  if another and api.nvim_get_mode().mode:match('^[vV\22sS\19]') then
    -- A mapping with <Cmd> keeps Visual mode: the first key would act on a selection in the new window.
    vim.cmd('normal! \27')
  end
  local there, problem = pcall(api.nvim_set_current_win, win)
  if not there then
    local cmdwin = vim.fn.getcmdwintype() ~= ''
    local why = cmdwin and 'close the command-line window first' or tostring(problem)
    notify.warn('the cursor stays where it is: ' .. why)
  end
  return there
end

--- Opens a split without focus.
---@param buf integer
---@param where { side: 'below'|'right', size: integer, edge?: boolean }
---@return integer win
function M.split(buf, where)
  local base = window_to_split()
  local below = where.side == 'below'
  local room = below and api.nvim_win_get_height(base) or api.nvim_win_get_width(base)
  local size = math.max(1, math.min(where.size, math.floor(room / 2)))
  local win = keep_layout(function()
    return api.nvim_open_win(buf, false, {
      split = where.side,
      win = where.edge and -1 or base,
      height = below and size or nil,
      width = not below and size or nil,
    })
  end)
  -- A new window inherits these from the window of the person.
  M.options(win, { diff = false, scrollbind = false, cursorbind = false })
  return win
end

--- Opens a float in the middle of the screen.
---@param buf integer
---@return integer win
local function open_float(buf)
  local width = math.max(20, math.floor(vim.o.columns * 0.8))
  local height = math.max(4, math.floor((vim.o.lines - vim.o.cmdheight) * 0.8))
  width, height = math.min(width, vim.o.columns - 2), math.min(height, vim.o.lines - 4)
  return api.nvim_open_win(buf, false, {
    relative = 'editor',
    row = math.max(0, math.floor((vim.o.lines - height) / 2) - 1),
    col = math.max(0, math.floor((vim.o.columns - width) / 2)),
    width = math.max(1, width),
    -- The winbar of a chat takes one row.
    height = math.max(2, height),
    border = 'rounded',
  })
end

--- Opens `buf` in a layout, without focus if the layout allows it.
---@param buf integer
---@param layout string
---@return integer win
function M.open(buf, layout)
  if layout == 'horizontal' then
    return M.split(buf, { side = 'below', size = math.floor(vim.o.lines * 0.4) })
  elseif layout == 'float' then
    return open_float(buf)
  elseif layout == 'tab' then
    vim.cmd('tab sbuffer ' .. buf)
    return api.nvim_get_current_win()
  elseif layout == 'current' then
    local win = window_to_split()
    local left, problem = pcall(api.nvim_win_set_buf, win, buf)
    if left then
      return win
    elseif not tostring(problem):find('E37:', 1, true) then
      error(problem, 0)
    end
    -- With 'nohidden', a modified buffer stays visible.
    return M.split(buf, { side = 'below', size = vim.o.lines })
  end
  return M.split(buf, { side = 'right', size = math.floor(vim.o.columns * 0.45) })
end

--- Returns the window of this tab page that shows `buf`.
---@param buf integer
---@return integer?
function M.in_tabpage(buf)
  for _, win in ipairs(api.nvim_tabpage_list_wins(0)) do
    if api.nvim_win_get_buf(win) == buf then
      return win
    end
  end
end

--- Closes a window. The last window of Neovim gets another buffer instead.
---@param win integer
function M.hide(win)
  local alone = #vim.tbl_filter(function(other)
    return not M.is_float(other)
  end, api.nvim_tabpage_list_wins(api.nvim_win_get_tabpage(win))) == 1
  if alone and not M.is_float(win) and #api.nvim_list_tabpages() == 1 then
    local alternate = vim.fn.bufnr('#')
    local other = alternate > 0 and alternate ~= api.nvim_win_get_buf(win) and alternate
      or api.nvim_create_buf(true, false)
    vim.wo[win].winfixbuf = false
    api.nvim_win_set_buf(win, other)
    return
  end
  keep_layout(function()
    api.nvim_win_close(win, false)
  end)
end

--- Shows a few lines until the cursor moves.
---@param lines string[]
---@param title string
function M.popup(lines, title)
  local buf = api.nvim_create_buf(false, true)
  vim.bo[buf].modifiable = true
  api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].bufhidden = 'wipe'
  local width = vim.fn.strdisplaywidth(title)
  for _, line in ipairs(lines) do
    width = math.max(width, vim.fn.strdisplaywidth(line))
  end
  local win = api.nvim_open_win(buf, false, {
    relative = 'editor',
    anchor = 'SE',
    row = vim.o.lines - vim.o.cmdheight - 1,
    col = vim.o.columns,
    width = math.max(1, math.min(width, vim.o.columns - 2)),
    height = math.max(1, math.min(#lines, vim.o.lines - vim.o.cmdheight - 4)),
    border = 'rounded',
    style = 'minimal',
    title = title,
    focusable = false,
    zindex = 65,
  })
  local here, at = api.nvim_get_current_win(), api.nvim_win_get_cursor(0)
  api.nvim_create_autocmd({ 'CursorMoved', 'InsertEnter', 'WinEnter' }, {
    callback = function(event)
      local still = here == api.nvim_get_current_win()
        and vim.deep_equal(at, api.nvim_win_get_cursor(0))
      if event.event == 'CursorMoved' and still then
        -- Leaving the command line counts as a movement.
        return false
      end
      if api.nvim_win_is_valid(win) then
        api.nvim_win_close(win, true)
      end
      return true
    end,
  })
end

--- Runs `change`. Windows whose cursor was on the last line follow the end of the buffer.
---@param buf integer
---@param change fun()
function M.follow(buf, change)
  local last = api.nvim_buf_line_count(buf)
  local following = {}
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    if api.nvim_win_get_cursor(win)[1] == last then
      following[#following + 1] = win
    end
  end
  change()
  local now = api.nvim_buf_line_count(buf)
  for _, win in ipairs(following) do
    local cursor = api.nvim_win_get_cursor(win)
    if cursor[1] ~= now then
      api.nvim_win_set_cursor(win, { now, cursor[2] })
    end
  end
end

--- Scrolls all windows that show `buf` to its end, so that a sent prompt is visible.
---@param buf integer
function M.scroll_to_end(buf)
  local last = api.nvim_buf_line_count(buf)
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    if api.nvim_win_get_cursor(win)[1] ~= last then
      api.nvim_win_set_cursor(win, { last, 0 })
    end
  end
end

--- Redraws while the command line is open: Neovim does not do it then.
function M.redraw()
  if api.nvim_get_mode().mode == 'c' then
    vim.cmd.redraw()
  end
end

--- Moves the cursor to the next or the previous of the rows and sets the mark ' before.
---@param rows integer[] from top to bottom
---@param step 1|-1
function M.jump(rows, step)
  local at = api.nvim_win_get_cursor(0)[1] - 1
  local target
  for _, row in ipairs(rows) do
    if step == 1 and row > at then
      target = row
      break
    elseif step == -1 and row < at then
      target = row
    end
  end
  if target then
    vim.cmd("normal! m'")
    api.nvim_win_set_cursor(0, { target + 1, 0 })
  end
end

return M
