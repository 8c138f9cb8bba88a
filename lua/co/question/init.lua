--- The questions to the person: the float shows the first one. Each is answered by its id.
---
--- Only an explicit answer allows something. A hidden question still waits.
local M = {}

local api = vim.api
local advice = require('co.question.advice')
local answer = require('co.question.answer')
local backend = require('co.backend')
local config = require('co.config')
local events = require('co.ui.events')
local float = require('co.question.float').new()
local focus = require('co.ui.focus')
local log = require('co.ui.log')
local normal_mode = require('co.ui.normal_mode')
local notify = require('co.ui.notify')
local printable = require('co.ui.printable')
local queue = require('co.question.queue').new()
local sight = require('co.question.sight')
local textlock = require('co.ui.textlock')

-- The reason for the model.
local UNSHOWN = 'co could not show the question'
-- The most bytes of a command in a notice.
local LONGEST_NAME = 60

-- The command that the person tries. The question about its result takes the focus if the earlier question had the
-- focus and the person still waits.
---@type { chat?: integer, command: string }?
local trying

--- Closes the float if it cannot show a question: a key must not answer a question that nobody sees. If a turn waits
--- for the answer, denies the question.
---@param question co.Question
---@param problem string
local function give_up(question, problem)
  log.add('float', problem)
  float:leave()
  if textlock.locked() or not question.kind.holds_turn then
    question.hidden = true
    notify.error('the question could not be shown here: :Co /approve shows it')
    return
  end
  local about = printable.line(tostring(question.command), LONGEST_NAME)
  notify.error(('not allowed, because the question cannot be shown: %s'):format(about))
  float:forget_question()
  M.deny_unshown(question.id)
end

--- Shows the first question in the float, or closes the float.
---@param settled? boolean a question was just settled
local function update_float(settled)
  queue:sort()
  local head = queue:first()
  if head and not head.hidden then
    local ok, shown = xpcall(float.show, debug.traceback, float, queue:all())
    if not ok then
      give_up(head, tostring(shown))
    elseif not shown then
      head.hidden = true
      notify.error('the question could not be shown here: :Co /approve shows it')
    end
  elseif head and not settled then
    float:leave()
  else
    float:finish()
  end
end

--- Removes settled questions from the queue.
---@param settled table<integer, string|co.Decision> the decision for each id
local function remove(settled)
  local head = queue:first()
  local gone = queue:remove(settled)
  if #gone == 0 then
    return
  end
  if queue:first() ~= head then
    float:forget_question()
  end
  update_float(true)
  vim.cmd('redrawstatus!')
  for _, id in ipairs(gone) do
    events.raise('CoApprovalResolved', { id = id, decision = settled[id] })
  end
end

--- Returns whether the float may take the focus now: the setting allows it, and the person types nothing.
---@return boolean
local function may_take_focus()
  local filetype = vim.bo[api.nvim_get_current_buf()].filetype
  return config.get().float_focus
    and vim.list_contains({ 'co-chat', 'co-prompt', 'co-shell' }, filetype)
    and api.nvim_get_mode().mode == 'n'
    and vim.fn.reg_recording() == ''
    and focus.is_idle()
end

--- Returns true if a question is about the command that the person tries, and the person still waits. If the question
--- is about this command, forgets the command.
---@param question co.Question
---@return boolean
local function is_result(question)
  local tried = trying
  if not tried or question.chat ~= tried.chat or question.command ~= tried.command then
    return false
  end
  trying = nil
  return focus.awaited()
end

--- Notes the time of each key, if the setting `float_focus` needs it.
function M.watch_keys()
  if config.get().float_focus then
    focus.watch_idle()
  end
end

--- Returns the commands of the questions that turns wait for.
---@return string[]
local function unanswered_commands()
  ---@type string[]
  local commands = {}
  for _, question in ipairs(queue:all()) do
    if question.kind.holds_turn then
      commands[#commands + 1] = question.command
    end
  end
  return commands
end

--- Adds a question to the queue and shows the first one.
---@param question co.Question
function M.add(question)
  queue:add(question)
  require('co.ui.quit').refuse_while('unanswered', unanswered_commands)
  update_float()
  sight.restart()
  local questions = queue:all()
  if questions[1].hidden then
    notify.info(('%d waiting for your answer: :Co /approve'):format(#questions))
  end
  if #questions == 1 and (is_result(question) or question.kind.holds_turn and may_take_focus()) then
    M.focus(nil, 'co')
  end
  vim.cmd('redrawstatus!')
  events.raise('CoApprovalRequested', {
    id = question.id,
    chat = question.chat,
    command = question.command,
  })
end

--- Sets the reason why co cannot undo the commands that a chat asks about.
---@param message co.NoUndo
function M.set_no_undo(message)
  for _, question in ipairs(queue:all()) do
    if question.chat == message.chat and question.no_undo then
      question.no_undo = message.why
      update_float()
    end
  end
end

--- Removes questions that the person did not answer.
---@param settled table<integer, string> the decision for each id
local function withdraw(settled)
  local shown = float:shown()
  if shown and settled[shown.id] then
    queue:note_loss()
  end
  remove(settled)
end

--- Removes a question that was answered elsewhere, or withdrawn.
---@param message co.Settled
function M.settle(message)
  withdraw({ [message.id] = message.decision })
end

--- Removes the questions of a chat that ended. The backend denies them itself.
---@param chat integer
function M.withdraw(chat)
  ---@type table<integer, string>
  local settled = {}
  for _, question in ipairs(queue:all()) do
    if question.chat == chat then
      settled[question.id] = 'withdrawn'
    end
  end
  withdraw(settled)
end

--- Returns the question on the screen. The second result is true if this question has replaced another one, and the
--- person now presses the first key since then.
---@return co.Question?
---@return boolean has_replaced
function M.on_screen()
  local question = float:shown()
  return question, question ~= nil and queue:has_replaced(question)
end

--- Sends the person's answer to a question.
---@param question co.Question
---@param decision co.Decision
---@param details? co.AnswerDetails
local function send(question, decision, details)
  local amend = question.kind.amend
  if amend then
    decision, details = amend(question, decision, details)
  end
  answer.send(question.id, decision, details)
  if decision == 'once' or decision == 'reviewed' then
    advice.note_yes(question)
  end
end

--- Answers a question, if it still waits.
---@param id integer
---@param decision co.Decision
---@param details? co.AnswerDetails
---@return boolean answered
function M.answer(id, decision, details)
  local question = queue:find(id)
  if not question then
    return false
  elseif question.kind.takes and not question.kind.takes[decision] then
    notify.info(('question %d asks you to choose: :Co /approve goes to it'):format(question.number))
    return false
  end
  send(question, decision, details)
  if (decision == 'try' or decision == 'try_first') and float:focused() then
    trying = { chat = question.chat, command = question.command }
    focus.asked()
  end
  if decision == 'edited' and details and details.command then
    float:hold({ id = id, command = details.command })
  end
  remove({ [id] = decision })
  return true
end

--- Denies a question that cannot be shown.
---@param id integer
function M.deny_unshown(id)
  answer.send(id, 'deny', { reason = UNSHOWN })
  remove({ [id] = 'deny' })
end

--- Hides or shows a question that waits.
---@param question? co.Question
---@param hidden? true
local function set_hidden(question, hidden)
  if question then
    question.hidden = hidden
    update_float()
  end
end

--- Hides a question while its review is open.
---@param id integer
function M.put_away(id)
  set_hidden(queue:find(id), true)
end

--- Shows a question that was hidden, if it still waits.
---@param id integer
function M.show(id)
  set_hidden(queue:find(id), nil)
end

--- Puts the cursor into the float, from any mode. If there is no question, opens the list or the review that co
--- offered.
---@param from? co.normal_mode.From the mode to return to
---@param by? co.focus.By
function M.focus(from, by)
  if not queue:first() and not focus.has_offer() then
    notify.info('nothing waits for an answer')
    return
  end
  normal_mode.enter(function(mode)
    local question = queue:first()
    if question then
      set_hidden(question, nil)
      float:focus(by or 'person', mode or from)
    elseif focus.has_offer() then
      focus.open_offered()
    end
  end)
end

--- Returns the questions that wait, in their order.
---@return co.Question[]
function M.pending()
  return queue:all()
end

--- Keeps the float away from the prompts and the last lines of chats. Call it after a chat has changed.
function M.make_room()
  textlock.when_unlocked(function()
    float:make_room()
  end, 'the room for the float', true)
end

--- Moves the float into the current tab page.
local function follow_tab()
  vim.schedule(function()
    textlock.when_unlocked(function()
      local head = queue:first()
      if head and not head.hidden then
        update_float()
      end
    end, 'the position of the float', true)
  end)
end

config.on_change(M.watch_keys)

-- The handlers of the float's events.
---@type table<string, fun(event: any)>
local on_float = {
  next = function()
    update_float()
  end,
  hide = function()
    set_hidden(queue:first(), true)
  end,
  failed = function(event)
    give_up(event.question, event.problem)
  end,
  answer_all = function(event)
    ---@type table<integer, co.Decision>
    local settled = {}
    for _, id in ipairs(event.ids) do
      local question = queue:find(id)
      if question then
        send(question, event.decision)
        settled[id] = event.decision
      end
    end
    remove(settled)
  end,
  show_whole = function(event)
    local question = event.question
    set_hidden(question, true)
    local name = ('co://question/%d'):format(question.number)
    require('co.question.whole_text').open(name, question.kind.whole(question), function()
      M.show(question.id)
    end)
  end,
  wiped = function()
    local head = queue:first()
    -- A Neovim that ends wipes its buffers too.
    if head and vim.v.exiting == vim.NIL then
      M.answer(head.id, 'deny', { reason = 'the buffer of the question was deleted' })
    end
  end,
  closed = function(event)
    local head = queue:first()
    if not head then
      return
    end
    head.hidden = true
    vim.schedule(function()
      -- If the buffer is gone too, `wiped` denies the question.
      if not queue:find(head.id) or not float:has_buffer() then
        return
      elseif api.nvim_tabpage_is_valid(event.tab) then
        notify.info('the question still waits: :Co /approve shows it')
      else
        -- The person did not hide it: its tab page was closed.
        set_hidden(head, nil)
      end
    end)
  end,
}

float:subscribe(function(event)
  on_float[event.type](event)
end)

local group = api.nvim_create_augroup('co.approve', {})
api.nvim_create_autocmd({ 'TabEnter', 'VimResized' }, { group = group, callback = follow_tab })

backend.on_exit(function()
  local gone = queue:clear()
  float:forget_question()
  update_float()
  return function()
    for _, question in ipairs(gone) do
      events.raise('CoApprovalResolved', { id = question.id, decision = 'withdrawn' })
    end
  end
end)

return M
