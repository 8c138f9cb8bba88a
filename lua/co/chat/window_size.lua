--- Keeps the share of the screen that a chat takes when the screen changes its size.
---
--- Neovim would take the room from the last window, and give it all to the last window.
local M = {}

local api = vim.api
local windows = require('co.ui.windows')

---@class (exact) co.WindowSize
---@field columns integer of the screen
---@field lines integer of the screen
---@field width? integer nil if no other window is beside the chat
---@field height? integer of both windows; nil if no other window is above or below

--- Returns the height of both windows, with the line between them.
---@param text integer
---@param prompt integer
---@return integer
local function height_of(text, prompt)
  return api.nvim_win_get_height(text) + 1 + api.nvim_win_get_height(prompt)
end

--- Returns the present size of a chat.
---@param text integer
---@param prompt integer
---@return co.WindowSize
local function present(text, prompt)
  local place = api.nvim_win_get_position(text)
  local top, left = place[1], place[2]
  local width, height = api.nvim_win_get_width(text), height_of(text, prompt)
  ---@type co.WindowSize
  local size = { columns = vim.o.columns, lines = vim.o.lines }
  for _, win in ipairs(api.nvim_tabpage_list_wins(0)) do
    if not windows.is_float(win) then
      local other = api.nvim_win_get_position(win)
      local row, column = other[1], other[2]
      if column < left or column + api.nvim_win_get_width(win) > left + width then
        size.width = width
      end
      if row < top or row + api.nvim_win_get_height(win) > top + height then
        size.height = height
      end
    end
  end
  return size
end

--- Returns the width and the height that have the same share of the present screen.
---@param size co.WindowSize
---@return integer? width
---@return integer? height
local function scaled(size)
  local function scale(length, whole, now)
    return length and math.max(1, math.floor(length * now / whole + 0.5)) or nil
  end
  return scale(size.width, size.columns, vim.o.columns), scale(size.height, size.lines, vim.o.lines)
end

--- Notes the share of the screen, if the person changed it.
---@param text integer
---@param prompt? integer
function M.note(text, prompt)
  if not prompt or windows.is_float(text) then
    return
  end
  local noted, size = vim.w[text].co_size, present(text, prompt)
  local width, height
  if noted then
    width, height = scaled(noted)
  end
  if not noted or width ~= size.width or height ~= size.height then
    vim.w[text].co_size = size
  end
end

--- Gives a chat the share of the screen that was noted.
---@param text integer
---@param prompt integer
function M.restore(text, prompt)
  local noted = vim.w[text].co_size
  if not noted then
    return
  end
  local width, height = scaled(noted)
  if width and width ~= api.nvim_win_get_width(text) then
    api.nvim_win_set_width(text, width)
  end
  if height and height ~= height_of(text, prompt) then
    windows.set_height(text, math.max(1, height - api.nvim_win_get_height(prompt) - 1))
  end
end

return M
