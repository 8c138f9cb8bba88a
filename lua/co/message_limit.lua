--- The longest message that the backend reads.
local M = {}

-- 16 MiB in the backend. Neovim packs some short strings a byte longer than what is measured here.
local LARGEST = 16 * 1024 * 1024 - 64 * 1024

---@type table<string, string>
local advice = {
  prompt = 'save the long part to a file and name that with @file:',
  run = 'save its input to a file and read that, as in :Co! wc < file',
  run_input = 'send it in smaller parts',
}

--- Returns why a message cannot be sent, and what to do; nil if it can.
---@param message co.FromEditor
---@return string?
function M.problem(message)
  local packed, bytes = pcall(vim.mpack.encode, message)
  -- What cannot be packed is not sent either, and logged then.
  if not packed or #bytes <= LARGEST then
    return nil
  end
  return ('%s: %.1f MiB are more than the 16 MiB that the backend reads, %s'):format(
    message.type == 'run' and 'not run' or 'not sent',
    #bytes / 1024 / 1024,
    advice[message.type] or 'shorten it'
  )
end

return M
