--- Sends the person's answers to the backend.
local M = {}

local backend = require('co.backend')

--- Sends an answer, if a backend runs.
---@param id integer of the question or the review
---@param decision co.Decision
---@param details? co.AnswerDetails
function M.send(id, decision, details)
  local message = { type = 'answer', id = id, decision = decision }
  backend.send_if_running(vim.tbl_extend('error', message, details or {}) --[[@as co.Answer]])
end

return M
