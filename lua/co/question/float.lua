--- The approval float: a window that shows one question at a time, and its pages.
---
--- The queue's owner (`co.question`) tells the float what to show. The float tells its subscriber what the person wants.
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
local page = require('co.question.page')
local question_list = require('co.question.list')
local question_text = require('co.question.float_text')
local sight = require('co.question.sight')
local textlock = require('co.ui.textlock')

--- The state of the float:
---
--- - `asking`: The float asks a question.
--- - `edited`: The float shows the command that the person wrote in place of the model's command, until the person
---   presses a key or leaves the float.
--- - `done`: No question waits. The float keeps the focus until no more answer keys come.
---@alias co.float.Phase 'asking'|'edited'|'done'

--- A message of the float to its subscriber.
---@alias co.float.Event
---| { type: 'next' } the subscriber must show the first question
---| { type: 'answer_all', ids: integer[], decision: 'once'|'deny' }
---| { type: 'hide' }
---| { type: 'show_whole', question: co.Question } the person wants the text that the float has cut
---| { type: 'failed', question: co.Question, problem: string } the question cannot be shown
---| { type: 'wiped' } the buffer was deleted
---| { type: 'closed', tab: integer } the window was closed, by the person or with its tab page

--- The window that had the focus before the float.
---@class (exact) co.float.Origin
---@field win integer
---@field mode? co.normal_mode.From the mode of the person there

---@class (exact) co.Float
---@field private buf integer no buffer if it is -1; 0 and nil would be the current one
---@field private win integer
---@field private phase co.float.Phase
---@field private edit? { id: integer, command: string } the answered question and the person's command, in the phase `edited`
---@field private page co.Page
---@field private origin? co.float.Origin
---@field private pressing boolean a key of the float does its work now
---@field private texts integer the number of texts that the float has shown
---@field private seen_before? integer the text that the person had seen when they went to the float
---@field private warned boolean the person was told that a key is no answer yet
---@field private listener fun(event: co.float.Event)
local Float = {}
Float.__index = Float

--- The notice for a key that is no answer yet.
M.TOO_QUICK = 'too quick, press again'

--- Returns a float that is closed.
---@return co.Float
function M.new()
  return setmetatable({
    buf = -1,
    win = -1,
    phase = 'asking',
    page = page.new(),
    pressing = false,
    texts = 0,
    warned = false,
    listener = function() end,
  }, Float)
end

--- Sets the function that gets the events of the float.
---@param listener fun(event: co.float.Event)
function Float:subscribe(listener)
  self.listener = listener
end

--- Tells the subscriber of an event.
---@param event co.float.Event
function Float:emit(event)
  self.listener(event)
end

--- Returns whether the window is open.
---@private
---@return boolean
function Float:is_open()
  return api.nvim_win_is_valid(self.win)
end

--- Returns whether the buffer exists, so that the window can be opened again with the same text.
---@return boolean
function Float:has_buffer()
  return api.nvim_buf_is_loaded(self.buf)
end

--- Returns whether the float has the focus.
---@return boolean
function Float:focused()
  return self:is_open() and api.nvim_get_current_win() == self.win
end

--- Ignores keys for a while if the float has the focus, because the content of the float has changed.
---@private
function Float:ignore_keys()
  if self:focused() then
    focus.ignore_keys('co')
  end
end

--- Forgets the question that was shown.
function Float:forget_question()
  self.page:forget_question()
  self.seen_before = nil
end

--- Returns the conditions that the position and the size of the window must meet.
---@private
---@return co.float.View
function Float:view()
  local shown = self.page
  local question = shown.question
  local is_question = shown.name == 'question'
  local asked = question --[[@as co.CommandQuestion?]]
  local change = is_question and asked and asked.change or nil
  return {
    win = self.win,
    large = shown.large,
    -- The pages with keys must be visible in full.
    whole = not is_question,
    signs = change ~= nil,
    -- No turn waits for it: keep the float small.
    share = question and not question.kind.holds_turn and 0.3 or 0.6,
    title = function(hidden, width)
      local more = change and change.more or 0
      return caption.title(self.phase, shown, hidden + more, width)
    end,
    footer = function(hidden, width)
      return caption.footer(self.phase, shown, {
        focused = self:focused(),
        whole = hidden == 0 and not shown.partial,
        width = width,
      })
    end,
  }
end

--- Returns the position and the size of the window for `lines`, by default the lines of the buffer.
---@private
---@param lines? string[]
---@return vim.api.keyset.win_config
function Float:geometry(lines)
  lines = lines or api.nvim_buf_get_lines(self.buf, 0, -1, false)
  return float_window.geometry(lines, self:view())
end

--- Returns the question that the window asks, whatever page it shows; nil if no answer is awaited.
---@private
---@return co.Question?
function Float:asked_question()
  return self:is_open() and self.phase == 'asking' and self.page.question or nil
end

--- Returns the question if the float shows it; nil if the float is closed or shows another page.
---@return co.Question?
function Float:shown()
  return self.page.name == 'question' and self:asked_question() or nil
end

--- Updates the answer keys and the record of what the person can see in the window.
---@private
function Float:note_sight()
  answer_keys.show(self:asked_question() ~= nil)
  local question = self:shown()
  if question then
    sight.shown(self.win, ('%d %d'):format(question.id, self.texts), self.page.partial)
  else
    sight.gone()
  end
end

--- Shows the first line at the top of the window.
---@private
function Float:scroll_to_start()
  api.nvim_win_call(self.win, function()
    vim.fn.winrestview({ lnum = 1, col = 0, topline = 1, skipcol = 0 })
  end)
end

--- Sets the options, the position and the size of the window.
---@private
function Float:update_window()
  local question = self.page.question
  local destructive = question ~= nil and question.destructive and not self.page:about_all()
  float_window.set_options(self.win, destructive, self:view().signs)
  api.nvim_win_set_config(self.win, self:geometry())
  -- The height depends on the width, so compute it again.
  api.nvim_win_set_config(self.win, self:geometry())
  if api.nvim_win_text_height(self.win, {}).all <= api.nvim_win_get_height(self.win) then
    -- A window that grows stays scrolled.
    self:scroll_to_start()
  end
  self:note_sight()
end

--- Tells the subscriber if somebody else closes the window.
---@private
function Float:watch_window()
  local win, tab = self.win, api.nvim_win_get_tabpage(self.win)
  api.nvim_create_autocmd('WinClosed', {
    pattern = tostring(win),
    once = true,
    callback = function()
      if self.win == win then
        self.win = -1
        self:note_sight()
        self:emit({ type = 'closed', tab = tab })
      end
    end,
  })
end

--- Notes the rows of the list that the window shows.
---@private
function Float:note_displayed()
  local list = self.page.list
  if not self.page.question or not list or self.page.name ~= 'list' or not self:is_open() then
    return
  end
  local heading = question_list.note_displayed(list, self.win)
  if heading then
    float_window.write_heading(self.buf, heading)
    self:update_window()
  end
end

--- Writes the page into the buffer. If no key of the person changed it, keys are not answers for a while.
---@private
---@param question co.Question
function Float:write_page(question)
  local text, other_list = self.page:text(question, function(lines)
    return float_window.fits(lines, self:view())
  end)
  if other_list then
    self:ignore_keys()
  end
  local changed = float_window.write(self.buf, text)
  if changed then
    self.texts = self.texts + 1
  end
  self.page.partial = text.partial or false
  if changed and not self.pressing then
    self:ignore_keys()
  end
end

--- Shows the page again.
function Float:redraw()
  local question = self.page.question
  if not question then
    return
  end
  local ok, problem = xpcall(function()
    self:write_page(question)
    if self:is_open() then
      self:update_window()
      self:note_displayed()
    end
  end, debug.traceback)
  if ok then
    return
  elseif self.page.name == 'question' then
    self:emit({ type = 'failed', question = question, problem = tostring(problem) })
    return
  end
  log.add('float', tostring(problem))
  self.page.name = 'question'
  self:emit({ type = 'next' })
end

--- Moves the window so that it does not cover the changed prompt or text of a chat. In a smaller window, it shows less
--- of a command.
function Float:make_room()
  if self:is_open() and api.nvim_win_get_tabpage(self.win) == api.nvim_get_current_tabpage() then
    local place, now = self:geometry(), api.nvim_win_get_config(self.win)
    for _, name in ipairs({ 'row', 'col', 'width', 'height' }) do
      if now[name] ~= place[name] then
        api.nvim_win_set_config(self.win, place)
        self:redraw()
        return
      end
    end
  end
end

--- Shows another page from its first line.
---@param name co.QuestionPage
function Float:show_page(name)
  self.page.name = name
  if self:is_open() then
    self:scroll_to_start()
  end
  self:redraw()
end

--- Opens the window without focus.
---@private
---@param place vim.api.keyset.win_config
function Float:open(place)
  place.border = 'rounded'
  place.style = 'minimal'
  place.zindex = 60
  place.noautocmd = true
  self.win = guarded.open_window(self.buf, false, place)
  self:update_window()
  self:watch_window()
end

--- Keeps showing a question that the person answered with another command. The float shows the next question after the
--- person presses a key or leaves the float.
---@param edit { id: integer, command: string }
function Float:hold(edit)
  if self:focused() then
    self.phase, self.edit = 'edited', edit
  end
end

--- Ends what `hold` began: the float shows the first question.
---@private
function Float:go_on()
  self.phase, self.edit = 'asking', nil
  self:emit({ type = 'next' })
end

--- Returns true if the float must go on showing the person's command instead of this question.
---@private
---@param question co.Question
---@return boolean
function Float:keeps_place(question)
  local refused = question.refused_edit
  return self.phase == 'edited'
    and self:focused()
    and not (refused and self.edit and refused.question == self.edit.id)
end

--- Shows the first of these questions in the current tab page, without focus. Returns false if no window can be opened.
--- Throws an error if the text of the question cannot be shown.
---@param questions co.Question[]
---@return boolean
function Float:show(questions)
  highlight.ensure()
  local question = questions[1]
  self.page.questions = questions
  if self.edit and self:keeps_place(question) then
    self:forget_question()
    float_window.write(self.buf, question_text.edited(self.edit.command))
    self:update_window()
    return true
  end
  self.phase, self.edit = 'asking', nil
  local another = self.page.question ~= question
  if another then
    self:forget_question()
    self:ignore_keys()
  end
  self.page.question = question
  if not self:has_buffer() then
    self:make_buffer()
  end
  if self:is_open() and api.nvim_win_get_tabpage(self.win) ~= api.nvim_get_current_tabpage() then
    self:close()
  end
  self:write_page(question)
  if self:is_open() then
    self:update_window()
    if another then
      self:scroll_to_start()
    end
    self:note_displayed()
    return true
  end
  -- A text that has no place throws an error here, before a window may.
  local place = self:geometry()
  local ok, problem = pcall(self.open, self, place)
  if not ok then
    log.add('float', tostring(problem))
    self:close()
  end
  return ok
end

--- Closes the window. A second call does nothing.
---@private
function Float:close()
  local win = self.win
  -- `watch_window` is for windows that somebody else closes.
  self.win = -1
  if api.nvim_win_is_valid(win) then
    pcall(guarded.close_window, win, true)
  end
  self:note_sight()
end

--- Restores the window and the mode that the person was in before the float got the focus.
---@private
function Float:restore_focus()
  local origin = self.origin
  self.origin = nil
  if
    not origin
    or not api.nvim_win_is_valid(origin.win)
    or api.nvim_win_get_tabpage(origin.win) ~= api.nvim_get_current_tabpage()
  then
    return
  end
  guarded.go_to_window(origin.win)
  if origin.mode == 'terminal' then
    vim.cmd.startinsert()
  elseif origin.mode and api.nvim_get_mode().mode == 'n' then
    -- In front of keys that were typed meanwhile: they are for this window. `R` could not start after the last character.
    local keys = origin.mode == 'replace' and 'gi<Insert>' or 'gi'
    api.nvim_feedkeys(vim.keycode(keys), 'in', false)
  end
end

--- Closes the window. If it has the focus, the person goes back to where they were.
function Float:leave()
  local focused = self:focused()
  self:close()
  if focused then
    self:restore_focus()
  end
end

--- Closes the window after the last question. A window with focus first waits until no answer keys come.
function Float:finish()
  self.page.name, self.edit = 'question', nil
  if not self:focused() then
    self.phase = 'asking'
    self:close()
    return
  elseif self.phase == 'done' then
    return
  end
  self.phase = 'done'
  self:note_sight()
  api.nvim_win_set_config(self.win, self:geometry())
  local function release()
    if self.phase == 'done' then
      self.phase = 'asking'
      self:leave()
    end
  end
  local function release_after_pause()
    focus.ignore_keys('person')
    focus.when_keys_count(function()
      -- Unread keys may be answers, so this window must take them.
      if self.phase == 'done' and self:focused() and focus.has_unread_keys() then
        release_after_pause()
      else
        release()
      end
    end)
  end
  release_after_pause()
  -- A command is meant for the window of the person.
  api.nvim_create_autocmd('CmdlineEnter', {
    group = api.nvim_create_augroup('co.float.finish', {}),
    once = true,
    callback = function()
      textlock.when_unlocked(release)
    end,
  })
end

--- Puts the cursor into the float, if it is open. Keys that were typed before are not answers.
---@param by co.focus.By
---@param mode? co.normal_mode.From the mode to return to
function Float:focus(by, mode)
  if self:is_open() and not self:focused() then
    self.origin = { win = api.nvim_get_current_win(), mode = mode }
    guarded.go_to_window(self.win)
    focus.ignore_keys(by)
  end
end

--- Returns true if a key counts as an answer although the person has just gone to the float. The person must have seen
--- the whole question before, and the question must not need a key in the float.
---@private
---@return boolean
function Float:had_seen()
  local question = self:shown()
  return question ~= nil
    and focus.ignored_after() == 'person'
    and focus.pressed()
    and self.seen_before == self.texts
    and sight.visibility() == 'whole'
    and not question.kind.alone(question)
end

--- Runs the action of a key on the page that is shown.
---@private
---@param key string
function Float:press(key)
  -- Another window may show the buffer until `leave_other_windows` has run.
  if self.phase == 'done' or not self:focused() then
    return
  elseif focus.ignores_keys() and not self:had_seen() then
    if not self.warned then
      self.warned = true
      notify.info(M.TOO_QUICK)
    end
    return
  end
  self.pressing, self.warned = true, false
  local ok, problem = xpcall(function()
    if self.phase == 'edited' then
      self:go_on()
    else
      float_actions.act(key, self, self.page)
    end
  end, debug.traceback)
  self.pressing = false
  if not ok then
    error(problem, 0)
  end
end

--- Takes the buffer out of all other windows: its keys do nothing there, and its text would stay after the answer.
---@private
function Float:leave_other_windows()
  if not api.nvim_buf_is_valid(self.buf) then
    return
  end
  local here = api.nvim_get_current_win()
  for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
    if win ~= self.win then
      -- It fails while the command-line window is open. After that, the window is entered again.
      pcall(float_window.leave, win, self.buf)
    end
  end
  if
    not api.nvim_win_is_valid(here)
    and self:is_open()
    and api.nvim_win_get_tabpage(self.win) == api.nvim_get_current_tabpage()
  then
    guarded.go_to_window(self.win)
  end
end

--- Creates the buffer with its keys and autocommands.
---@private
function Float:make_buffer()
  local buf = api.nvim_create_buf(false, true)
  self.buf = buf
  vim.bo[buf].bufhidden = 'hide'
  guarded.set_option(buf, 'filetype', 'co-approval')
  float_keys.map(buf, function(key)
    self:press(key)
  end, function()
    local question = self.page.question
    return question ~= nil and (question.kind.keys.question or {})['1'] ~= nil
  end)
  api.nvim_create_autocmd({ 'WinEnter', 'WinLeave' }, {
    buffer = buf,
    callback = function(event)
      if event.event == 'WinEnter' then
        focus.ignore_keys('person')
        self.warned, self.seen_before = false, sight.seen() and self.texts or nil
      end
      -- At WinLeave, the float is still the current window.
      vim.schedule(function()
        if self.phase == 'edited' and not self:focused() then
          self:go_on()
        elseif self:is_open() then
          self:redraw()
        end
      end)
    end,
  })
  api.nvim_create_autocmd({ 'WinEnter', 'BufWinEnter' }, {
    buffer = buf,
    callback = vim.schedule_wrap(function()
      textlock.when_unlocked(function()
        self:leave_other_windows()
      end, "the other windows with the float's buffer", true)
    end),
  })
  api.nvim_create_autocmd({ 'WinScrolled', 'WinResized' }, {
    group = api.nvim_create_augroup('co.float.scrolled', {}),
    callback = function()
      self:make_room()
      self:note_displayed()
    end,
  })
  api.nvim_create_autocmd('BufUnload', {
    buffer = buf,
    callback = function()
      if self.buf == buf then
        local win = self.win
        self.buf, self.win = -1, -1
        vim.schedule(function()
          if api.nvim_win_is_valid(win) then
            pcall(guarded.close_window, win, true)
          end
          self:note_sight()
          self:emit({ type = 'wiped' })
        end)
      end
    end,
  })
end

return M
