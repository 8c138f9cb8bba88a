--- Draws the hunks of a change into the buffer of a review. The text of the buffer stays that of the file.
local M = {}

local api = vim.api
local review_state = require('co.question.review_state')

local namespace = api.nvim_create_namespace('co.review')

--- Returns the words for the answer to a hunk, and their highlight group.
---@param answer co.review.HunkState
---@param texts co.review.Words
---@return string
---@return string
local function outcome(answer, texts)
  local words, group = texts.open, 'CoApprovalLabel'
  if answer.accept == false then
    words, group = texts.refused, 'CoDiffRemoved'
  elseif answer.accept then
    words, group = answer.lines and texts.edited or texts.accepted, 'CoDiffAdded'
  end
  return answer.comment and ('%s · "%s"'):format(words, answer.comment) or words, group
end

--- Returns a line for the screen: tabs are spaces.
---@param line string
---@return string
local function expand(line)
  return (line:gsub('\t', (' '):rep(vim.bo.tabstop)))
end

--- Returns whether the lines of a hunk stand above the first line of the text.
---@param state co.review.State
---@param number integer
---@return boolean
function M.above_text(state, number)
  return state.hunks[number]['end'] == 0 and #state.text > 0
end

--- Draws a hunk.
---@param buf integer
---@param state co.review.State
---@param number integer
local function draw_hunk(buf, state, number)
  local hunk, answer = state.hunks[number], review_state.answer(state, number)
  local refused = answer.accept == false
  for row = hunk.start, hunk['end'] - 1 do
    api.nvim_buf_set_extmark(buf, namespace, row, 0, {
      line_hl_group = not refused and 'CoDiffRemoved' or nil,
      sign_text = '-',
      sign_hl_group = 'CoDiffRemoved',
    })
  end
  local words, group = outcome(answer, state.words)
  local call = state.calls and state.calls[number] or ''
  local by = call ~= '' and ' · ' .. call or ''
  local heading = (' change %d of %d · %s%s '):format(number, #state.hunks, words, by)
  local virtual = { { { heading, group } } }
  for _, line in ipairs(review_state.lines(state, number)) do
    local text_group = refused and 'CoApprovalLabel' or 'CoDiffAdded'
    virtual[#virtual + 1] = { { '+ ' .. expand(line), text_group } }
  end
  -- New lines stand below the ones that they replace.
  local above = M.above_text(state, number)
  api.nvim_buf_set_extmark(buf, namespace, math.max(hunk['end'] - 1, 0), 0, {
    virt_lines = virtual,
    virt_lines_above = above,
  })
end

--- Draws all hunks.
---@param buf integer
---@param state co.review.State
function M.draw(buf, state)
  M.clear(buf)
  for number in ipairs(state.hunks) do
    draw_hunk(buf, state, number)
  end
end

--- Removes what was drawn.
---@param buf integer
function M.clear(buf)
  api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
end

--- Shows virtual lines above the first line, which Neovim leaves out of sight.
---@param win integer
---@param state co.review.State
function M.show_top(win, state)
  if M.above_text(state, 1) then
    api.nvim_win_call(win, function()
      if vim.fn.winsaveview().topline == 1 then
        vim.fn.winrestview({ topline = 1, topfill = #review_state.lines(state, 1) + 1 })
      end
    end)
  end
end

return M
