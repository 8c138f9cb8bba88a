--- Answers the question on the screen while the person stays in another window.
local M = {}

local TOO_QUICK = require('co.question.float').TOO_QUICK
local focus = require('co.ui.focus')
local normal_mode = require('co.ui.normal_mode')
local notify = require('co.ui.notify')
local questions = require('co.question')
local sight = require('co.question.sight')
local windows = require('co.ui.windows')

---@alias co.elsewhere.Answer 'yes'|'no'|'review'|'try'

-- The usual key of each answer in the float.
---@type table<co.elsewhere.Answer, string>
local KEYS = { yes = 'y', no = 'n', review = 'd', try = 't' }

local UNSEEN = 'the question cannot be seen: :Co /approve goes to it'

--- Returns the question on the screen if a key may answer it. Otherwise returns nil and shows a notice with the reason.
---@return co.Question?
---@return boolean whole the whole question is on the screen
local function seen_question()
  local question, has_replaced = questions.on_screen()
  local visibility = sight.visibility()
  if not question then
    local waits = questions.pending()[1] ~= nil
    notify.info(waits and UNSEEN or 'nothing waits for an answer')
  elseif not focus.pressed() then
    notify.warn('only a key that you press yourself answers the question')
  elseif visibility == 'covered' then
    notify.info(UNSEEN)
  elseif not sight.seen() then
    sight.restart()
    notify.info(TOO_QUICK)
  elseif has_replaced then
    notify.info('another question has come: press again')
  else
    return question, visibility == 'whole'
  end
  return nil, false
end

--- Answers the question on the screen. If only a key in the float can answer the question, goes to the float.
---@param answer co.elsewhere.Answer
function M.press(answer)
  local question, whole = seen_question()
  if not question then
    return
  end
  local key = KEYS[answer]
  local may_try = (question --[[@as co.CommandQuestion]]).may_try
  local act = question.kind.keys.question[key]
  if not whole or question.kind.alone(question) then
    questions.focus()
  elseif answer == 'try' and not may_try then
    notify.info('this cannot be tried: answer yes or no')
  elseif answer ~= 'review' then
    act(question)
    windows.redraw()
  elseif question.kind.d(question) ~= 'review' then
    questions.focus()
  else
    normal_mode.enter(function()
      if questions.on_screen() == question then
        act(question)
      end
    end)
  end
end

return M
