--- Checks that text is UTF-8.
local M = {}

--- The notice if the name of the directory of a chat is not UTF-8.
M.NO_PLACE = "no chat here: this directory's name is not all UTF-8; :cd to another"

--- Returns whether `text` is UTF-8, so that the backend can read it.
---@param text string
---@return boolean
function M.valid(text)
  -- `json_encode` refuses invalid bytes and surrogates. File names and command lines contain no NUL.
  return (pcall(vim.fn.json_encode, text))
end

return M
