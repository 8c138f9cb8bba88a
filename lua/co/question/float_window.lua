--- The position, the options and the text of the approval float. The module knows no questions.
local M = {}

local api = vim.api
local buffer = require('co.ui.buffer')
local change_rows = require('co.question.change_rows')
local float_place = require('co.question.float_place')
local guarded = require('co.ui.guarded')

local spans = api.nvim_create_namespace('co.approval')
-- The largest number of columns of a float that is not large.
local WIDTH = 80
-- The cells of the column for signs.
local SIGNS = 2

---@class (exact) co.float.View
---@field win integer the window, if it is open
---@field large boolean it may be as wide and as high as the screen
---@field whole boolean all lines must be visible
---@field signs boolean it has a column for signs
---@field share number the largest share of the screen's height, if `large` and `whole` are false
---@field title fun(hidden: number, width: number): string gets the number of lines that do not fit
---@field footer fun(hidden: number, width: integer): string

--- Returns the number of cells of a line.
---@param line string
---@return integer
local function width_of(line)
  return line:find('[%c\128-\255]') and vim.fn.strdisplaywidth(line) or #line
end

--- Returns the number of cells of each line.
---@param lines string[]
---@return integer[]
local function widths_of(lines)
  return vim.tbl_map(width_of, lines)
end

--- Returns the number of cells of a window's width that the text may take.
---@param width integer
---@param view co.float.View
---@return integer
local function text_width(width, view)
  return math.max(1, width - (view.signs and SIGNS or 0))
end

--- Returns the number of rows that lines need. It stops counting at `most`.
---@param widths integer[] the cells of the lines
---@param width integer of the window
---@param most number
---@return integer
local function estimate(widths, width, most)
  local height = 0
  for _, cells in ipairs(widths) do
    height = height + math.max(1, math.ceil(cells / width))
    if height >= most then
      break
    end
  end
  return height
end

--- Returns the place for lines, and the largest number of rows that the lines may take.
---@param widths integer[] the cells of the lines
---@param view co.float.View
---@return co.float.Place
---@return integer most
local function place_for(widths, view)
  local corner = float_place.corner()
  local widest = vim.fn.strdisplaywidth(view.title(1000, math.huge))
  for _, cells in ipairs(widths) do
    widest = math.max(widest, cells + (view.signs and SIGNS or 0))
  end
  if view.large then
    corner.width = math.min(widest, corner.width)
    return corner, corner.height
  end
  local most = view.whole and corner.height or math.max(1, math.floor(corner.height * view.share)) --[[@as integer]]
  corner.width = math.min(widest, corner.width, WIDTH)
  local place = float_place.free(corner.width, function(width)
    return math.min(most, estimate(widths, text_width(width, view), most))
  end, view.whole) or corner
  return place, math.min(most, place.height)
end

--- Returns whether all lines are visible.
---@param lines string[]
---@param view co.float.View
---@return boolean
function M.fits(lines, view)
  local widths = widths_of(lines)
  local place, most = place_for(widths, view)
  return estimate(widths, text_width(place.width, view), most + 1) <= most
end

--- Returns the position and the size for the lines.
---@param lines string[]
---@param view co.float.View
---@return vim.api.keyset.win_config
function M.geometry(lines, view)
  local widths = widths_of(lines)
  local place, most = place_for(widths, view)
  local width = math.max(1, place.width) --[[@as integer]]
  local wanted = estimate(widths, text_width(width, view), math.huge)
  if api.nvim_win_is_valid(view.win) and api.nvim_win_get_width(view.win) == width then
    wanted = api.nvim_win_text_height(view.win, {}).all
  end
  local height = math.max(1, math.min(wanted, most)) --[[@as integer]]
  return {
    relative = 'editor',
    anchor = 'SE',
    row = place.bottom,
    col = place.right,
    width = width,
    height = height,
    title = view.title(wanted - height, width),
    footer = view.footer(wanted - height, width),
    footer_pos = 'right',
  }
end

--- Writes a text with its highlights into the buffer. Returns true if the lines have changed.
---@param buf integer
---@param text co.QuestionText
---@return boolean
function M.write(buf, text)
  local changed = not vim.deep_equal(api.nvim_buf_get_lines(buf, 0, -1, false), text.lines)
  vim.bo[buf].modifiable = true
  buffer.set_lines(buf, 0, -1, text.lines)
  vim.bo[buf].modifiable = false
  api.nvim_buf_clear_namespace(buf, spans, 0, -1)
  for _, span in ipairs(text.spans) do
    api.nvim_buf_set_extmark(buf, spans, span.row, span.from, {
      end_col = span.to,
      hl_group = span.group,
      strict = false,
    })
  end
  for _, row in ipairs(text.rows or {}) do
    local mark = row.continues and change_rows.CONTINUED or change_rows.mark(row.kind)
    api.nvim_buf_set_extmark(buf, spans, row.row, 0, mark)
  end
  return changed
end

--- Replaces the first line. The window keeps its scroll position.
---@param buf integer
---@param line string
function M.write_heading(buf, line)
  vim.bo[buf].modifiable = true
  buffer.set_lines(buf, 0, 1, { line })
  vim.bo[buf].modifiable = false
end

--- Sets the options of the window.
---@param win integer
---@param destructive boolean use the highlight of errors for the border
---@param signs boolean
function M.set_options(win, destructive, signs)
  local border = destructive and 'CoApprovalDestructive' or 'CoApprovalBorder'
  local title = destructive and 'CoApprovalDestructive' or 'CoApprovalTitle'
  local options = {
    winhighlight = ('NormalFloat:CoApproval,FloatBorder:%s,FloatTitle:%s'):format(border, title),
    winfixbuf = true,
    number = false,
    relativenumber = false,
    signcolumn = signs and 'yes' or 'no',
  }
  for name, value in pairs(vim.tbl_extend('error', options, change_rows.window_options())) do
    api.nvim_set_option_value(name, value, { win = win, scope = 'local' })
  end
end

--- Takes the buffer of the float out of another window. Closes a window that was split from the float; any other window
--- shows its earlier buffer again.
---@param win integer
---@param buf integer the buffer of the float
function M.leave(win, buf)
  local earlier = api.nvim_win_call(win, function()
    return vim.fn.bufnr('#')
  end)
  local has_earlier = earlier ~= buf and api.nvim_buf_is_valid(earlier)
  -- A split takes over the options of the float.
  local is_split = vim.wo[win].winhighlight:find('CoApproval', 1, true)
  if (is_split or not has_earlier) and pcall(guarded.close_window, win) then
    return
  end
  -- Neovim does not close the last window.
  guarded.set_buf(win, has_earlier and earlier or api.nvim_create_buf(true, false))
end

return M
