--- The review of a change that the person asked for with `:{range}Co /edit`.
local M = {}

local api = vim.api
local disk = require('co.ui.file_text')
local focus = require('co.ui.focus')
local review = require('co.question.review')
local review_items = require('co.question.review_items')

--- Opens the review if the person still waits for it at the file. Otherwise the question waits in the float.
---@param question co.CommandQuestion
function M.open(question)
  local here = api.nvim_get_current_buf()
  if
    focus.awaited()
    and review_items.of(question)[1]
    and api.nvim_get_mode().mode == 'n'
    and vim.fn.reg_recording() == ''
    and disk.buffer(question.review --[[@as string]]) == here
  then
    review.open_question(question, 'co')
  end
end

return M
