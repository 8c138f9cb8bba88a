--- Shows the whole text of a question that is too long for the float, in a new tab page. No parser reads this text.
local M = {}

local api = vim.api
local buffer = require('co.ui.buffer')
local change_rows = require('co.question.change_rows')
local guarded = require('co.ui.guarded')
local printable = require('co.ui.printable')
local windows = require('co.ui.windows')

-- The text goes into the buffer in steps. Neovim handles keys between two steps.
local STEP_BYTES = 64 * 1024
local STEP_MS = 1

local marks = api.nvim_create_namespace('co.whole_text')
-- The mark before each further row of a line that is too long for one row.
local REST = '↳ '

--- Returns the lines of the next step, the indices of the lines that continue the line before, and the byte after them.
---@param text string
---@param at integer
---@return string[] lines
---@return integer[] rests
---@return integer next
local function take(text, at)
  local lines, rests, stop = {}, {}, at + STEP_BYTES
  local rest = at > 1 and text:byte(at - 1) ~= 10
  while at <= #text and at < stop do
    local last = (text:find('\n', at, true) or #text + 1) - 1
    local part = printable.head(
      text:sub(at, math.min(last, at + printable.LONGEST_LINE + 3)),
      printable.LONGEST_LINE
    )
    lines[#lines + 1] = (rest and REST or '') .. part
    rests[#rests + 1] = rest and #lines or nil
    rest = at + #part <= last
    at = at + #part + (rest and 0 or 1)
  end
  return lines, rests, at
end

--- Adds the text to the buffer, from a byte on.
---@param buf integer
---@param text string
---@param at integer
local function fill(buf, text, at)
  if at > #text or not buffer.alive(buf) then
    return
  end
  local lines, rests, next = take(text, at)
  local first = at == 1 and 0 or api.nvim_buf_line_count(buf)
  buffer.write(buf, function()
    buffer.set_lines(buf, first, -1, lines)
    for _, index in ipairs(rests) do
      local mark = { end_col = #REST, hl_group = 'NonText' }
      api.nvim_buf_set_extmark(buf, marks, first + index - 1, 0, mark)
    end
  end)
  vim.defer_fn(function()
    fill(buf, text, next)
  end, STEP_MS)
end

--- Shows a text in a new tab page. `closed` is called when its buffer is closed.
---@param name string of the buffer
---@param text string
---@param closed fun()
function M.open(name, text, closed)
  local from = api.nvim_get_current_tabpage()
  local buf = buffer.scratch(name, 'co-question')
  buffer.lock(buf)
  vim.bo[buf].bufhidden = 'wipe'
  guarded.open_tab(buf)
  windows.options(0, change_rows.window_options())
  api.nvim_create_autocmd('BufWipeout', { buffer = buf, callback = vim.schedule_wrap(closed) })
  buffer.map(buf, 'n', 'q', function()
    guarded.delete_buffer(buf)
    if api.nvim_tabpage_is_valid(from) then
      guarded.go_to_tab(from)
    end
  end, 'back to the question')
  fill(buf, text, 1)
end

return M
