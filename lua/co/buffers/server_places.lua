--- The places that language servers name, and the lines of text there. Neovim does not wait for the disk.
local M = {}

local disk = require('co.ui.file_text')

-- The most bytes of a file that is not open.
local LONGEST = 4 * 1024 * 1024

--- A place in a file.
---@class (exact) co.ServerPlace
---@field file string
---@field row integer from 0
---@field character integer from 0, in the unit of the language server
---@field unit 'utf-8'|'utf-16'|'utf-32'

--- Returns a line and a character. Raises an error if a language server gave no whole numbers.
---@param line any
---@param character any
---@return integer line, integer character
function M.whole(line, character)
  for _, number in ipairs({ line or -1, character or -1 }) do
    assert(type(number) == 'number' and number >= 0 and number < 2 ^ 31 and number % 1 == 0)
  end
  return line, character
end

--- Returns the places in files that an answer of a language server names.
---@param result lsp.Location|lsp.LocationLink|(lsp.Location|lsp.LocationLink)[]
---@param unit 'utf-8'|'utf-16'|'utf-32'
---@return co.ServerPlace[]
function M.of(result, unit)
  local found = {}
  for _, location in ipairs(vim.islist(result) and result or { result }) do
    local uri = location.uri or location.targetUri
    local start = (location.range or location.targetSelectionRange).start
    local row, character = M.whole(start.line, start.character)
    if vim.startswith(uri, 'file:') then
      found[#found + 1] = {
        file = vim.uri_to_fname(uri),
        row = row,
        character = character,
        unit = unit,
      }
    end
  end
  return found
end

--- Sorts places by file and position.
---@param places co.ServerPlace[]
function M.sort(places)
  table.sort(places, function(one, other)
    if one.file ~= other.file then
      return one.file < other.file
    elseif one.row ~= other.row then
      return one.row < other.row
    end
    return one.character < other.character
  end)
end

--- Returns the byte of a character in a line, from 1.
---@param line string
---@param place co.ServerPlace
---@return integer
local function column(line, place)
  if place.unit == 'utf-8' then
    return math.min(place.character, #line) + 1
  end
  local ok, byte
  if vim.fn.has('nvim-0.11') == 1 then
    ok, byte = pcall(vim.str_byteindex, line, place.unit, place.character, false)
  else
    ---@diagnostic disable-next-line: param-type-mismatch -- what 0.10 has
    ok, byte = pcall(vim.str_byteindex, line, place.character, place.unit == 'utf-16')
  end
  return (
    ok and byte --[[@as integer]]
    or #line
  ) + 1
end

--- Gives an entry for each place, with its line of text; an empty text if the file cannot be read.
---@param places co.ServerPlace[] sorted
---@param done fun(entries: co.EditorEntry[])
function M.read(places, done)
  local entries = {}
  ---@type string?, co.LineReader?
  local file, lines
  local function next_entry()
    local place = places[#entries + 1]
    if not place then
      return done(entries)
    elseif place.file ~= file then
      file = place.file
      return disk.read_lines(file, LONGEST, function(reader)
        lines = reader
        next_entry()
      end)
    end
    local text = lines and lines(place.row, place.row + 1)[1] or ''
    entries[#entries + 1] =
      { file = place.file, line = place.row + 1, column = column(text, place), text = text }
    return next_entry()
  end
  next_entry()
end

return M
