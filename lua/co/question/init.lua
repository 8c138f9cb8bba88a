--- The queue of questions: the float shows the first one. Each is answered by its id.
---
--- Only an explicit answer allows something. A hidden question still waits.
local M = {}

local api = vim.api
local advice = require('co.question.advice')
local backend = require('co.backend')
local config = require('co.config')
local events = require('co.ui.events')
local float = require('co.question.float')
local focus = require('co.ui.focus')
local guarded = require('co.ui.guarded')
local log = require('co.ui.log')
local notify = require('co.ui.notify')
local printable = require('co.ui.printable')
local sight = require('co.question.sight')
local textlock = require('co.ui.textlock')

-- The reason for the model.
local UNSHOWN = 'co could not show the question'
-- The most bytes of a command in a notice.
local LONGEST_NAME = 60

---@type co.Question[]
local questions = {}
-- The number of the newest question. Numbers are not used again: a late `/approve 3` must not hit another question.
local newest = 0

---@class (exact) co.question.Origin
---@field win integer
---@field mode? 'insert'|'terminal' the mode of the person there

-- The window that had the focus before the float.
---@type co.question.Origin?
local origin

-- The number of keys that the person had pressed when the question on the screen went without an answer of theirs.
---@type integer?
local lost_at
-- The same number when each question came.
---@type table<co.Question, integer>
local came_at = setmetatable({}, { __mode = 'k' })

-- The command that the person tries. The question about its result takes the focus, if it had it before and they still wait
-- for it.
---@type { chat?: integer, command: string }?
local trying

--- Puts hidden questions that no turn waits for behind the others.
local function sort()
  local first, last = {}, {}
  for _, question in ipairs(questions) do
    table.insert(question.hidden and not question.kind.holds_turn and last or first, question)
  end
  questions = vim.list_extend(first, last)
end

--- Puts the cursor back into the window, and the mode, that the person was in before the float had the focus.
local function restore_focus()
  local back = origin
  origin = nil
  if not back or not api.nvim_win_is_valid(back.win) then
    return
  end
  if api.nvim_win_get_tabpage(back.win) ~= api.nvim_get_current_tabpage() then
    return
  end
  guarded.go_to_window(back.win)
  if back.mode == 'insert' and api.nvim_get_mode().mode == 'n' then
    -- In front of keys that were typed meanwhile: they are for this window.
    api.nvim_feedkeys('gi', 'in', false)
  elseif back.mode == 'terminal' then
    vim.cmd.startinsert()
  end
end

--- Closes the float of a question that it cannot show: a key must not answer what nobody sees. A turn that waits for the
--- answer gets a no.
---@param question co.Question
---@param problem string
local function give_up(question, problem)
  log.add('float', problem)
  local focused = float.focused()
  float.close()
  if focused then
    restore_focus()
  end
  if textlock.locked() or not question.kind.holds_turn then
    question.hidden = true
    notify.error('the question could not be shown here: :Co /approve shows it')
    return
  end
  local about = printable.line(tostring(question.command), LONGEST_NAME)
  notify.error(('not allowed, because the question cannot be shown: %s'):format(about))
  float.forget_question()
  M.deny_unshown(question.id)
end

--- Shows the first question in the float, or closes the float.
---@param settled? boolean a question was just settled
local function update_float(settled)
  sort()
  local head = questions[1]
  if head and not head.hidden then
    local ok, shown = xpcall(float.show, debug.traceback, head, #questions)
    if not ok then
      give_up(head, tostring(shown))
    elseif not shown then
      float.close()
      head.hidden = true
      notify.error('the question could not be shown here: :Co /approve shows it')
    end
    return
  end
  if head and not settled then
    local focused = float.focused()
    float.close()
    if focused then
      restore_focus()
    end
    return
  end
  float.finish(restore_focus)
end

--- Returns the question with an id.
---@param id integer
---@return co.Question?
local function find(id)
  for _, question in ipairs(questions) do
    if question.id == id then
      return question
    end
  end
end

--- Removes settled questions from the queue.
---@param settled table<integer, string|co.Decision> the decision for each id
local function remove(settled)
  local head = questions[1]
  local gone = {}
  questions = vim.tbl_filter(function(question)
    local stays = settled[question.id] == nil
    if not stays then
      gone[#gone + 1] = question.id
    end
    return stays
  end, questions)
  if #gone == 0 then
    return
  end
  if questions[1] ~= head then
    float.forget_question()
  end
  update_float(true)
  focus.count_presses(questions[1] ~= nil)
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

--- Returns whether a question is about the command that the person tries, and they still wait for it. Then forgets that
--- command.
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

--- Returns the commands for whose answers turns wait.
---@return string[]
local function unanswered_commands()
  ---@type string[]
  local commands = {}
  for _, question in ipairs(questions) do
    if question.kind.holds_turn then
      commands[#commands + 1] = question.command
    end
  end
  return commands
end

--- Adds a question to the queue and shows the first one.
---@param question co.Question
function M.add(question)
  newest = newest + 1
  question.number = newest
  focus.count_presses(true)
  came_at[question] = focus.presses()
  -- A refused edit comes back to the place of its question.
  table.insert(questions, question.refused_edit and 1 or #questions + 1, question)
  require('co.ui.quit').refuse_while('unanswered', unanswered_commands)
  update_float()
  sight.restart()
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

--- Sets the reason why the commands that a chat asks about cannot be taken back.
---@param message co.NoUndo
function M.set_no_undo(message)
  for _, question in ipairs(questions) do
    if question.chat == message.chat and question.no_undo then
      question.no_undo = message.why
      update_float()
    end
  end
end

--- Notes that a question goes without an answer of the person, if it is on the screen.
---@param goes boolean
local function note_loss(goes)
  lost_at = goes and float.shown() and focus.presses() or lost_at
end

--- Removes a question that was answered elsewhere, or withdrawn.
---@param message co.Settled
function M.settle(message)
  note_loss(questions[1] ~= nil and questions[1].id == message.id)
  remove({ [message.id] = message.decision })
end

--- Returns whether a question came in the place of another one on the screen, and the key that the person presses now is
--- the first one since.
---@param question co.Question
---@return boolean
function M.has_replaced(question)
  local before = focus.presses() - 1
  return lost_at ~= nil and lost_at >= before and came_at[question] >= before
end

--- Answers a question, if it still waits.
---@param id integer
---@param decision co.Decision
---@param extra? co.AnswerDetails
---@return boolean answered
function M.answer(id, decision, extra)
  local question = find(id)
  if not question then
    return false
  elseif question.kind.takes and not question.kind.takes[decision] then
    notify.info(('question %d asks you to choose: :Co /approve goes to it'):format(question.number))
    return false
  end
  question.kind.reply(question, decision, extra or {})
  if decision == 'once' or decision == 'reviewed' then
    advice.note_yes(question)
  end
  if (decision == 'try' or decision == 'try_first') and float.focused() then
    trying = { chat = question.chat, command = question.command }
    focus.asked()
  end
  if decision == 'edited' and extra and extra.command then
    float.hold({ id = id, command = extra.command })
  end
  remove({ [id] = decision })
  return true
end

--- Denies a question that cannot be shown.
---@param id integer
function M.deny_unshown(id)
  backend.send_if_running({ type = 'answer', id = id, decision = 'deny', reason = UNSHOWN })
  remove({ [id] = 'deny' })
end

--- Gives several questions the same answer, if they still wait.
---@param ids integer[]
---@param decision 'once'|'deny'
function M.answer_all(ids, decision)
  ---@type table<integer, string>
  local settled = {}
  for _, id in ipairs(ids) do
    local question = find(id)
    if question then
      question.kind.reply(question, decision, {})
      if decision == 'once' then
        advice.note_yes(question)
      end
      settled[id] = decision
    end
  end
  remove(settled)
end

--- Removes the questions of a chat that ended. The backend denies them itself.
---@param chat integer
function M.withdraw(chat)
  note_loss(questions[1] ~= nil and questions[1].chat == chat)
  ---@type table<integer, string>
  local settled = {}
  for _, question in ipairs(questions) do
    if question.chat == chat then
      settled[question.id] = 'withdrawn'
    end
  end
  remove(settled)
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

--- Hides the first question. It still waits.
function M.hide()
  set_hidden(questions[1], true)
end

--- Hides a question while its review is open.
---@param id integer
function M.put_away(id)
  set_hidden(find(id), true)
end

--- Shows a question that was hidden, if it still waits.
---@param id integer
function M.show(id)
  set_hidden(find(id), nil)
end

--- Shows the whole text of a question. The float is hidden meanwhile; the question still waits.
---@param question co.Question
function M.show_whole(question)
  M.put_away(question.id)
  local name = ('co://question/%d'):format(question.number)
  require('co.question.whole_text').open(name, question.kind.whole(question), function()
    M.show(question.id)
  end)
end

-- The function that waits for normal mode.
---@type fun(from?: 'insert'|'terminal')?
local waits_for_normal_mode

--- Calls the function that waits for normal mode.
---@param from? 'insert'|'terminal' the mode before
function M.continue(from)
  local act = waits_for_normal_mode
  waits_for_normal_mode = nil
  if act then
    act(from)
  end
end

--- Leaves the present mode, then calls `act`: a `y` must not go into a command line.
---@param act fun(from?: 'insert'|'terminal') gets the mode before
function M.in_normal_mode(act)
  local mode = api.nvim_get_mode().mode
  if vim.fn.getcmdwintype() ~= '' then
    vim.cmd.quit()
    vim.schedule(act)
  elseif mode:match('^ni') then
    vim.cmd.stopinsert()
    act('insert')
  elseif mode == 'n' or mode:match('^nt') then
    act()
  else
    waits_for_normal_mode = act
    local from = mode:match('^[iR]') and '"insert"' or mode:match('^t') and '"terminal"' or ''
    local keys = ('<C-\\><C-N><Cmd>lua require("co.question").continue(%s)<CR>'):format(from)
    api.nvim_feedkeys(vim.keycode(keys), 'in', false)
  end
end

--- Puts the cursor into the float, from any mode. If there is no question, opens what was offered.
---@param from? 'insert'|'terminal' the mode to return to
---@param by? co.focus.By
function M.focus(from, by)
  by = by or 'person'
  if not questions[1] and not focus.has_offer() then
    notify.info('nothing waits for an answer')
    return
  end
  M.in_normal_mode(function(mode)
    if not questions[1] then
      if focus.has_offer() then
        focus.open_offered()
      end
      return
    end
    questions[1].hidden = nil
    update_float()
    if not float.focused() then
      origin = { win = api.nvim_get_current_win(), mode = mode or from }
      float.focus(by)
    end
  end)
end

--- Returns the questions that wait, in their order.
---@return co.Question[]
function M.pending()
  return vim.list_slice(questions)
end

--- Keeps the float away from the prompts and the last lines of chats. Call it after a chat has changed.
function M.make_room()
  textlock.when_unlocked(float.make_room, 'the room for the float', true)
end

--- Moves the float into the current tab page.
local function follow_tab()
  vim.schedule(function()
    textlock.when_unlocked(function()
      if questions[1] and not questions[1].hidden then
        update_float()
      end
    end, 'the position of the float', true)
  end)
end

config.on_change(M.watch_keys)

float.set_callbacks({
  pending = M.pending,
  next = update_float,
  answer_all = M.answer_all,
  hide = M.hide,
  show_whole = M.show_whole,
  failed = give_up,
  wiped = function()
    -- A Neovim that ends wipes its buffers too.
    if questions[1] and vim.v.exiting == vim.NIL then
      M.answer(questions[1].id, 'deny', { reason = 'the buffer of the question was deleted' })
    end
  end,
  closed = function(tab)
    local head = questions[1]
    if not head then
      return
    end
    head.hidden = true
    vim.schedule(function()
      if api.nvim_tabpage_is_valid(tab) then
        notify.info('the question still waits: :Co /approve shows it')
      else
        -- The person did not hide it: its tab page was closed.
        head.hidden = nil
        update_float()
      end
    end)
  end,
})

local group = api.nvim_create_augroup('co.approve', {})
api.nvim_create_autocmd({ 'TabEnter', 'VimResized' }, { group = group, callback = follow_tab })

backend.on_exit(function()
  local gone = questions
  questions = {}
  focus.count_presses(false)
  float.forget_question()
  update_float()
  return function()
    for _, question in ipairs(gone) do
      events.raise('CoApprovalResolved', { id = question.id, decision = 'withdrawn' })
    end
  end
end)

return M
