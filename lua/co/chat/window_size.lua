--- Keeps each window's share of the screen when the screen changes its size, in tab pages with a chat.
---
--- Without this module, Neovim would shrink or enlarge only the last window.
local M = {}

local api = vim.api
local windows = require('co.ui.windows')

--- The width or the height of windows, and the options that belong to it.
---@class (exact) co.window_size.Axis
---@field name string of the window variable
---@field get fun(win: integer): integer
---@field set fun(win: integer, length: integer)
---@field screen 'columns'|'lines'
---@field fixed 'winfixwidth'|'winfixheight'
---@field entered 'winwidth'|'winheight' the least length of the window that the person enters

--- The length of a window, and the length of the screen at that time. `now` and `screen_now` are the lengths at the
--- last event. They differ from `length` and `screen` after the screen has changed its size.
---@class (exact) co.window_size.Share
---@field length integer
---@field screen integer
---@field now integer
---@field screen_now integer

--- Returns the filetype of a window.
---@param win integer
---@return string
local function filetype(win)
  return vim.bo[api.nvim_win_get_buf(win)].filetype
end

--- Returns the rows of the window of the prompt below a text, with the line between them.
---@param win integer
---@return integer
local function prompt_rows(win)
  if filetype(win) ~= 'co-chat' then
    return 0
  end
  local below = api.nvim_win_call(win, function()
    return vim.fn.win_getid(vim.fn.winnr('j'))
  end)
  return filetype(below) == 'co-prompt' and api.nvim_win_get_height(below) + 1 or 0
end

---@type co.window_size.Axis[]
local axes = {
  {
    name = 'co_width',
    get = api.nvim_win_get_width,
    set = api.nvim_win_set_width,
    screen = 'columns',
    fixed = 'winfixwidth',
    entered = 'winwidth',
  },
  {
    name = 'co_height',
    -- The height of the prompt depends on its text.
    get = function(win)
      return api.nvim_win_get_height(win) + prompt_rows(win)
    end,
    set = function(win, height)
      windows.set_height(win, math.max(1, height - prompt_rows(win)))
    end,
    screen = 'lines',
    fixed = 'winfixheight',
    entered = 'winheight',
  },
}

--- Returns the windows of the current tab page that have a share.
---@param axis co.window_size.Axis
---@return integer[]
local function windows_with_share(axis)
  return vim.tbl_filter(function(win)
    local belongs_to_text = axis.screen == 'lines' and filetype(win) == 'co-prompt'
    return not windows.is_float(win) and not belongs_to_text
  end, api.nvim_tabpage_list_wins(0))
end

--- Returns whether Neovim enlarged the current window because the person entered it.
---@param axis co.window_size.Axis
---@return boolean
local function enlarged(axis)
  local noted = vim.w[axis.name] ---@type co.window_size.Share?
  local length = axis.get(api.nvim_get_current_win())
  return noted ~= nil and noted.now < length and length <= vim.o[axis.entered]
end

--- Notes the shares of the windows that the person changed.
function M.note()
  for _, axis in ipairs(axes) do
    local screen = vim.o[axis.screen]
    for _, win in ipairs(enlarged(axis) and {} or windows_with_share(axis)) do
      local length = axis.get(win)
      local noted = vim.w[win][axis.name] ---@type co.window_size.Share?
      if not noted or noted.now ~= length then
        vim.w[win][axis.name] =
          { length = length, screen = screen, now = length, screen_now = screen }
      end
    end
  end
end

--- Gives a window the share that was noted, if the screen has changed its size since.
---@param win integer
---@param axis co.window_size.Axis
local function restore(win, axis)
  local noted = vim.w[win][axis.name] ---@type co.window_size.Share?
  local screen = vim.o[axis.screen]
  if not noted or noted.screen_now == screen then
    return
  end
  local length = noted.length
  -- The fixed length of co's own windows is meant for other changes.
  if not vim.wo[win][axis.fixed] or filetype(win):find('^co%-') then
    -- With the line that separates it from the next window.
    local scaled = (length + 1) * (screen + 1) / (noted.screen + 1) - 1
    length = math.max(1, math.floor(scaled + 0.5)) --[[@as integer]]
  end
  if length ~= axis.get(win) then
    axis.set(win, length)
  end
end

--- Gives the windows the shares that were noted.
function M.restore()
  for _, axis in ipairs(axes) do
    local wins = windows_with_share(axis)
    -- A window takes its room from others, so a second pass is needed. If there is not enough room, the chats have it.
    for pass = 1, 3 do
      for _, win in ipairs(wins) do
        if pass < 3 or filetype(win) == 'co-chat' then
          restore(win, axis)
        end
      end
    end
    for _, win in ipairs(wins) do
      local noted = vim.w[win][axis.name] ---@type co.window_size.Share?
      if noted then
        noted.now, noted.screen_now = axis.get(win), vim.o[axis.screen]
        vim.w[win][axis.name] = noted
      end
    end
  end
end

return M
