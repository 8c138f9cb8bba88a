--- The place of the approval float: beside the prompts of chats and the last lines of their texts.
local M = {}

local api = vim.api
local windows = require('co.ui.windows')

-- The largest number of rows at the end of a chat's text that stay visible. At most half of the window stays visible.
local LAST_ROWS = 8
-- The smallest useful width of a float.
local LEAST_WIDTH = 20
local BORDER = 2

--- An area of the screen; `bottom` and `right` are the first row and column after it.
---@class (exact) co.Area
---@field top integer
---@field left integer
---@field bottom integer
---@field right integer

--- A place for a float: its lower right corner, and the room above and to the left of this corner, without the border.
---@class (exact) co.float.Place
---@field bottom integer
---@field right integer
---@field width integer
---@field height integer

--- Returns the area of a window.
---@param win integer
---@return co.Area
local function area_of(win)
  local place = api.nvim_win_get_position(win)
  local top, left = place[1], place[2]
  return {
    top = top,
    left = left,
    bottom = top + api.nvim_win_get_height(win),
    right = left + api.nvim_win_get_width(win),
  }
end

--- Returns the area of the last rows of a window's text, if they are visible.
---@param win integer
---@return co.Area?
local function last_rows(win)
  local last = api.nvim_buf_line_count(api.nvim_win_get_buf(win))
  if vim.fn.line('w$', win) < last then
    return nil
  end
  local area = area_of(win)
  local top = area.top + vim.fn.getwininfo(win)[1].winbar
  local rows = { start_row = vim.fn.line('w0', win) - 1, end_row = last - 1 }
  area.bottom = math.min(area.bottom, top + api.nvim_win_text_height(win, rows).all)
  local kept = math.min(LAST_ROWS, math.ceil((api.nvim_win_get_height(win)) / 2))
  area.top = math.max(top, area.bottom - kept)
  return area
end

-- For each attempt, the rows that the float must not cover, and its smallest height. If there is no room, the float may
-- cover the last rows of chats. If there is still no room, it may also cover the lines that name the prompts.
---@type { last_rows: boolean, line_above: boolean, height: integer }[]
local levels = {
  { last_rows = true, line_above = true, height = 3 },
  { last_rows = false, line_above = true, height = 3 },
  { last_rows = false, line_above = false, height = 1 },
}

--- Returns the areas that the float must not cover.
---@param level { last_rows: boolean, line_above: boolean }
---@return co.Area[]
local function reserved(level)
  ---@type co.Area[]
  local areas = {}
  for _, win in ipairs(api.nvim_tabpage_list_wins(0)) do
    local filetype = vim.bo[api.nvim_win_get_buf(win)].filetype
    if filetype == 'co-prompt' then
      local area = area_of(win)
      if level.line_above and not windows.is_float(win) then
        area.top = area.top - 1
      end
      areas[#areas + 1] = area
    elseif filetype == 'co-chat' and level.last_rows then
      areas[#areas + 1] = last_rows(win)
    end
  end
  return areas
end

--- Returns the place with the lower right corner at `bottom` and `right`. The place reaches up to the next of the
--- areas.
---@param bottom integer
---@param right integer
---@param wanted integer the width
---@param areas co.Area[]
---@return co.float.Place
local function place_at(bottom, right, wanted, areas)
  local width = math.min(wanted, right - BORDER)
  local top = 0
  for _, area in ipairs(areas) do
    if area.top < bottom and area.left < right and area.right > right - width - BORDER then
      top = math.max(top, area.bottom)
    end
  end
  return { bottom = bottom, right = right, width = width, height = bottom - top - BORDER }
end

--- Returns the place in the lower right corner of the screen, with the room of the whole screen.
---@return co.float.Place
function M.corner()
  local bottom = windows.bottom()
  return {
    bottom = bottom,
    right = vim.o.columns,
    width = math.max(1, vim.o.columns - BORDER),
    height = math.max(1, bottom - BORDER),
  }
end

--- Returns the first place with enough room, in order from the lower right corner. If no place has enough room, returns
--- the place with the most rows.
---@param width integer the width that the float wants
---@param height_for fun(width: integer): integer the height that it wants
---@param areas co.Area[] that it must not cover
---@param least integer the least height
---@return co.float.Place?
---@return boolean fits
local function find(width, height_for, areas, least)
  local corner = M.corner()
  local bottoms, rights = { corner.bottom }, { corner.right }
  for _, area in ipairs(areas) do
    bottoms[#bottoms + 1], rights[#rights + 1] = area.top, area.left
  end
  local function descending(a, b)
    return a > b
  end
  table.sort(bottoms, descending)
  table.sort(rights, descending)
  ---@type co.float.Place?
  local best
  for _, right in ipairs(rights) do
    for _, bottom in ipairs(bottoms) do
      local place = place_at(bottom, right, width, areas)
      if place.width >= math.min(width, LEAST_WIDTH) then
        if place.height >= height_for(place.width) then
          return place, true
        elseif place.height >= least and (not best or place.height > best.height) then
          best = place
        end
      end
    end
  end
  return best, false
end

--- Returns a place that covers no prompt and, if possible, no last rows of a chat; nil if there is no room.
---@param width integer the width that the float wants
---@param height_for fun(width: integer): integer the height that it wants
---@param whole boolean the whole content of the float must be visible
---@return co.float.Place?
function M.free(width, height_for, whole)
  for _, level in ipairs(levels) do
    local place, fits = find(width, height_for, reserved(level), level.height)
    if place and (fits or not whole) then
      return place
    end
  end
end

return M
