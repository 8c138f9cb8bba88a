--- Asks the backend if the person trusts a prompt file of the workspace. It knows that, or asks the person.
local M = {}

local backend = require('co.backend')

---@class (exact) co.PromptFileRequest
---@field answered fun(answer: 'trusted'|'refused'|'asked')
---@field settled fun(trusted: boolean) called once after `asked`
---@field question? integer the question that the person has not answered yet

-- By their numbers.
---@type table<integer, co.PromptFileRequest>
local requests = {}
local newest = 0

--- Asks whether the person trusts the file of a prompt.
---@param prompt co.Prompt
---@param file co.PromptFile
---@param send fun(message: co.CheckPromptFile): boolean
---@param answered fun(answer: 'trusted'|'refused'|'asked')
---@param settled fun(trusted: boolean) called after `asked`, when the person has answered
---@return boolean sent
function M.ask(prompt, file, send, answered, settled)
  newest = newest + 1
  local sent = send({
    type = 'check_prompt_file',
    chat = prompt.chat,
    cwd = prompt.cwd,
    request = newest,
    name = file.name,
    path = file.path,
    text = file.text,
  })
  requests[newest] = sent and { answered = answered, settled = settled } or nil
  return sent
end

--- Takes the answer of the backend.
---@param message co.PromptFileChecked
function M.receive(message)
  local request = requests[message.request]
  if not request then
    return
  end
  request.question = message.question
  requests[message.request] = message.question and request or nil
  request.answered(message.question and 'asked' or message.trusted and 'trusted' or 'refused')
end

--- Notes that a question was answered or withdrawn.
---@param message co.Settled
function M.settle(message)
  for number, request in vim.spairs(requests) do
    if request.question == message.id then
      requests[number] = nil
      request.settled(message.decision == 'approved')
    end
  end
end

backend.on_exit(function()
  for number, request in vim.spairs(requests) do
    requests[number] = nil
    if request.question then
      request.settled(false)
    end
  end
end)

return M
