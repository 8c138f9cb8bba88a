--- Turns the signs of the calls that run. Without such a call there is no timer.
local M = {}

local api = vim.api
local config = require('co.config')

local marks = api.nvim_create_namespace('co.calls.spinner')

local FRAMES = { '⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏' }
local ASCII_FRAMES = { '|', '/', '-', '\\' }
-- Milliseconds between two frames. A remote terminal gets few.
local PACE, REMOTE_PACE = 120, 1000

-- The places of running calls, by their buffers and extmarks.
---@type table<string, { buf: integer, mark: integer, column: integer, row: fun(): integer? }>
local running = {}
local timer = assert(vim.uv.new_timer())
local frame = 0

--- Draws the next frame in each buffer that a window shows.
local function draw()
  frame = frame + 1
  local frames = config.get().ascii and ASCII_FRAMES or FRAMES
  local sign = frames[frame % #frames + 1]
  for _, place in pairs(running) do
    local shown = api.nvim_buf_is_loaded(place.buf) and #vim.fn.win_findbuf(place.buf) > 0
    local row = shown and place.row()
    if row then
      api.nvim_buf_set_extmark(place.buf, marks, row, place.column, {
        id = place.mark,
        virt_text = { { sign, 'CoCallWaits' } },
        virt_text_pos = 'overlay',
      })
    end
  end
end

--- Stops the turning of the sign of a call.
---@param buf integer
---@param mark integer extmark of the call
function M.stop(buf, mark)
  local key = buf .. ':' .. mark
  if not running[key] then
    return
  end
  running[key] = nil
  if api.nvim_buf_is_loaded(buf) then
    api.nvim_buf_del_extmark(buf, marks, mark)
  end
  if next(running) == nil then
    timer:stop()
  end
end

--- Starts the turning of the sign of a call.
---@param buf integer
---@param mark integer extmark of the call
---@param column integer of the sign
---@param row fun(): integer? returns the row of the call
function M.start(buf, mark, column, row)
  local first = next(running) == nil
  running[buf .. ':' .. mark] = { buf = buf, mark = mark, column = column, row = row }
  if first then
    local remote = vim.env.SSH_CONNECTION or vim.env.SSH_TTY
    local pace = remote and REMOTE_PACE or PACE
    timer:start(pace, pace, vim.schedule_wrap(draw))
  end
end

return M
