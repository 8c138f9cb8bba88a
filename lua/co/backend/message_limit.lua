--- Refuses messages that are too long for the backend.
local M = {}

local printable = require('co.ui.printable')

-- The backend reads 16 MiB. Neovim packs some short strings one byte longer than `vim.mpack.encode`.
local LARGEST = 16 * 1024 * 1024 - 64 * 1024

---@type table<string, string>
local advice = {
  prompt = 'save the long part to a file and name it with @file:',
  run = 'save the input to a file and redirect it, as in :Co! wc < file',
  run_input = 'send it in smaller parts',
}

--- Returns the reason why a message cannot be sent, with advice; nil if it can be sent.
---@param message co.FromEditor
---@return string?
function M.problem(message)
  local packed, bytes = pcall(vim.mpack.encode, message)
  -- A message that cannot be packed is refused and logged when it is sent.
  if not packed or #bytes <= LARGEST then
    return nil
  end
  return ('%s: the message has %s, the most is 16 MiB; %s'):format(
    message.type == 'run' and 'not run' or 'not sent',
    printable.size(#bytes),
    advice[message.type] or 'shorten it'
  )
end

return M
