--- What is text, and what is only bytes.
local M = {}

--- Whether the backend can read `text` as such.
---@param text string
---@return boolean
function M.valid(text)
  -- It takes nothing else, surrogates included.
  return (pcall(vim.fn.json_encode, text))
end

return M
