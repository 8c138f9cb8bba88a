--- Opens and closes windows. The person's windows keep their place, size and view.
local M = {}

local api = vim.api
local guarded = require('co.ui.guarded')
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

--- Returns whether a window has a winbar or room for one. A window of one row has none.
---@param win integer
---@return boolean
function M.fits_winbar(win)
  local info = vim.fn.getwininfo(win)[1]
  return info.height > 1 or info.winbar == 1
end

--- Runs `change`, which opens or closes a window in a row or in a column. Other windows keep their sizes and their text.
---@generic T
---@param parent? string `row` or `col`
---@param change fun(): T
---@return T
local function keep_layout(parent, change)
  local options = { splitkeep = 'screen' }
  -- 'equalalways' is not turned off: to turn it on again changes all sizes, and crashes Neovim on a narrow screen.
  options.eadirection = parent == 'row' and 'ver' or 'hor'
  -- With these two, the room of a closed window goes to the window that it was taken from.
  options.splitright, options.splitbelow = true, true
  local before = {}
  for name, value in pairs(options) do
    before[name], vim.o[name] = vim.o[name], value
  end
  local ok, result = pcall(change)
  for name, value in pairs(before) do
    vim.o[name] = value
  end
  if not ok then
    error(result, 0)
  end
  return result
end

--- Returns whether a window may be split: it is no float, and no window of a chat, whose two windows stay together.
---@param win integer
---@return boolean
local function can_be_split(win)
  local filetype = vim.bo[api.nvim_win_get_buf(win)].filetype
  return not M.is_float(win) and filetype ~= 'co-chat' and filetype ~= 'co-prompt'
end

--- Returns the window to split: the current one, the last one or another one; nil if none may be split.
---@return integer?
local function window_to_split()
  local previous = vim.fn.win_getid(vim.fn.winnr('#'))
  local candidates = { api.nvim_get_current_win(), previous ~= 0 and previous or nil }
  vim.list_extend(candidates, api.nvim_tabpage_list_wins(0))
  for _, win in ipairs(candidates) do
    if can_be_split(win) then
      return win
    end
  end
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
  local there, problem = pcall(guarded.go_to_window, win)
  if not there then
    local cmdwin = vim.fn.getcmdwintype() ~= ''
    local why = cmdwin and 'close the command-line window first' or tostring(problem)
    notify.warn('the cursor stays where it is: ' .. why)
  end
  return there
end

--- Opens a split without focus.
---@param buf integer
---@param where { side: 'below'|'right', size: integer }
---@return integer win
function M.split(buf, where)
  local base = window_to_split()
  local below = where.side == 'below'
  local height = base and api.nvim_win_get_height(base) or vim.o.lines
  local width = base and api.nvim_win_get_width(base) or vim.o.columns
  local size = math.max(1, math.min(where.size, math.floor((below and height or width) / 2)))
  local win = keep_layout(below and 'col' or 'row', function()
    return guarded.open_window(buf, false, {
      split = where.side,
      win = base or -1,
      height = below and size or nil,
      width = not below and size or nil,
    })
  end)
  -- A new window inherits these from the window of the person.
  M.options(win, { diff = false, scrollbind = false, cursorbind = false })
  return win
end

--- Returns the part of the screen that a float in its middle takes, without the border.
---@return { row: integer, col: integer, width: integer, height: integer }
function M.float_area()
  local width = math.max(20, math.floor(vim.o.columns * 0.8))
  local height = math.max(4, math.floor((vim.o.lines - vim.o.cmdheight) * 0.8))
  width, height = math.min(width, vim.o.columns - 2), math.min(height, vim.o.lines - 4)
  return {
    row = math.max(0, math.floor((vim.o.lines - height) / 2) - 1),
    col = math.max(0, math.floor((vim.o.columns - width) / 2)),
    width = math.max(1, width),
    -- The winbar of a chat takes one row.
    height = math.max(2, height),
  }
end

--- Opens a float in the middle of the screen.
---@param buf integer
---@return integer win
local function open_float(buf)
  local place = vim.tbl_extend('error', M.float_area(), { relative = 'editor', border = 'rounded' })
  return guarded.open_window(buf, false, place)
end

--- Opens a window above or below another one, without focus. It takes its room from that one.
---@param buf integer
---@param win integer
---@param side 'above'|'below'
---@return integer win
function M.open_beside(buf, win, side)
  if M.is_float(win) then
    return open_float(buf)
  end
  local opened = keep_layout('col', function()
    return guarded.open_window(buf, false, { split = side, win = win })
  end)
  M.options(opened, { diff = false, scrollbind = false, cursorbind = false })
  return opened
end

--- Moves a window above or below another one.
---@param win integer
---@param target integer
---@param side 'above'|'below'
function M.move(win, target, side)
  keep_layout('col', function()
    local ignored = vim.o.eventignore
    vim.o.eventignore = 'all'
    -- With a size, Neovim does not make the other windows equally high.
    local options = { rightbelow = side == 'below', size = api.nvim_win_get_height(win) }
    local moved, problem = pcall(vim.fn.win_splitmove, win, target, options)
    vim.o.eventignore = ignored
    if not moved then
      error(problem, 0)
    end
  end)
end

--- Sets the height of a window. The text in other windows does not move.
---@param win integer
---@param height integer
function M.set_height(win, height)
  keep_layout('col', function()
    api.nvim_win_set_height(win, height)
  end)
end

--- Opens `buf` in a layout, without focus if the layout allows it.
---@param buf integer
---@param layout string
---@return integer win
function M.open(buf, layout)
  if layout == 'horizontal' then
    return M.split(buf, { side = 'below', size = math.floor(vim.o.lines * 0.5) })
  elseif layout == 'float' then
    return open_float(buf)
  elseif layout == 'tab' then
    guarded.open_tab(buf)
    return api.nvim_get_current_win()
  elseif layout == 'current' then
    local win = window_to_split()
    local left, problem = pcall(guarded.set_buf, win or -1, buf)
    if win and left then
      return win
    elseif win and not tostring(problem):find('E37:', 1, true) then
      error(problem, 0)
    end
    -- With 'nohidden', a modified buffer stays visible.
    return M.split(buf, { side = 'below', size = vim.o.lines })
  end
  return M.split(buf, { side = 'right', size = math.floor(vim.o.columns * 0.45) })
end

--- Returns the windows of a tab page that show `buf`.
---@param buf integer
---@param tab? integer the current one by default
---@return integer[]
function M.showing(buf, tab)
  return vim.tbl_filter(function(win)
    return api.nvim_win_get_buf(win) == buf
  end, api.nvim_tabpage_list_wins(tab or 0))
end

--- Returns a window of this tab page that shows `buf`.
---@param buf integer
---@return integer?
function M.in_tabpage(buf)
  return M.showing(buf)[1]
end

--- Returns the kind of the frame that contains a window; nil if none does.
---@param win integer
---@param layout vim.fn.winlayout.ret
---@return string? `row` or `col`
local function parent_of(win, layout)
  local kind = layout[1]
  local children = kind == 'leaf' and {} or layout[2] --[[@as vim.fn.winlayout.ret[] ]]
  for _, child in ipairs(children) do
    local found = child[2] == win and kind or parent_of(win, child)
    if found then
      return found
    end
  end
end

--- Returns the buffer that takes the place of one of the plugin: the one used last that is listed, or an empty one.
---@return integer
local function buffer_instead()
  local listed = vim.fn.getbufinfo({ buflisted = 1 })
  table.sort(listed, function(a, b)
    return a.lastused > b.lastused
  end)
  return listed[1] and listed[1].bufnr or api.nvim_create_buf(true, false)
end

--- Closes a window. The last window of Neovim gets another buffer instead.
---@param win integer
function M.hide(win)
  local alone = #vim.tbl_filter(function(other)
    return not M.is_float(other)
  end, api.nvim_tabpage_list_wins(api.nvim_win_get_tabpage(win))) == 1
  if alone and not M.is_float(win) and #api.nvim_list_tabpages() == 1 then
    vim.wo[win].winfixbuf = false
    guarded.set_buf(win, buffer_instead())
    return
  end
  local tab = api.nvim_tabpage_get_number(api.nvim_win_get_tabpage(win))
  keep_layout(parent_of(win, vim.fn.winlayout(tab)), function()
    guarded.close_window(win)
  end)
end

--- Returns the first and the last line that a window shows as a whole; nil if there is none, or the window may hide parts of them.
---@param win integer
---@return integer?
---@return integer last
function M.whole_lines(win)
  local first, last = vim.fn.line('w0', win), vim.fn.line('w$', win)
  -- With 'smoothscroll', the top line may be shown without its beginning.
  local view = api.nvim_win_call(win, vim.fn.winsaveview)
  if (view.skipcol or 0) > 0 then
    first = first + 1
  end
  -- If one line is higher than the window, its end is not visible.
  local row = { start_row = first - 1, end_row = first - 1 }
  if first == last and api.nvim_win_text_height(win, row).all > api.nvim_win_get_height(win) then
    return nil, last
  end
  -- The person may have changed the options of the window.
  local hides = not vim.wo[win].wrap or vim.wo[win].conceallevel > 0
  api.nvim_win_call(win, function()
    for line = first, last do
      hides = hides or vim.fn.foldclosed(line) > 0
    end
  end)
  if hides then
    return nil, last
  end
  return first, last
end

--- Puts the cursor at the end of the last line. The end of a line that is higher than the window is then visible.
---@param win integer
local function go_to_end(win)
  local last = api.nvim_buf_line_count(api.nvim_win_get_buf(win))
  api.nvim_win_set_cursor(win, { last, vim.v.maxcol - 1 })
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
    -- On the last line, the cursor of the person stays.
    if win ~= api.nvim_get_current_win() or api.nvim_win_get_cursor(win)[1] ~= now then
      go_to_end(win)
    end
  end
end

--- Runs `change`, which puts `rows` rows above the first one of `buf`. The windows of `buf` show the same lines as before.
---@param buf integer
---@param rows integer
---@param change fun()
function M.keep_views(buf, rows, change)
  ---@type table<integer, vim.fn.winsaveview.ret>
  local views = {}
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    -- Neovim itself keeps the view of a window, unless it shows the first row.
    if vim.fn.line('w0', win) == 1 then
      views[win] = api.nvim_win_call(win, vim.fn.winsaveview)
    end
  end
  change()
  for win, view in pairs(views) do
    view.lnum, view.topline = view.lnum + rows, view.topline + rows
    api.nvim_win_call(win, function()
      vim.fn.winrestview(view)
    end)
  end
end

--- Scrolls all windows that show `buf` to its end.
---@param buf integer
function M.scroll_to_end(buf)
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    go_to_end(win)
  end
end

--- Redraws while the command line is open: Neovim does not do it then.
function M.redraw()
  if api.nvim_get_mode().mode == 'c' then
    vim.cmd.redraw()
  end
end

--- Moves the cursor to a row and sets the mark ' before.
---@param row integer
function M.go_to_row(row)
  vim.cmd("normal! m'")
  api.nvim_win_set_cursor(0, { row + 1, 0 })
end

--- Moves the cursor to the next or the previous of the rows.
---@param rows integer[] from top to bottom
---@param step 1|-1
---@return boolean moved
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
    M.go_to_row(target)
  end
  return target ~= nil
end

--- Returns the row below the last row of the windows: the row of the last status line or, without a status line, of the
--- command line.
---@return integer
function M.bottom()
  return vim.o.lines - vim.o.cmdheight - (vim.o.laststatus > 0 and 1 or 0)
end

--- Changes the heights of the windows if together they are higher than the screen. Neovim gives windows of a fixed height
--- more rows than a small screen has, if they are beside others, and aborts when it draws them.
local function keep_on_screen()
  local rows = M.bottom()
  for _, win in ipairs(api.nvim_tabpage_list_wins(0)) do
    local bottom = api.nvim_win_get_position(win)[1] + api.nvim_win_get_height(win)
    if bottom > rows and not M.is_float(win) then
      vim.cmd('vertical wincmd =')
      return
    end
  end
end

-- This module is loaded before those that restore the sizes of windows at these events.
api.nvim_create_autocmd({ 'VimResized', 'TabEnter' }, {
  group = api.nvim_create_augroup('co.windows', {}),
  callback = keep_on_screen,
})

return M
