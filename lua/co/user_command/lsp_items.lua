--- The completions of a prompt as items of the language server protocol, for the sources of other plugins.
local M = {}

local complete = require('co.user_command.complete')
local describe = require('co.user_command.describe')

--- The characters that start a completion.
M.TRIGGERS = { '/', '@', ':' }

-- Kinds of items of the protocol.
local TEXT, KEYWORD, FILE, REFERENCE = 1, 14, 17, 18

---@param word string
---@return integer
local function kind(word)
  if word:match('^@[^:]*:?$') then
    return REFERENCE
  elseif word:match('^/[%w_!-]+$') then
    -- blink.cmp would put brackets after a function.
    return KEYWORD
  end
  return describe.path(word) and FILE or TEXT
end

--- Returns the items at a place in a prompt. Columns count bytes.
---@param line string
---@param row integer from 0
---@param column integer from 0
---@return table[]
function M.at(line, row, column)
  local start, words = complete.at(line, column, true)
  local cwd = complete.chat_directory()
  ---@type table[]
  local items = {}
  for index, word in ipairs(words) do
    items[index] = {
      label = word,
      labelDetails = { description = describe.about(word, cwd) },
      kind = kind(word),
      filterText = word,
      -- If two words match equally well, their order stays.
      sortText = ('%05d'):format(index),
      insertTextFormat = 1,
      textEdit = {
        newText = word,
        range = {
          start = { line = row, character = start },
          ['end'] = { line = row, character = column },
        },
      },
      data = { cwd = cwd },
    }
  end
  return items
end

--- Returns an item with its preview.
---@param item table
---@return table
function M.resolve(item)
  item = vim.deepcopy(item)
  local preview = describe.preview(item.label, item.data.cwd)
  item.documentation = preview and { kind = 'markdown', value = preview } or nil
  return item
end

return M
