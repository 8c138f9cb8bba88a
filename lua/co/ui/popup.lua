--- Small floats at the bottom right that show a few lines.
local M = {}

local api = vim.api
local buffer = require('co.ui.buffer')
local guarded = require('co.ui.guarded')
local printable = require('co.ui.printable')

-- The largest number of columns of the text.
local WIDTH = 80
-- The rows without text: two of the border, and an empty one above it.
local OTHER_ROWS = 3

--- Returns the row of the bottom edge of a float.
---
--- This is the top of an open question. It is the last row if there is no question or the float takes the focus. If the
--- question leaves no room for a row of text, it covers a part of the float.
---@param focus boolean
---@return integer
local function bottom(focus)
  local last = vim.o.lines - vim.o.cmdheight - 1
  for _, win in ipairs(focus and {} or api.nvim_tabpage_list_wins(0)) do
    if vim.bo[api.nvim_win_get_buf(win)].filetype == 'co-approval' then
      return math.min(last, math.max(api.nvim_win_get_position(win)[1], OTHER_ROWS + 1))
    end
  end
  return last
end

--- Opens a float, with long lines wrapped.
---@param lines string[]
---@param title string
---@param focus boolean
---@return integer win
local function open(lines, title, focus)
  lines = vim.tbl_map(printable.line, lines)
  local buf = api.nvim_create_buf(false, true)
  vim.bo[buf].modifiable = true
  buffer.set_lines(buf, 0, -1, lines)
  vim.bo[buf].modifiable = false
  vim.bo[buf].bufhidden = 'wipe'
  local width = vim.fn.strdisplaywidth(title)
  for _, line in ipairs(lines) do
    width = math.max(width, vim.fn.strdisplaywidth(line))
  end
  width = math.max(1, math.min(width, vim.o.columns - 2, WIDTH)) --[[@as integer]]
  local row = bottom(focus)
  local win = guarded.open_window(buf, focus, {
    relative = 'editor',
    anchor = 'SE',
    row = row,
    col = vim.o.columns,
    width = width,
    height = 1,
    border = 'rounded',
    style = 'minimal',
    title = title,
    focusable = focus,
    -- A question has 60. Only a list that the person opened may cover it.
    zindex = focus and 65 or 55,
  })
  for _, name in ipairs({ 'wrap', 'linebreak' }) do
    api.nvim_set_option_value(name, true, { win = win, scope = 'local' })
  end
  local wanted = api.nvim_win_text_height(win, {}).all
  local height = math.max(1, math.min(wanted, row - OTHER_ROWS)) --[[@as integer]]
  local hidden = not focus and wanted - height or 0
  local rest = hidden == 1 and '1 more row' or ('%d more rows'):format(hidden)
  api.nvim_win_set_config(win, {
    relative = 'editor',
    row = row,
    col = vim.o.columns,
    height = height,
    footer = hidden > 0 and (' %s: :Co /log '):format(rest) or nil,
    footer_pos = hidden > 0 and 'right' or nil,
  })
  return win
end

--- Closes a float, if it is open.
---@param win integer
local function close(win)
  if api.nvim_win_is_valid(win) then
    guarded.close_window(win, true)
  end
end

--- Shows a few lines until the cursor moves or a command line opens. The focus stays.
---@param lines string[]
---@param title string
function M.show(lines, title)
  local win = open(lines, title, false)
  local here, at = api.nvim_get_current_win(), api.nvim_win_get_cursor(0)
  local events = { 'CursorMoved', 'CursorMovedI', 'InsertEnter', 'WinEnter', 'CmdlineEnter' }
  api.nvim_create_autocmd(events, {
    callback = function(event)
      local still = here == api.nvim_get_current_win()
        and vim.deep_equal(at, api.nvim_win_get_cursor(0))
      if event.event == 'CursorMoved' and still then
        -- Leaving the command line counts as a movement.
        return false
      end
      close(win)
      return true
    end,
  })
end

--- Shows a list and goes to it. `q`, `<Esc>` and the given keys close it. So does leaving it, and a command line,
--- which is meant for the window behind.
---@param lines string[]
---@param title string
---@param keys string|string[]|false the keys that opened it
function M.enter(lines, title, keys)
  local win = open(lines, title, true)
  local buf = api.nvim_win_get_buf(win)
  local function leave()
    close(win)
  end
  for _, lhs in ipairs({ 'q', '<Esc>', keys }) do
    buffer.map(buf, 'n', lhs, leave, 'close the list')
  end
  local group = api.nvim_create_augroup('co.popup', {})
  api.nvim_create_autocmd('CmdlineEnter', { group = group, once = true, callback = leave })
  api.nvim_create_autocmd('WinLeave', {
    group = group,
    buffer = buf,
    callback = vim.schedule_wrap(leave),
  })
end

return M
