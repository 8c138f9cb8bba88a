--- The review of a change that the person asked for with `:{range}Co /edit`.
local M = {}

local api = vim.api
local disk = require('co.ui.file_text')
local review = require('co.question.review')

--- The keys that come first may have been typed for the file.
local IGNORED_NS = 250 * 1000000

--- Opens the review, if the person still looks at the file and types nothing. Else the question waits in the float.
---@param question co.CommandQuestion
function M.open(question)
  local here, item = api.nvim_get_current_buf(), question --[[@as co.ReviewItem]]
  if
    review.possible(item)
    and api.nvim_get_mode().mode == 'n'
    and vim.fn.reg_recording() == ''
    and disk.buffer(question.review --[[@as string]]) == here
  then
    review.open(item, nil, vim.uv.hrtime() + IGNORED_NS)
  end
end

return M
