--- A block of a buffer that shows the output of one command, between two lines that belong to another module.
---
--- Two extmarks hold its place, so blocks above may grow. The module knows no windows.
local M = {}

local api = vim.api
local buffer = require('co.ui.buffer')
local highlight = require('co.ui.highlight')

local marks = api.nvim_create_namespace('co.block')
local colours = api.nvim_create_namespace('co.sgr')
local notes = api.nvim_create_namespace('co.skipped')

---@class (exact) co.Block
---@field buf integer
---@field head integer extmark of the line above the first line
---@field tail integer extmark of the line below the last one
---@field skipped integer lines of the output before the first line that is shown
---@field always_folded? boolean it is folded if it is short too
local Block = {}
Block.__index = Block

--- Creates a block between the rows `head` and `tail`. It does not change these rows.
---@param buf integer
---@param head integer
---@param tail integer
---@return co.Block
function M.new(buf, head, tail)
  return setmetatable({
    buf = buf,
    head = api.nvim_buf_set_extmark(buf, marks, head, 0, { right_gravity = false }),
    tail = api.nvim_buf_set_extmark(buf, marks, tail, 0, { right_gravity = true }),
    skipped = 0,
  }, Block)
end

--- Returns the line in the place of the first lines of an output.
---@param count integer
---@return string
function M.skipped_line(count)
  return ('… %d earlier lines'):format(count)
end

--- Returns the row of an extmark.
---@param buf integer
---@param mark integer
---@return integer?
local function row(buf, mark)
  return api.nvim_buf_get_extmark_by_id(buf, marks, mark, {})[1]
end

--- Returns the rows of the lines around the block; nil if the person deleted them.
---@return integer? head
---@return integer? tail
function Block:rows()
  local head, tail = row(self.buf, self.head), row(self.buf, self.tail)
  if not head or not tail or head >= tail or tail >= api.nvim_buf_line_count(self.buf) then
    return nil, nil
  end
  return head, tail
end

--- Writes a line with the number of skipped lines above the first line of output. This line is buffer text, not virtual
--- text, so the cursor and `gf` work on it.
---@param count integer
function Block:show_skipped(count)
  local head = self:rows()
  if not head or count == self.skipped then
    return
  end
  local after = self.skipped > 0 and head + 2 or head + 1
  self.skipped = count
  if count == 0 then
    buffer.set_lines(self.buf, head + 1, after, {})
    return
  end
  local text = M.skipped_line(count)
  buffer.set_lines(self.buf, head + 1, after, { text })
  api.nvim_buf_clear_namespace(self.buf, notes, head + 1, head + 2)
  api.nvim_buf_set_extmark(
    self.buf,
    notes,
    head + 1,
    0,
    { end_col = #text, hl_group = 'CoRunSkipped' }
  )
end

--- Returns the row of the first line of output and the row after the last one.
---@return integer? first
---@return integer? tail
function Block:content()
  local head, tail = self:rows()
  if not head then
    return nil, nil
  end
  return head + 1 + (self.skipped > 0 and 1 or 0), tail
end

--- Applies a patch. One that changes `skipped` replaces all lines.
---@param patch co.Patch
function Block:patch(patch)
  self:show_skipped(patch.skipped)
  local first, tail = self:content()
  if not first or not tail then
    return
  end
  local from = math.min(first + patch.from, tail) --[[@as integer]]
  if from < tail then
    api.nvim_buf_clear_namespace(self.buf, colours, from, tail)
  end
  buffer.set_lines(self.buf, from, tail, patch.lines)
  highlight.set_styles(self.buf, colours, from, patch.styles)
end

return M
