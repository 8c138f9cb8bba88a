--- The functions that a chat calls and that `co.user_command` sets.
---
--- A chat cannot require `co.user_command`, which requires the chat.

---@class (exact) co.chat.Callbacks
---@field submit fun(chat: co.Chat, text: string): boolean carries out or sends the text of the prompt
---@field complete fun(findstart: integer, base: string): integer|table[] completes a word of the prompt

---@type co.chat.Callbacks
---@diagnostic disable-next-line: missing-fields
local callbacks = {}

return callbacks
