--- A source of blink.cmp for the prompts of chats: `providers = { co = { name = 'co', module = 'co.blink' } }`.
local Source = {}

local lsp_items = require('co.user_command.lsp_items')

--- Returns a source; blink.cmp calls this.
---@return table
function Source.new()
  return setmetatable({}, { __index = Source })
end

--- Returns whether the buffer is the prompt of a chat.
---@return boolean
function Source:enabled()
  return vim.bo.filetype == 'co-prompt'
end

--- Returns the characters that start a completion.
---@return string[]
function Source:get_trigger_characters()
  return lsp_items.TRIGGERS
end

--- Gives the items at the cursor to `callback`.
---@param context { line: string, cursor: integer[] }
---@param callback fun(response: table)
function Source:get_completions(context, callback)
  local items = lsp_items.at(context.line, context.cursor[1] - 1, context.cursor[2])
  callback({ items = items, is_incomplete_forward = true, is_incomplete_backward = true })
end

--- Gives the item with its preview to `callback`.
---@param item table
---@param callback fun(item: table)
function Source:resolve(item, callback)
  callback(lsp_items.resolve(item))
end

return Source
