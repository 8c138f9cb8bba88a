--- What is text, and what is only bytes.
local M = {}

--- Said where a chat cannot be.
M.NO_PLACE = "no chat here: this directory's name is not all UTF-8; :cd to another"

--- Whether the backend can read `text` as such.
---@param text string
---@return boolean
function M.valid(text)
  -- It refuses bytes that begin no character, and surrogates. No file's name and no command line has a NUL.
  return (pcall(vim.fn.json_encode, text))
end

return M
