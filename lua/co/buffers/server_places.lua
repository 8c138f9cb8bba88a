--- The places that language servers name.
local M = {}

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

return M
