--- Refuses messages that Neovim cannot pack, and those that are too long for the backend.
---
--- It does not pack them: `vim.mpack.encode` ends Neovim for numbers that are not finite, or have more than 53 bits.
local M = {}

local printable = require('co.ui.printable')

-- The backend reads 16 MiB. The sizes of numbers and of lists are those of their longest forms.
local LARGEST = 16 * 1024 * 1024 - 64 * 1024

-- The deepest nesting of a message. The nesting of a table that contains itself has no end.
local NESTED = 100

---@type table<string, string>
local advice = {
  prompt = 'save the long part to a file and name it with @file:',
  run = 'save the input to a file and redirect it, as in :Co! wc < file',
  run_input = 'send it in smaller parts',
}

---@type table<string, integer>
local SIZES = { number = 9, boolean = 1, table = 5 }

--- Returns the bytes of a packed value, or nil and a description of the value that cannot be packed.
---@param value any
---@param depth integer
---@return integer? bytes
---@return string? problem
local function packed_size(value, depth)
  local kind = type(value)
  if kind == 'string' then
    return #value + (#value < 20 and 1 or 5)
  elseif value == vim.NIL then
    return 1
  elseif kind == 'number' and value - value ~= 0 then
    return nil, ('the number %s'):format(value)
  elseif not SIZES[kind] then
    return nil, 'a ' .. kind
  elseif kind ~= 'table' then
    return SIZES[kind]
  elseif depth == 0 then
    return nil, ('a table with more than %d levels'):format(NESTED)
  end
  local bytes, is_list = SIZES[kind], vim.islist(value)
  for key, item in pairs(value) do
    if not is_list and type(key) ~= 'string' then
      return nil, 'a table that is neither a list nor has only names'
    end
    local of_item, problem = packed_size(item, depth - 1)
    if not of_item then
      return nil, problem
    end
    bytes = bytes + of_item + (is_list and 0 or #key + 5)
  end
  return bytes
end

--- Returns the reason why a message cannot be sent, with advice; nil if it can be sent.
---@param message co.FromEditor
---@return string?
function M.problem(message)
  local bytes, problem = packed_size(message, NESTED)
  local failed = message.type == 'run' and 'not run' or 'not sent'
  if not bytes then
    return ('%s: the message "%s" has %s, which Neovim cannot send'):format(
      failed,
      message.type,
      problem
    )
  elseif bytes <= LARGEST then
    return nil
  end
  return ('%s: the message has %s, the most is 16 MiB; %s'):format(
    failed,
    printable.size(bytes),
    advice[message.type] or 'shorten it'
  )
end

return M
