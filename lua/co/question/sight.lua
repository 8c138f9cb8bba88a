--- Finds out whether the person can see the whole question in the float, and since what time.
---
--- The module compares the text with the cells of the screen. So no other code needs to know the things that can hide a
--- window, such as other floats, messages or another tab page.
local M = {}

local api = vim.api

-- The time in nanoseconds after which a question on the screen counts as seen.
local SEEN = 250 * 1000000
-- The time between two readings of the screen, and the number of readings that a seen question needs. Readings are
-- counted because a blocked Neovim draws nothing.
local TICK_MS, TICKS = 50, 5
-- After so many readings of a covered question, the screen is read less often.
local COVERED_MS, COVERED_TICKS = 250, 20

--- The part of the question that is on the screen: the whole question, a part, or no part for certain.
---@alias co.sight.Visibility 'whole'|'cut'|'covered'

--- The question in the float, and the time for which the question has been on the screen.
---@class (exact) co.sight.Sight
---@field win integer
---@field key string changes with the question, its text and its size
---@field partial boolean a part of the question is not in the text
---@field since? integer the time at which it came on the screen
---@field visible integer the readings since then
---@field covered integer the number of readings since the question was last visible
---@field seen boolean

---@type co.sight.Sight?
local sight
---@type uv.timer?
local timer
-- The timer goes on while functions wait to be called.
local scheduled = false

-- 'arabicshape' draws these letters as other characters.
local ARABIC = vim.regex('^[\\u0600-\\u06ff]')
local SHAPED = vim.regex('^[\\u0600-\\u06ff\\ufb50-\\ufeff]')

--- Returns whether a cell of the screen shows a character.
---@param cell string
---@param char string
---@return boolean
local function shows(cell, char)
  -- Neovim shows an unprintable character as several characters.
  local shown = vim.fn.strtrans(char)
  return cell:find(char, 1, true) ~= nil
    or shown ~= char and cell ~= '' and vim.startswith(shown, cell)
    or ARABIC:match_str(char) ~= nil and SHAPED:match_str(cell) ~= nil
end

--- Returns whether another float may be over a window.
---@param win integer
---@return boolean
local function may_be_covered(win)
  local layer = api.nvim_win_get_config(win).zindex
  for _, other in ipairs(api.nvim_tabpage_list_wins(0)) do
    local config = api.nvim_win_get_config(other)
    if other ~= win and config.relative ~= '' and not config.hide and config.zindex >= layer then
      return true
    end
  end
  return false
end

--- Compares the text of a window with the screen. Ignores blanks, because 'listchars' may show them as other
--- characters.
---@param win integer
---@param cells boolean Neovim knows what the cells of the screen show
---@return co.sight.Visibility
local function compare(win, cells)
  local last = vim.fn.line('w$', win)
  for number, line in ipairs(api.nvim_buf_get_lines(api.nvim_win_get_buf(win), 0, -1, false)) do
    if number > last then
      -- `screenpos()` gives places in a line that does not fit, although '@' is drawn there ('display').
      return 'cut'
    end
    local starts = vim.str_utf_pos(line)
    starts[1] = starts[1] or 1
    for index, start in ipairs(starts) do
      local char = line:sub(start, (starts[index + 1] or #line + 1) - 1)
      if start == 1 or not char:find('^%s?$') and char ~= '\194\160' then
        local place = vim.fn.screenpos(win, number, start)
        if place.row == 0 then
          return 'cut'
        elseif
          cells
          and not char:find('^%s?$')
          and not shows(vim.fn.screenstring(place.row, place.col), char)
        then
          return 'covered'
        end
      end
    end
  end
  return not cells and may_be_covered(win) and 'covered' or 'whole'
end

--- Returns how much of the question is on the screen now; nil if the float shows no question.
---@return co.sight.Visibility?
function M.visibility()
  if not sight or not api.nvim_win_is_valid(sight.win) then
    return nil
  elseif
    api.nvim_win_get_tabpage(sight.win) ~= api.nvim_get_current_tabpage()
    or #api.nvim_list_uis() == 0
  then
    return 'covered'
  end
  local cells = true
  for _, ui in ipairs(api.nvim_list_uis()) do
    -- Such a front end draws each window itself.
    cells = cells and not ui.ext_multigrid
  end
  local visibility = compare(sight.win, cells)
  return visibility == 'whole' and sight.partial and 'cut' or visibility
end

--- Reads the screen. A long question counts as visible if the screen shows the part that is in the float.
local function read_screen()
  scheduled = false
  local now = sight
  if not now or not timer or now.seen then
    return
  end
  local visibility = not api.nvim_get_mode().blocking and M.visibility()
  if visibility and visibility ~= 'covered' then
    now.since, now.visible, now.covered = now.since or vim.uv.hrtime(), now.visible + 1, 0
    now.seen = now.visible > TICKS and vim.uv.hrtime() - now.since >= SEEN
  else
    now.since, now.visible, now.covered = nil, 0, now.covered + 1
  end
  timer:set_repeat(now.covered > COVERED_TICKS and COVERED_MS or TICK_MS)
  if now.seen then
    timer:stop()
  end
end

--- Starts to count the time again.
function M.restart()
  if not sight then
    return
  end
  sight.since, sight.visible, sight.covered, sight.seen = nil, 0, 0, false
  timer = timer or assert(vim.uv.new_timer())
  timer:start(1, TICK_MS, function()
    -- A Neovim that is busy reads the screen once afterwards.
    if not scheduled then
      scheduled = true
      vim.schedule(read_screen)
    end
  end)
end

--- Notes the question that the float shows. If the question, its text or its size has changed, restarts the time.
---@param win integer
---@param key string changes with the question and its text
---@param partial boolean a part of the question is not in the text
function M.shown(win, key, partial)
  key = ('%d %dx%d %s'):format(win, api.nvim_win_get_width(win), api.nvim_win_get_height(win), key)
  if not sight or sight.key ~= key then
    sight = { win = win, key = key, partial = partial, visible = 0, covered = 0, seen = false }
    M.restart()
  end
end

--- Forgets the question. Call it when the float shows no question.
function M.gone()
  sight = nil
  if timer then
    timer:stop()
  end
end

--- Returns whether the question has been on the screen for long enough to be read.
---@return boolean
function M.seen()
  return sight ~= nil and sight.seen
end

return M
