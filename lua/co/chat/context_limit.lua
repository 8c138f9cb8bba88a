--- Cuts the context of a prompt to a length that can be sent.
local M = {}

local api = vim.api
local notify = require('co.ui.notify')
local printable = require('co.ui.printable')

--- The most bytes of one piece.
M.LONGEST = 512 * 1024

-- The largest number of bytes of a word that may be a secret.
local LONGEST_SECRET = 4096

-- The largest number of bytes of all texts of a prompt, and of all images of a prompt in base64.
local ALL_TEXTS = 4 * 1024 * 1024
local ALL_IMAGES = 10 * 1024 * 1024

--- Returns lines of a buffer, each with a line break. Stops after the line that makes the text too long for one piece.
---@param buf integer
---@param first integer
---@param last integer
---@return string text
---@return integer size bytes of all the lines
function M.lines(buf, first, last)
  local start = api.nvim_buf_get_offset(buf, first - 1)
  local size = api.nvim_buf_get_offset(buf, last) - start
  if size > M.LONGEST then
    -- Binary search for the line that exceeds the limit: checking each line takes as long as reading all.
    local low, high = first, last
    while low < high do
      local middle = math.floor((low + high) / 2)
      if api.nvim_buf_get_offset(buf, middle) - start > M.LONGEST then
        high = middle
      else
        low = middle + 1
      end
    end
    last = low
  end
  local text = table.concat(api.nvim_buf_get_lines(buf, first - 1, last, false), '\n') .. '\n'
  return text, math.max(size, #text)
end

--- Cuts a line between two characters. If the last word may be a secret, cuts before this word: the backend would not
--- find a secret without its end.
---@param line string longer than `most`
---@param most integer bytes
---@return string
local function cut_line(line, most)
  local text = line:sub(1, most + vim.str_utf_start(line, most + 1))
  local word = text:sub(-LONGEST_SECRET):match('[%s"\',;]([^%s"\',;]*)$')
  return text:sub(1, #text - #(word or ''))
end

--- Cuts a piece after a line, so that the backend finds each whole secret. Cuts the first line only if it is too long
--- for any piece. Returns nil if other pieces left no room for the first line.
---@param piece co.Context
---@param most integer bytes
---@return co.Context?
local function cut(piece, most)
  local text = piece.text:sub(1, most):match('^.*\n')
    or most == M.LONGEST and cut_line(piece.text, most)
    or nil
  local size = piece.size or #piece.text
  return text
    and {
      name = ('%s, first %s of %s'):format(piece.name, printable.size(#text), printable.size(size)),
      text = ('%s%s… cut after %d of %d bytes'):format(
        text,
        text:sub(-1) == '\n' and '' or '\n',
        #text,
        size
      ),
    }
end

--- Cuts pieces that are too long, leaves out pieces above the total limit, and shows a notice that names both.
---@param pieces co.Context[]
---@return co.Context[]
function M.fit(pieces)
  local fitting, shortened, left_out = {}, {}, {}
  local room, image_room = ALL_TEXTS, ALL_IMAGES
  for _, piece in ipairs(pieces) do
    local most = math.min(M.LONGEST, room)
    local image = piece.image
    if image and #image.data <= image_room then
      image_room = image_room - #image.data
      fitting[#fitting + 1] = piece
    elseif image then
      left_out[#left_out + 1] = piece.name
    elseif #piece.text <= most then
      room = room - #piece.text
      fitting[#fitting + 1] = { name = piece.name, text = piece.text }
    else
      local start = cut(piece, most)
      room = start and room - most or room
      fitting[#fitting + 1] = start
      shortened[#shortened + 1] = start and start.name
      left_out[#left_out + 1] = not start and piece.name or nil
    end
  end
  if #shortened > 0 then
    notify.warn('too long to send in full, name fewer lines: ' .. table.concat(shortened, '; '))
  end
  if #left_out > 0 then
    notify.warn('too much to send at once, left out: ' .. table.concat(left_out, '; '))
  end
  return fitting
end

return M
