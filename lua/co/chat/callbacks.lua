--- The functions that a chat calls. Modules that require the chat set these functions.

---@class (exact) co.chat.Callbacks
---@field submit fun(chat: co.Chat, text: string): boolean carries out or sends the text of the prompt
---@field unsent fun(message: co.Unsent) gives back a prompt that was not sent
---@field complete fun(findstart: integer, base: string): integer|table[] completes a word of the prompt

---@type co.chat.Callbacks
---@diagnostic disable-next-line: missing-fields
local callbacks = {}

return callbacks
