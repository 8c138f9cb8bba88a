--- The approval float: the question that it shows, and its pages.
---
--- It shows one question at a time. The kind of the question gives the text and the keys. `co.question` has the queue.
local M = {}

local api = vim.api
local answer_keys = require('co.question.answer_keys')
local caption = require('co.question.float_caption')
local float_actions = require('co.question.float_actions')
local float_keys = require('co.question.float_keys')
local float_window = require('co.question.float_window')
local focus = require('co.ui.focus')
local guarded = require('co.ui.guarded')
local highlight = require('co.ui.highlight')
local log = require('co.ui.log')
local notify = require('co.ui.notify')
local question_list = require('co.question.list')
local question_text = require('co.question.float_text')
local sight = require('co.question.sight')
local textlock = require('co.ui.textlock')

---@class (exact) co.float.Callbacks
---@field pending fun(): co.Question[]
---@field next fun() show the first question
---@field answer_all fun(ids: integer[], decision: 'once'|'deny')
---@field hide fun()
---@field show_whole fun(question: co.Question) show the text that the float has cut
---@field failed fun(question: co.Question, problem: string) the question cannot be shown
---@field wiped fun() the buffer was deleted
---@field closed fun(tab: integer) the window was closed, by the person or with its tab page

---@type co.float.Callbacks
local callbacks
-- -1 is no buffer and no window. 0 and nil would be the current one.
local buf, win = -1, -1
local closing = false
-- The list that is shown.
---@type co.QuestionList?
local list
-- A key of the float does its work now.
local pressing = false

-- The rows of a command in the window if it is not large. The first size with which all else is visible is used.
---@type { rows: integer, columns: integer }[]
local COMMAND_SIZES = {}
for rows = 10, 1, -1 do
  COMMAND_SIZES[#COMMAND_SIZES + 1] = { rows = rows, columns = 76 }
end
vim.list_extend(COMMAND_SIZES, { { rows = 1, columns = 48 }, { rows = 1, columns = 24 } })

---@type co.float.State
local state = {
  page = 'question',
  large = false,
  total = 0,
  approved = {},
  finishing = false,
  texts = 0,
  partial = false,
  warned = false,
}

--- The notice for a key that is no answer yet.
M.TOO_QUICK = 'too quick, press again'

--- Returns whether the window is open.
---@return boolean
local function open()
  return api.nvim_win_is_valid(win)
end

--- Sets the functions that the float calls.
---@param to co.float.Callbacks
function M.set_callbacks(to)
  callbacks = to
end

--- Returns whether the float has the focus.
---@return boolean
function M.focused()
  return open() and api.nvim_get_current_win() == win
end

--- Ignores keys for a while, if the float has the focus: it shows something else than before.
local function ignore_keys()
  if M.focused() then
    focus.ignore_keys('co')
  end
end

--- Returns whether the page is about all questions.
---@return boolean
local function about_all()
  return state.page == 'list' or state.page == 'list_help'
end

--- Forgets the question that was shown. The list stays, because it shows all questions.
function M.forget_question()
  state.question, state.large, state.seen_before = nil, false, nil
  if not about_all() then
    state.page = 'question'
  end
end

--- Returns the conditions for the place of the window.
---@return co.float.View
local function view()
  local question = state.question
  return {
    win = win,
    large = state.large,
    -- The pages with keys must be visible in full.
    whole = state.page ~= 'question',
    signs = question and state.page == 'question' and question.kind.signs or false,
    -- No turn waits for it: keep the float small.
    share = question and not question.kind.holds_turn and 0.3 or 0.6,
    title = function(hidden, width)
      local asked = question --[[@as co.CommandQuestion?]]
      local change = asked and asked.change
      local more = state.page == 'question' and change and change.more or 0
      return caption.title(state, hidden + more, width)
    end,
    footer = function(width)
      return caption.footer(state, M.focused(), width)
    end,
  }
end

--- Returns the position and the size for the lines.
---@param lines string[]
---@return vim.api.keyset.win_config
local function geometry(lines)
  return float_window.geometry(lines, view())
end

--- Returns the question that the window is about, on any page; nil if it waits for no answer.
---@return co.Question?
local function asked_question()
  return open() and not state.held and not state.finishing and state.question or nil
end

--- Takes note of what can be seen in the window.
local function note_sight()
  local question = asked_question()
  answer_keys.show(question ~= nil)
  if question and state.page == 'question' then
    sight.shown(win, ('%d %d'):format(question.id, state.texts), state.partial)
  else
    sight.gone()
  end
end

--- Shows the first line at the top of the window.
local function scroll_to_start()
  api.nvim_win_call(win, function()
    vim.fn.winrestview({ lnum = 1, col = 0, topline = 1, skipcol = 0 })
  end)
end

--- Sets the options, the position and the size of the window.
---@param question? co.Question
---@param lines string[]
local function update_window(question, lines)
  local destructive = question ~= nil and question.destructive and not about_all()
  float_window.set_options(win, destructive, view().signs)
  api.nvim_win_set_config(win, geometry(lines))
  -- The height depends on the width, so compute it again.
  api.nvim_win_set_config(win, geometry(lines))
  if api.nvim_win_text_height(win, {}).all <= api.nvim_win_get_height(win) then
    -- A window that grows stays scrolled.
    scroll_to_start()
  end
  note_sight()
end

--- Calls `closed` if somebody else closes the window.
local function watch_window()
  local tab = api.nvim_win_get_tabpage(win)
  local mine = win
  api.nvim_create_autocmd('WinClosed', {
    pattern = tostring(mine),
    once = true,
    callback = function()
      if closing or win ~= mine then
        return
      end
      win = -1
      note_sight()
      callbacks.closed(tab)
    end,
  })
end

--- Returns the text of a question. A long command is folded, so that the reasons are visible too.
---@param question co.Question
---@return co.QuestionText
local function question_page(question)
  local folded = question.kind.folded
  if state.large or not folded then
    return question.kind.text(question, 'question')
  end
  for _, size in ipairs(COMMAND_SIZES) do
    local text = folded(question, size)
    if float_window.fits(text.lines, view()) then
      return text
    end
  end
  return folded(question, COMMAND_SIZES[#COMMAND_SIZES])
end

--- Returns the text of the page.
---@param question co.Question
---@return co.QuestionText
local function text_of(question)
  if state.page == 'list_help' then
    return question_text.list_help()
  elseif state.page ~= 'list' then
    list, state.approved = nil, {}
    if state.page == 'question' then
      return question_page(question)
    end
    return question.kind.text(question, state.page)
  end
  local new = question_list.new(callbacks.pending(), list)
  if not list or not vim.deep_equal(new.rows, list.rows) then
    ignore_keys()
  end
  list = new
  new.text.lines[1], state.approved = question_list.heading(new)
  return new.text
end

--- Notes the rows of the list that the window shows. `y` approves only questions that were visible.
local function note_displayed()
  if not state.question or not list or state.page ~= 'list' or not open() then
    return
  end
  question_list.note_displayed(list, win)
  local heading, ids = question_list.heading(list)
  if #ids ~= #state.approved then
    state.approved = ids
    float_window.write_heading(buf, heading)
    update_window(state.question, api.nvim_buf_get_lines(buf, 0, -1, false))
  end
end

--- Holds the place of a question that the person answers with a command of their own. Another question is shown after
--- they press a key or leave the float.
---@param edit { id: integer, command: string }
function M.hold(edit)
  state.held = M.focused() and edit or nil
end

--- Shows the command of the person in the place of its question.
---@param command string
local function show_held(command)
  M.forget_question()
  local text = question_text.edited(command)
  float_window.write(buf, text)
  update_window(nil, text.lines)
end

--- Lets the first question take the place that was held.
local function go_on()
  state.held = nil
  callbacks.next()
end

--- Writes the page into the buffer and returns its lines. If no key of the person changed them, keys are not answers for a
--- while.
---@param question co.Question
---@return string[]
local function write_page(question)
  local text = text_of(question)
  local changed = float_window.write(buf, text)
  if changed then
    state.texts = state.texts + 1
  end
  state.partial = text.partial or false
  if changed and not pressing then
    ignore_keys()
  end
  return text.lines
end

--- Shows the page again.
local function redraw()
  local question = state.question
  if not question then
    return
  end
  local ok, problem = xpcall(function()
    local lines = write_page(question)
    if open() then
      update_window(question, lines)
      note_displayed()
    end
  end, debug.traceback)
  if ok then
    return
  elseif state.page == 'question' then
    callbacks.failed(question, tostring(problem))
    return
  end
  log.add('float', tostring(problem))
  state.page = 'question'
  callbacks.next()
end

--- Moves the window away from a prompt or a text of a chat that has changed. In less room, it folds more of a command.
function M.make_room()
  if open() and api.nvim_win_get_tabpage(win) == api.nvim_get_current_tabpage() then
    local place = geometry(api.nvim_buf_get_lines(buf, 0, -1, false))
    local now = api.nvim_win_get_config(win)
    for _, name in ipairs({ 'row', 'col', 'width', 'height' }) do
      if now[name] ~= place[name] then
        api.nvim_win_set_config(win, place)
        redraw()
        return
      end
    end
  end
end

--- Shows another page from its first line.
---@param to co.QuestionPage
function M.show_page(to)
  state.page = to
  if open() then
    scroll_to_start()
  end
  redraw()
end

--- Opens the window without focus.
---@param question co.Question
---@param lines string[]
local function open_window(question, lines)
  local place = geometry(lines)
  place.border = 'rounded'
  place.style = 'minimal'
  place.zindex = 60
  place.noautocmd = true
  win = guarded.open_window(buf, false, place)
  update_window(question, lines)
  watch_window()
end

--- Shows a question in the current tab page, without focus; returns false if no window can be opened. It throws an error if
--- the question has a text that cannot be shown.
---@param question co.Question
---@param count integer of questions that wait
---@return boolean
function M.show(question, count)
  highlight.ensure()
  local refused = question.refused_edit
  if state.held and M.focused() and not (refused and refused.question == state.held.id) then
    state.total = count
    show_held(state.held.command)
    return true
  end
  state.held = nil
  local another = state.question ~= question
  state.finishing = false
  if another then
    M.forget_question()
    ignore_keys()
  end
  state.question, state.total = question, count
  if not api.nvim_buf_is_loaded(buf) then
    M.make_buffer()
  end
  if open() and api.nvim_win_get_tabpage(win) ~= api.nvim_get_current_tabpage() then
    M.close()
  end
  local lines = write_page(question)
  if open() then
    update_window(question, lines)
    if another then
      scroll_to_start()
    end
    note_displayed()
    return true
  end
  -- A text that has no place throws an error here, before a window may.
  geometry(lines)
  local ok, problem = pcall(open_window, question, lines)
  if not ok then
    log.add('float', tostring(problem))
    M.close()
  end
  return ok
end

--- Closes the window. A second call does nothing.
function M.close()
  if open() then
    closing = true
    pcall(guarded.close_window, win, true)
    closing = false
  end
  win = -1
  note_sight()
end

--- Closes the window after the last question. A window with focus first waits until no answer keys come; then it closes
--- and calls `done`.
---@param done fun()
function M.finish(done)
  state.page, state.held = 'question', nil
  if not M.focused() then
    M.close()
    return
  elseif state.finishing then
    return
  end
  state.finishing = true
  note_sight()
  focus.ignore_keys('person')
  api.nvim_win_set_config(win, geometry(api.nvim_buf_get_lines(buf, 0, -1, false)))
  local function release()
    if not state.finishing then
      return
    end
    state.finishing = false
    local focused = M.focused()
    M.close()
    if focused then
      focus.drop_typed()
      done()
    end
  end
  focus.when_keys_count(release)
  -- A command is meant for the window of the person.
  api.nvim_create_autocmd('CmdlineEnter', {
    group = api.nvim_create_augroup('co.float.finish', {}),
    once = true,
    callback = vim.schedule_wrap(function()
      textlock.when_unlocked(release)
    end),
  })
end

--- Returns the question that the float shows; nil if it shows something else.
---@return co.Question?
function M.shown()
  return state.page == 'question' and asked_question() or nil
end

--- Puts the cursor into the float. Keys that were typed before are not answers.
---@param by co.focus.By
function M.focus(by)
  if open() then
    guarded.go_to_window(win)
    focus.ignore_keys(by)
  end
end

--- Returns whether a key is an answer although the person has just gone to the float: they had seen the whole question
--- before, and it is a harmless one.
---@return boolean
local function had_seen()
  local question = M.shown()
  return question ~= nil
    and focus.ignored_after() == 'person'
    and focus.pressed()
    and state.seen_before == state.texts
    and sight.visibility() == 'whole'
    and not question.kind.alone(question)
end

--- Runs the action of a key on the page that is shown.
---@param key string
local function press(key)
  if state.finishing then
    return
  elseif focus.ignores_keys() and not had_seen() then
    if not state.warned then
      state.warned = true
      notify.info(M.TOO_QUICK)
    end
    return
  end
  pressing, state.warned = true, false
  local ok, problem = xpcall(function()
    if state.held then
      go_on()
      return
    end
    float_actions.act(key, state, {
      show_page = M.show_page,
      redraw = redraw,
      callbacks = callbacks,
    })
  end, debug.traceback)
  pressing = false
  if not ok then
    error(problem, 0)
  end
end

--- Creates the buffer with its keys and autocommands.
function M.make_buffer()
  buf = api.nvim_create_buf(false, true)
  local mine = buf
  vim.bo[buf].bufhidden = 'hide'
  guarded.set_option(buf, 'filetype', 'co-approval')
  float_keys.map(buf, press, function()
    local question = state.question
    return question ~= nil and (question.kind.keys.question or {})['1'] ~= nil
  end)
  api.nvim_create_autocmd({ 'WinEnter', 'WinLeave' }, {
    buffer = buf,
    callback = function(event)
      if event.event == 'WinEnter' then
        focus.ignore_keys('person')
        state.warned, state.seen_before = false, sight.seen() and state.texts or nil
      end
      -- At WinLeave, the float is still the current window.
      vim.schedule(function()
        if state.held and not M.focused() then
          go_on()
        elseif open() then
          redraw()
        end
      end)
    end,
  })
  api.nvim_create_autocmd({ 'WinScrolled', 'WinResized' }, {
    group = api.nvim_create_augroup('co.float.scrolled', {}),
    callback = function()
      M.make_room()
      note_displayed()
    end,
  })
  api.nvim_create_autocmd('BufUnload', {
    buffer = buf,
    callback = function()
      if buf == mine then
        buf = -1
        closing = true
        vim.schedule(function()
          closing = false
          M.close()
          callbacks.wiped()
        end)
      end
    end,
  })
end

return M
