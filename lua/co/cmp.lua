--- A source of nvim-cmp for the prompts of chats: `require('cmp').register_source('co', require('co.cmp'))`.
local Source = {}

local lsp_items = require('co.user_command.lsp_items')

--- Returns whether the buffer is the prompt of a chat.
---@return boolean
function Source:is_available()
  return vim.bo.filetype == 'co-prompt'
end

--- Returns the encoding in which the items count columns.
---@return string
function Source:get_position_encoding_kind()
  return 'utf-8'
end

--- Returns the pattern of the text that an item replaces: an escaped blank is a part of a name.
---@return string
function Source:get_keyword_pattern()
  return [[\%(\\ \|\S\)\+]]
end

--- Returns the characters that start a completion.
---@return string[]
function Source:get_trigger_characters()
  return lsp_items.TRIGGERS
end

--- Gives the items at the cursor to `callback`.
---@param params { context: { cursor_before_line: string, cursor: { row: integer } } }
---@param callback fun(response: table)
function Source:complete(params, callback)
  local before = params.context.cursor_before_line
  local items = lsp_items.at(before, params.context.cursor.row - 1, #before)
  callback({ items = items, isIncomplete = true })
end

--- Gives the item with its preview to `callback`.
---@param item table
---@param callback fun(item: table)
function Source:resolve(item, callback)
  callback(lsp_items.resolve(item))
end

return Source
