--- The review of a change that the person asked for with `:{range}Co /edit`.
local M = {}

local api = vim.api
local disk = require('co.ui.file_text')
local review = require('co.question.review')
local review_items = require('co.question.review_items')

--- The keys that come first may have been typed for the file.
local IGNORED_NS = 250 * 1000000

--- Opens the review, if the person still looks at the file and types nothing. Else the question waits in the float.
---@param question co.CommandQuestion
function M.open(question)
  local here = api.nvim_get_current_buf()
  if
    review_items.of(question)[1]
    and api.nvim_get_mode().mode == 'n'
    and vim.fn.reg_recording() == ''
    and disk.buffer(question.review --[[@as string]]) == here
  then
    review.open_question(question, vim.uv.hrtime() + IGNORED_NS)
  end
end

return M
