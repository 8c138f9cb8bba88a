--- Colours the text of a review. Parses the text before the change and the text after it separately, outside of the
--- buffer.
---
--- A parser may take minutes for some texts, or crash. So a text that is long, has long lines or is nested deep gets no
--- colours. The work is done in short steps between which Neovim handles keys. Injected languages get no colours.
local M = {}

local api = vim.api
local buffer = require('co.ui.buffer')
local parse_in_steps = require('co.ui.parse_in_steps')

local colours = api.nvim_create_namespace('co.review.colours')

local INTERRUPTS = parse_in_steps.INTERRUPTS
-- The most bytes of a text.
local MOST_BYTES = INTERRUPTS and 24 * 1024 or 2000
-- The largest number of bytes of a line. Neovim is slow to draw a line with thousands of colours.
local LONGEST_LINE = 1000
-- The most bytes of indent, lists and quotes in front of a line.
local MOST_INDENT = 160
-- The most colours of a text.
local MOST_COLOURS = 8000
-- In milliseconds: the longest time of the parser, the longest time of all work on a text, and the pause before this
-- work.
local MOST_PARSING, MOST, PAUSE = 100, 500, 5
-- Captures between two looks at the clock.
local TOGETHER = 16

--- The text before or after a change.
---@class (exact) co.review.Side
---@field lines string[]
---@field rows integer[] the row of each line in the buffer
---@field shown table<integer, true> the rows that get their colours from this text

--- Returns whether a text has long lines, or is nested so deep that a parser may crash.
---@param side co.review.Side
---@return boolean
local function is_wild(side)
  for _, line in ipairs(side.lines) do
    if #line > LONGEST_LINE or #line:match('^[%s>*+%-%d.)]*') > MOST_INDENT then
      return true
    end
  end
  return false
end

--- Returns the language of a file, if there is a parser of it.
---@param path string
---@return string?
local function language_of(path)
  local ok, filetype = pcall(vim.filetype.match, { filename = path })
  if not ok or not filetype then
    return nil
  end
  -- Neovim 0.10 knows only registered filetypes.
  local language = vim.treesitter.language.get_lang(filetype) or filetype
  return pcall(vim.treesitter.get_string_parser, '', language) and language or nil
end

--- Colours the part of a row that a capture covers.
---@param buf integer
---@param side co.review.Side
---@param range Range6
---@param group string
---@param priority integer
local function colour(buf, side, range, group, priority)
  for line = range[1], math.min(range[4], #side.lines - 1) do
    local row = side.rows[line + 1]
    if side.shown[row] then
      local last = line == range[4] and range[5] or #side.lines[line + 1]
      api.nvim_buf_set_extmark(buf, colours, row, line == range[1] and range[2] or 0, {
        end_col = last,
        hl_group = group,
        priority = priority,
        strict = false,
      })
    end
  end
end

--- Colours the rows of a text. It yields now and then.
---@param text co.review.Text
---@param side co.review.Side
---@param tree TSTree
---@param language string
---@async
local function colour_side(text, side, tree, language)
  local query = vim.treesitter.query.get(language, 'highlights')
  if not query then
    return
  end
  coroutine.yield()
  local source, count = table.concat(side.lines, '\n') .. '\n', 0
  for id, node, metadata in query:iter_captures(tree:root(), source, 0, -1) do
    local name, own = query.captures[id], metadata[id] or {}
    if not (vim.startswith(name, '_') or name == 'spell' or name == 'nospell') then
      local range = vim.treesitter.get_range(node, source, own)
      local priority = math.floor(tonumber(metadata.priority or own.priority) or 100)
      colour(text.buf, side, range, '@' .. name .. '.' .. language, priority)
    end
    count = count + 1
    if count > MOST_COLOURS then
      return
    elseif count % TOGETHER == 0 then
      coroutine.yield()
    end
  end
end

--- Colours a text whose rows are all in the buffer.
---@param text co.review.Text
function M.paint(text)
  local bytes = api.nvim_buf_get_offset(text.buf, api.nvim_buf_line_count(text.buf))
  local language = bytes <= MOST_BYTES and language_of(text.change.path)
  if not language then
    return
  end
  for _, side in ipairs({ text:sides() }) do
    if not is_wild(side) and #side.lines > 0 then
      vim.defer_fn(function()
        if not buffer.alive(text.buf) then
          return
        end
        parse_in_steps.start({
          lines = side.lines,
          lang = language,
          injections = false,
          most_parsing = MOST_PARSING,
          most = MOST,
          goes_on = function()
            return buffer.alive(text.buf)
          end,
          work = function(parser)
            colour_side(text, side, parser:trees()[1], language)
          end,
          done = function() end,
        })
      end, PAUSE)
    end
  end
end

return M
