--- The approval float: the question that it shows, its pages and its keys.
---
--- It shows one question at a time. The kind of the question gives the text and the keys. `co.question` has the queue.
local M = {}

local api = vim.api
local float_window = require('co.question.float_window')
local highlight = require('co.ui.highlight')
local log = require('co.ui.log')
local question_list = require('co.question.list')
local question_text = require('co.question.text')
local textlock = require('co.ui.textlock')

local IGNORE_KEYS_NS = 250 * 1000000

---@class (exact) co.float.Callbacks
---@field pending fun(): co.Question[]
---@field next fun() show the first question
---@field answer_all fun(ids: integer[], decision: 'once'|'deny')
---@field hide fun()
---@field wiped fun() the buffer was deleted
---@field closed fun(tab: integer) the window was closed, by the person or with its tab page

---@type co.float.Callbacks
local callbacks
-- -1 is no buffer and no window. 0 and nil would be the current one.
local buf, win = -1, -1
---@type co.Question?
local shown
---@type co.QuestionPage
local page = 'question'
local large = false
local total = 0
-- Keys are answers only after a delay from this time.
local shown_at = 0
local closing = false
-- The last question was answered and the float still has the focus. It takes keys that were meant as answers.
local finishing = false
-- The question that the person answered with a command of their own. Its place stays taken until they go on.
---@type { id: integer, command: string }?
local held
-- The list that is shown, and the ids of the questions that `y` approves.
---@type co.QuestionList?
local list
---@type integer[]
local approved = {}

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

--- Forgets the question that was shown. The list stays, because it shows all questions.
function M.forget_question()
  shown, large = nil, false
  page = page == 'list' and 'list' or 'question'
end

--- Returns the key that the person mapped to the float.
---@return string
local function focus_key()
  for _, map in ipairs(api.nvim_get_keymap('n')) do
    if map.rhs == '<Plug>(co-approve)' then
      return map.lhs --[[@as string]]
    end
  end
  return ':Co /approve'
end

--- Returns the footer: the keys that work now.
---@param width integer
---@return string
local function footer(width)
  if held then
    return ' <CR> next question '
  elseif finishing or not shown then
    return ''
  elseif not M.focused() then
    return (' %s to answer '):format(focus_key())
  elseif page == 'list' then
    local yes = #approved > 0 and (' y yes to %d ·'):format(#approved) or ''
    local long, brief =
      yes .. ' gN no to all commands · q back ', yes .. ' gN no to all · q back '
    return vim.fn.strdisplaywidth(long) <= width and long or brief
  elseif page ~= 'question' then
    return ''
  end
  local long, brief = shown.kind.footer(shown)
  if total > 1 then
    long, brief = long .. ' · Y list', brief .. ' Y'
  end
  long, brief = (' %s · d all · g? '):format(long), (' %s d g? '):format(brief)
  return vim.fn.strdisplaywidth(long) <= width and long or brief
end

--- Returns the title.
---@param hidden number lines that do not fit
---@return string
local function title(hidden)
  if held then
    return (' co · %d more '):format(total)
  elseif finishing then
    return ' co · nothing waits '
  elseif page == 'list' then
    local text = (' co · %d questions '):format(total)
    return hidden > 0 and ('%s· %d more lines '):format(text, hidden) or text
  end
  local about = shown and ('%s · #%d'):format(shown.kind.title(shown), shown.number) or ''
  local text = (' co 1/%d · %s '):format(total, about)
  return hidden > 0 and ('%s· d: %d more lines '):format(text, hidden) or text
end

--- Returns the position and the size for the lines.
---@param lines string[]
---@return vim.api.keyset.win_config
local function geometry(lines)
  return float_window.geometry(lines, {
    win = win,
    wide = large,
    -- The pages with keys must be visible in full.
    tall = large or page ~= 'question',
    -- No turn waits for it: keep the float small.
    share = shown and not shown.kind.holds_turn and 0.3 or 0.6,
    title = title,
    footer = footer,
  })
end

--- Sets the options, the position and the size of the window.
---@param question? co.Question
---@param lines string[]
local function update_window(question, lines)
  float_window.set_options(win, question ~= nil and question.destructive and page ~= 'list')
  api.nvim_win_set_config(win, geometry(lines))
  -- The height depends on the width, so compute it again.
  api.nvim_win_set_config(win, geometry(lines))
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
      callbacks.closed(tab)
    end,
  })
end

--- Returns the text of the page. If the list changed, keys are not answers for a while.
---@param question co.Question
---@return co.QuestionText
local function text_of(question)
  if page ~= 'list' then
    list, approved = nil, {}
    return question.kind.text(question, page)
  end
  local new = question_list.new(callbacks.pending(), list)
  if not list or not vim.deep_equal(new.rows, list.rows) then
    shown_at = vim.uv.hrtime()
  end
  list = new
  new.text.lines[1], approved = question_list.heading(new)
  return new.text
end

--- Notes the rows of the list that the window shows. `y` approves only questions that were visible.
local function note_displayed()
  if not shown or not list or not open() then
    return
  end
  question_list.note_displayed(list, win)
  local heading, ids = question_list.heading(list)
  if #ids ~= #approved then
    approved = ids
    float_window.write_heading(buf, heading)
    update_window(shown, api.nvim_buf_get_lines(buf, 0, -1, false))
  end
end

--- Holds the place of a question that the person answers with a command of their own. Another question is shown after
--- they press a key or leave the float.
---@param edit { id: integer, command: string }
function M.hold(edit)
  held = M.focused() and edit or nil
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
  held = nil
  callbacks.next()
end

--- Shows the page again.
local function redraw()
  if not shown then
    return
  end
  local text = text_of(shown)
  float_window.write(buf, text)
  if open() then
    update_window(shown, text.lines)
    note_displayed()
  end
end

--- Shows another page from its first line.
---@param to co.QuestionPage
function M.show_page(to)
  page = to
  if open() then
    api.nvim_win_set_cursor(win, { 1, 0 })
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
  win = api.nvim_open_win(buf, false, place)
  update_window(question, lines)
  watch_window()
end

--- Shows a question in the current tab page, without focus; returns false if no window can be opened.
---@param question co.Question
---@param count integer of questions that wait
---@return boolean
function M.show(question, count)
  highlight.ensure()
  local refused = question.refused_edit
  if held and M.focused() and not (refused and refused.question == held.id) then
    total = count
    show_held(held.command)
    return true
  end
  held = nil
  local another = shown ~= question
  finishing = false
  if another then
    M.forget_question()
    shown_at = vim.uv.hrtime()
  end
  shown, total = question, count
  if not api.nvim_buf_is_loaded(buf) then
    M.make_buffer()
  end
  if open() and api.nvim_win_get_tabpage(win) ~= api.nvim_get_current_tabpage() then
    M.close()
  end
  local text = text_of(question)
  local ok, problem = pcall(float_window.write, buf, text)
  if not ok then
    -- Close it: a key must not answer a question that the float does not show.
    log.add('float', tostring(problem))
    M.close()
    return false
  end
  if open() then
    update_window(question, text.lines)
    if another then
      api.nvim_win_set_cursor(win, { 1, 0 })
    end
    note_displayed()
    return true
  end
  local ok, problem = pcall(open_window, question, text.lines)
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
    pcall(api.nvim_win_close, win, true)
    closing = false
  end
  win = -1
end

--- Drops keys that Neovim has not read yet.
local function drop_typed_keys()
  if api.nvim_get_mode().mode == 'n' then
    while vim.fn.getchar(0) ~= 0 do
    end
  end
end

--- Closes the window after the last question. A window with focus first waits until no answer keys come; then it closes
--- and calls `done`.
---@param done fun()
function M.finish(done)
  page, held = 'question', nil
  if not M.focused() then
    M.close()
    return
  elseif finishing then
    return
  end
  finishing, shown_at = true, vim.uv.hrtime()
  api.nvim_win_set_config(win, geometry(api.nvim_buf_get_lines(buf, 0, -1, false)))
  local function release()
    if not finishing then
      return
    end
    finishing = false
    local focused = M.focused()
    M.close()
    if focused then
      drop_typed_keys()
      done()
    end
  end
  local function wait()
    local left = IGNORE_KEYS_NS - (vim.uv.hrtime() - shown_at)
    if left <= 0 then
      release()
    elseif finishing then
      vim.defer_fn(function()
        textlock.when_unlocked(wait)
      end, math.ceil(left / 1000000))
    end
  end
  wait()
  -- A command is meant for the window of the person.
  api.nvim_create_autocmd('CmdlineEnter', {
    group = api.nvim_create_augroup('co.float.finish', {}),
    once = true,
    callback = vim.schedule_wrap(function()
      textlock.when_unlocked(release)
    end),
  })
end

--- Puts the cursor into the float. Keys that were typed before are not answers.
function M.focus()
  if open() then
    api.nvim_set_current_win(win)
  end
end

--- Returns the ids of the questions about commands. `gN` does not answer others: a no to a file holds longer.
---@return integer[]
local function command_ids()
  local ids = {}
  for _, question in ipairs(callbacks.pending()) do
    if question.kind.holds_turn then
      ids[#ids + 1] = question.id
    end
  end
  return ids
end

--- The keys of every kind of question.
---@type table<string, fun()>
local common_keys = {
  ['g?'] = function()
    M.show_page(page == 'help' and 'question' or 'help')
  end,
  q = function()
    if page == 'question' then
      callbacks.hide()
    else
      M.show_page('question')
    end
  end,
  d = function()
    if page == 'question' or page == 'list' then
      large = not large
      redraw()
    end
  end,
  Y = function()
    if page == 'question' then
      M.show_page('list')
    end
  end,
  y = function()
    if page == 'list' and #approved > 0 then
      page = 'question'
      callbacks.answer_all(approved, 'once')
    end
  end,
  gN = function()
    local ids = command_ids()
    if (page == 'question' or page == 'list') and #ids > 0 then
      page = 'question'
      callbacks.answer_all(ids, 'deny')
    end
  end,
}

--- Runs the action of a key on the page that is shown.
---@param key string
local function press(key)
  if finishing then
    shown_at = vim.uv.hrtime()
    return
  elseif vim.uv.hrtime() - shown_at < IGNORE_KEYS_NS then
    return
  elseif held then
    go_on()
    return
  elseif not shown then
    return
  end
  local own = (shown.kind.keys[page] or {})[key]
  if own then
    own(shown)
  elseif common_keys[key] then
    common_keys[key]()
  end
end

--- Creates the buffer with its keys and autocommands.
function M.make_buffer()
  buf = api.nvim_create_buf(false, true)
  local mine = buf
  vim.bo[buf].bufhidden = 'hide'
  vim.bo[buf].filetype = 'co-approval'
  for _, key in ipairs({ 'y', 'n', 'N', 'a', 'e', 'd', 'c', 'p', 's', 'E', 'Y', 'gN', 'g?', 'q' }) do
    vim.keymap.set('n', key, function()
      press(key)
    end, { buffer = buf, nowait = true, silent = true, desc = 'co: answer' })
  end
  vim.keymap.set('n', '<Esc>', function()
    press('q')
  end, { buffer = buf, nowait = true, silent = true, desc = 'co: hide' })
  vim.keymap.set('n', '<CR>', function()
    if held then
      press('<CR>')
    end
  end, { buffer = buf, nowait = true, desc = 'co: nothing' })
  api.nvim_create_autocmd({ 'WinEnter', 'WinLeave' }, {
    buffer = buf,
    callback = function(event)
      if event.event == 'WinEnter' then
        shown_at = vim.uv.hrtime()
      end
      -- At WinLeave, the float is still the current window.
      vim.schedule(function()
        if held and not M.focused() then
          go_on()
        elseif open() then
          redraw()
        end
      end)
    end,
  })
  api.nvim_create_autocmd('WinScrolled', {
    group = api.nvim_create_augroup('co.float.scrolled', {}),
    callback = note_displayed,
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
