--- The requests of Lua that the backend has not answered yet. If the backend ends, each one is answered with nil.
local M = {}

local backend = require('co.backend')

-- The functions that wait, by the numbers of their requests, or by what else they wait for.
---@type table<integer|string, fun(message?: any)>
local waiting = {}
local newest = 0

--- Calls the function that waits, if there is one.
---@param key integer|string
---@param message? any
local function answer(key, message)
  local done = waiting[key]
  waiting[key] = nil
  if done then
    done(message)
  end
end

--- Sends a request with a new number. Calls `done` once: with the answer, or with nil if no backend gets the request.
---@param message table without its number
---@param send fun(message: any): boolean
---@param done fun(answer?: any)
function M.send(message, send, done)
  newest = newest + 1
  local number = newest
  message.request = number
  waiting[number] = done
  if not send(message) then
    answer(number)
  end
end

--- Takes an answer of the backend.
---@param message { request: integer }
function M.receive(message)
  answer(message.request, message)
end

--- Calls `done` once: with whether the person approved a question, or with false if the backend ends before. Several may wait
--- for one question.
---@param question integer
---@param done fun(approved: boolean)
function M.when_settled(question, done)
  local key = 'question ' .. question
  local before = waiting[key]
  waiting[key] = function(message)
    if before then
      before(message)
    end
    done(message ~= nil and message.decision == 'approved')
  end
end

--- Notes that a question was answered or withdrawn.
---@param message co.Settled
function M.settle(message)
  answer('question ' .. message.id, message)
end

backend.on_exit(function()
  local keys = vim.tbl_keys(waiting)
  -- After the chats have taken their prompts back.
  return function()
    for _, key in ipairs(keys) do
      answer(key)
    end
  end
end)

return M
