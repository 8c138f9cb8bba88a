--- The questions that wait for the person: first in, first out, answered by id.
---
--- Nothing is allowed but by an explicit answer. What is hidden is still pending.
local M = {}

local api = vim.api
local backend = require('co.backend')
local events = require('co.ui.events')
local float = require('co.question.float')
local lock = require('co.ui.textlock')
local notify = require('co.ui.notify')

---@type co.Question[]
local asks = {}

---@class (exact) co.approve.Origin
---@field win integer
---@field mode? 'insert'|'terminal' what the person was in

---@type co.approve.Origin?
local origin

local QUIET_NS = 500 * 1000000
local last_key = 0
local watching = false

--- Puts hidden questions that hold no turn behind the others, so that they hold up none.
local function sort()
  local first, last = {}, {}
  for _, question in ipairs(asks) do
    table.insert(question.hidden and not question.kind.holds_turn and last or first, question)
  end
  asks = vim.list_extend(first, last)
end

--- Brings the float in line with the queue.
---@param settled? boolean a question was just settled
local function update(settled)
  sort()
  local head = asks[1]
  if head and not head.hidden then
    if float.show(head, #asks) then
      return
    end
    head.hidden = true
    notify.error('the question could not be shown here: :Co /approve shows it')
    return
  end
  if head and not settled then
    local focused = float.focused()
    float.close()
    if focused then
      M.give_back()
    end
    return
  end
  float.finish(M.give_back)
end

--- Puts the person back where they were before the float had the focus.
function M.give_back()
  local back = origin
  origin = nil
  if not back or not api.nvim_win_is_valid(back.win) then
    return
  end
  if api.nvim_win_get_tabpage(back.win) ~= api.nvim_get_current_tabpage() then
    return
  end
  api.nvim_set_current_win(back.win)
  if back.mode == 'insert' and api.nvim_get_mode().mode == 'n' then
    -- In front of what was typed meanwhile, which was meant for this window.
    api.nvim_feedkeys('gi', 'in', false)
  elseif back.mode == 'terminal' then
    vim.cmd.startinsert()
  end
end

---@param id integer
---@return co.Question?
local function find(id)
  for _, ask in ipairs(asks) do
    if ask.id == id then
      return ask
    end
  end
end

--- Takes settled questions out of the queue.
---@param settled table<integer, string> the decision for each id
local function remove(settled)
  local head = asks[1]
  local gone = {}
  asks = vim.tbl_filter(function(question)
    local stays = settled[question.id] == nil
    if not stays then
      gone[#gone + 1] = question.id
    end
    return stays
  end, asks)
  if #gone == 0 then
    return
  end
  if asks[1] ~= head then
    float.reset()
  end
  update(true)
  vim.cmd.redrawstatus()
  for _, id in ipairs(gone) do
    events.raise('CoApprovalResolved', { id = id, decision = settled[id] })
  end
end

---@return boolean
local function may_take_focus()
  local filetype = vim.bo[api.nvim_get_current_buf()].filetype
  return require('co.config').get().float_focus
    and (filetype == 'co-chat' or filetype == 'co-shell')
    and api.nvim_get_mode().mode == 'n'
    and vim.fn.reg_recording() == ''
    and vim.uv.hrtime() - last_key > QUIET_NS
end

--- Notes when keys are typed, if the float may take the focus at all.
function M.watch()
  if watching or not require('co.config').get().float_focus then
    return
  end
  watching = true
  last_key = vim.uv.hrtime()
  vim.on_key(function()
    last_key = vim.uv.hrtime()
  end)
end

--- Puts a question before the person.
---@param question co.Question
function M.ask(question)
  asks[#asks + 1] = question
  update()
  if asks[1].hidden then
    notify.info(('%d waiting for your answer: :Co /approve'):format(#asks))
  end
  if #asks == 1 and question.kind.holds_turn and may_take_focus() then
    M.focus()
  end
  vim.cmd.redrawstatus()
  events.raise('CoApprovalRequested', {
    id = question.id,
    session = question.session,
    command = question.command,
  })
end

--- The question was answered elsewhere, or withdrawn.
---@param message co.Settled
function M.settled(message)
  remove({ [message.id] = message.decision })
end

--- Answers a question; one that is gone is left alone.
---@param id integer
---@param decision co.Decision
---@param extra? co.answer.Extra
---@return boolean
function M.answer(id, decision, extra)
  local question = find(id)
  if not question then
    return false
  end
  question.kind.reply(question, decision, extra or {})
  remove({ [id] = decision })
  return true
end

--- Gives several questions the same answer; those that are gone are left alone.
---@param ids integer[]
---@param decision 'once'|'deny'
function M.answer_all(ids, decision)
  ---@type table<integer, string>
  local settled = {}
  for _, id in ipairs(ids) do
    local question = find(id)
    if question then
      question.kind.reply(question, decision, {})
      settled[id] = decision
    end
  end
  remove(settled)
end

--- Takes the questions of a chat that is gone away; the backend denies them itself.
---@param session integer
function M.drop_session(session)
  ---@type table<integer, string>
  local settled = {}
  for _, question in ipairs(asks) do
    if question.session == session then
      settled[question.id] = 'withdrawn'
    end
  end
  remove(settled)
end

--- Puts the first question away; it still waits.
function M.hide()
  if asks[1] then
    asks[1].hidden = true
    update()
  end
end

--- Leaves whatever mode there is, then comes back here: `y` must not land in a command line.
---@param mode string
local function leave_mode(mode)
  local from = mode:match('^[iR]') and '"insert"' or mode:match('^t') and '"terminal"' or ''
  local keys = ('<C-\\><C-N><Cmd>lua require("co").approve(%s)<CR>'):format(from)
  api.nvim_feedkeys(vim.keycode(keys), 'in', false)
end

--- Puts the cursor into the float, from any mode.
---@param from? 'insert'|'terminal' the mode that was left for it
function M.focus(from)
  if not asks[1] then
    notify.info('nothing waits for an answer')
    return
  end
  local mode = api.nvim_get_mode().mode
  if vim.fn.getcmdwintype() ~= '' then
    vim.cmd.quit()
    vim.schedule(M.focus)
    return
  end
  if mode:match('^ni') then
    from = 'insert'
    vim.cmd.stopinsert()
  elseif mode ~= 'n' and not mode:match('^nt') then
    leave_mode(mode)
    return
  end
  asks[1].hidden = nil
  update()
  if not float.focused() then
    origin = { win = api.nvim_get_current_win(), mode = from }
    float.focus()
  end
end

--- The questions, in order.
---@return co.Question[]
function M.pending()
  return vim.list_slice(asks)
end

--- Brings the float into the current tab page.
local function follow_tab()
  vim.schedule(function()
    lock.free(function()
      if asks[1] and not asks[1].hidden then
        update()
      end
    end, 'the place of the float', true)
  end)
end

require('co.config').on_change(M.watch)

float.on({
  pending = M.pending,
  answer_all = M.answer_all,
  hide = M.hide,
  wiped = function()
    -- A Neovim that ends wipes its buffers too.
    if asks[1] and vim.v.exiting == vim.NIL then
      M.answer(asks[1].id, 'deny', { reason = 'the buffer of the question was deleted' })
    end
  end,
  closed = function(tab)
    local head = asks[1]
    if not head then
      return
    end
    head.hidden = true
    vim.schedule(function()
      if api.nvim_tabpage_is_valid(tab) then
        notify.info('the question still waits: :Co /approve shows it')
      else
        -- Nobody put it away: it went with its tab page.
        head.hidden = nil
        update()
      end
    end)
  end,
})

local group = api.nvim_create_augroup('co.approve', {})
api.nvim_create_autocmd({ 'TabEnter', 'VimResized' }, { group = group, callback = follow_tab })
api.nvim_create_autocmd('VimLeavePre', {
  group = group,
  callback = function()
    for _, ask in ipairs(asks) do
      if ask.kind.holds_turn then
        ask.kind.reply(ask, 'deny', { reason = 'Neovim ended' })
      end
    end
  end,
})

backend.on_end(function()
  local gone = asks
  asks = {}
  float.reset()
  update()
  return function()
    for _, ask in ipairs(gone) do
      events.raise('CoApprovalResolved', { id = ask.id, decision = 'withdrawn' })
    end
  end
end)

return M
