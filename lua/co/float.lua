--- The window of the approval float: where it is, what it shows, which keys it has.
---
--- Knows one question at a time; the queue and the answers are `co.approve`'s.
local M = {}

local api = vim.api
local ask_text = require('co.ask_text')
local highlight = require('co.highlight')

local spans = api.nvim_create_namespace('co.approval')

local SWALLOW_NS = 250 * 1000000

---@class (exact) co.float.Listener
---@field answer fun(id: integer, decision: co.Decision, extra?: co.answer.Extra): boolean
---@field hide fun()
---@field wiped fun() the buffer is gone
---@field closed fun(tab: integer) the window was closed, by the person or with its tab page

---@type co.float.Listener
local listener
-- -1 is none: unlike 0 and nil, it is no buffer and no window to Neovim.
local buf, win = -1, -1
---@type co.Ask?
local shown
---@type 'question'|'menu'|'help'
local page = 'question'
local large = false
local total = 0
local focused_at = 0
local closing = false

---@return boolean
local function open()
  return api.nvim_win_is_valid(win)
end

---@param to co.float.Listener
function M.on(to)
  listener = to
end

---@return boolean
function M.focused()
  return open() and api.nvim_get_current_win() == win
end

--- Forgets what the last question was turned to: menu, size.
function M.reset()
  shown, page, large = nil, 'question', false
end

--- The key that reaches the float, as the person mapped it.
---@return string
local function way_in()
  for _, map in ipairs(api.nvim_get_keymap('n')) do
    if map.rhs == '<Plug>(co-approve)' then
      return map.lhs --[[@as string]]
    end
  end
  return ':Co /approve'
end

---@param width integer
---@return string
local function footer(width)
  if not M.focused() then
    return (' %s to answer '):format(way_in())
  elseif page ~= 'question' then
    return ''
  end
  local long = ' y once · n no · N no, because · a always · e edit · d all · g? '
  local brief = ' y n N a e d g? '
  if shown and shown.job then
    long, brief = long:gsub(' · e edit', ''), brief:gsub(' e', '')
  end
  return vim.fn.strdisplaywidth(long) <= width and long or brief
end

---@param hidden number lines that do not fit
---@return string
local function title(hidden)
  local text = (' co 1/%d · chat %d '):format(total, shown and shown.session or 0)
  return hidden > 0 and ('%s· d: %d more lines '):format(text, hidden) or text
end

---@param lines string[]
---@param width integer
---@return integer
local function estimate(lines, width)
  local height = 0
  for _, line in ipairs(lines) do
    height = height + math.max(1, math.ceil(vim.fn.strdisplaywidth(line) / width))
  end
  return height
end

---@param lines string[]
---@return vim.api.keyset.win_config
local function geometry(lines)
  local room = vim.o.columns - 2
  local widest = vim.fn.strdisplaywidth(title(1000))
  for _, line in ipairs(lines) do
    widest = math.max(widest, vim.fn.strdisplaywidth(line))
  end
  local width = math.max(1, math.min(widest, room, large and room or 80)) --[[@as integer]]
  local screen = vim.o.lines - vim.o.cmdheight - 3
  -- Keys that are not seen are no choice; beside the question there is more of Neovim.
  local whole = large or page ~= 'question'
  local most = math.max(1, whole and screen or math.floor(screen * 0.6))
  local wanted = estimate(lines, width)
  if open() then
    wanted = api.nvim_win_text_height(win, {}).all
  end
  local height = math.max(1, math.min(wanted, most)) --[[@as integer]]
  return {
    relative = 'editor',
    anchor = 'SE',
    row = vim.o.lines - vim.o.cmdheight - (vim.o.laststatus > 0 and 1 or 0),
    col = vim.o.columns,
    width = width,
    height = height,
    title = title(wanted - height),
    footer = footer(width),
    footer_pos = 'right',
  }
end

---@param text co.AskText
local function write(text)
  vim.bo[buf].modifiable = true
  api.nvim_buf_set_lines(buf, 0, -1, false, text.lines)
  vim.bo[buf].modifiable = false
  api.nvim_buf_clear_namespace(buf, spans, 0, -1)
  for _, span in ipairs(text.spans) do
    api.nvim_buf_set_extmark(buf, spans, span.row, span.from, {
      end_col = span.to,
      hl_group = span.group,
      strict = false,
    })
  end
end

---@param ask co.Ask
---@return co.AskText
local function text_of_page(ask)
  if page == 'menu' then
    return ask_text.menu(ask)
  elseif page == 'help' then
    return ask_text.help()
  end
  return ask_text.question(ask)
end

---@param ask co.Ask
local function dress(ask)
  local border = ask.destructive and 'CoApprovalDestructive' or 'CoApprovalBorder'
  local options = {
    winhighlight = ('NormalFloat:CoApproval,FloatBorder:%s,FloatTitle:%s'):format(
      border,
      ask.destructive and 'CoApprovalDestructive' or 'CoApprovalTitle'
    ),
    wrap = true,
    linebreak = false,
    winfixbuf = true,
    foldenable = false,
    number = false,
    relativenumber = false,
    signcolumn = 'no',
    spell = false,
    list = false,
  }
  for name, value in pairs(options) do
    api.nvim_set_option_value(name, value, { win = win, scope = 'local' })
  end
end

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
      listener.closed(tab)
    end,
  })
end

local function redraw()
  if not shown then
    return
  end
  local text = text_of_page(shown)
  write(text)
  if open() then
    api.nvim_win_set_config(win, geometry(text.lines))
  end
end

--- Shows another page, from its top.
---@param to 'question'|'menu'|'help'
local function turn(to)
  page = to
  redraw()
  if open() then
    api.nvim_win_set_cursor(win, { 1, 0 })
  end
end

---@param ask co.Ask
---@param lines string[]
local function open_window(ask, lines)
  local place = geometry(lines)
  place.border = 'rounded'
  place.style = 'minimal'
  place.zindex = 60
  place.noautocmd = true
  win = api.nvim_open_win(buf, false, place)
  dress(ask)
  api.nvim_win_set_config(win, geometry(lines))
  watch_window()
end

--- Shows a question in the current tab page, without focus. False where no window can be opened now.
---@param ask co.Ask
---@param count integer how many wait
---@return boolean
function M.show(ask, count)
  highlight.ensure()
  local another = shown ~= ask
  if another then
    M.reset()
    focused_at = vim.uv.hrtime()
  end
  shown, total = ask, count
  if not api.nvim_buf_is_loaded(buf) then
    M.make_buffer()
  end
  if open() and api.nvim_win_get_tabpage(win) ~= api.nvim_get_current_tabpage() then
    M.close()
  end
  local text = text_of_page(ask)
  local ok, problem = pcall(write, text)
  if not ok then
    -- Never an old text under a new question: a key would answer what nobody saw.
    require('co.log').add('float', tostring(problem))
    M.close()
    return false
  end
  if open() then
    dress(ask)
    api.nvim_win_set_config(win, geometry(text.lines))
    if another then
      api.nvim_win_set_cursor(win, { 1, 0 })
    end
    return true
  end
  local ok, problem = pcall(open_window, ask, text.lines)
  if not ok then
    require('co.log').add('float', tostring(problem))
    M.close()
  end
  return ok
end

--- Takes the window away; closing twice is harmless.
function M.close()
  if open() then
    closing = true
    pcall(api.nvim_win_close, win, true)
    closing = false
  end
  win = -1
end

--- Puts the cursor into the float; keys typed until now are not answers.
function M.focus()
  if open() then
    api.nvim_set_current_win(win)
  end
end

---@param decision co.Decision
---@param extra? co.answer.Extra
local function answer(decision, extra)
  if shown then
    listener.answer(shown.id, decision, extra)
  end
end

--- Lets the person write a text about the question that is shown now.
---@param about { title: string, text: string, single: boolean }
---@param done fun(ask: co.Ask, text: string)
local function write_about(about, done)
  local ask = shown
  if not ask then
    return
  end
  require('co.entry').open(about, function(text)
    done(ask, text)
  end)
end

--- Answers the question that a text was written about; it may be gone by now.
---@param ask co.Ask
---@param decision co.Decision
---@param extra co.answer.Extra
local function answer_with(ask, decision, extra)
  if not listener.answer(ask.id, decision, extra) then
    require('co.notify').warn('nothing was sent: the question was withdrawn meanwhile')
  end
end

---@type table<string, fun()>
local actions = {
  y = function()
    answer('once')
  end,
  n = function()
    answer('deny')
  end,
  N = function()
    write_about({ title = 'No, because', text = '', single = true }, function(ask, reason)
      answer_with(ask, 'deny', { reason = reason ~= '' and reason or nil })
    end)
  end,
  a = function()
    turn('menu')
  end,
  e = function()
    if shown and shown.job then
      -- What was typed instead would be the model's text no longer: N tells it what to type.
      return
    end
    write_about(
      { title = 'Run instead', text = shown and shown.command or '', single = false },
      function(ask, command)
        if vim.trim(command) ~= '' then
          answer_with(ask, 'edited', { command = command })
        end
      end
    )
  end,
  d = function()
    large = not large
    redraw()
  end,
}

--- What a key does on the page that is shown.
---@param key string
local function press(key)
  if vim.uv.hrtime() - focused_at < SWALLOW_NS or not shown then
    return
  end
  if key == 'g?' then
    turn(page == 'help' and 'question' or 'help')
  elseif key == 'q' then
    if page == 'question' then
      listener.hide()
    else
      turn('question')
    end
  elseif page == 'menu' then
    for _, scope in ipairs(ask_text.scopes(shown)) do
      if scope.key == key then
        answer('always', { scope = scope.scope })
        return
      end
    end
  elseif page == 'question' and actions[key] then
    actions[key]()
  end
end

function M.make_buffer()
  buf = api.nvim_create_buf(false, true)
  local mine = buf
  vim.bo[buf].bufhidden = 'hide'
  vim.bo[buf].filetype = 'co-approval'
  for _, key in ipairs({ 'y', 'n', 'N', 'a', 'e', 'd', 'c', 'p', 's', 'E', 'g?', 'q' }) do
    vim.keymap.set('n', key, function()
      press(key)
    end, { buffer = buf, nowait = true, silent = true, desc = 'co: answer' })
  end
  vim.keymap.set('n', '<Esc>', function()
    press('q')
  end, { buffer = buf, nowait = true, silent = true, desc = 'co: hide' })
  vim.keymap.set('n', '<CR>', '<Nop>', { buffer = buf, nowait = true, desc = 'co: nothing' })
  api.nvim_create_autocmd({ 'WinEnter', 'WinLeave' }, {
    buffer = buf,
    callback = function(event)
      if event.event == 'WinEnter' then
        focused_at = vim.uv.hrtime()
      end
      -- On the way out the float is still the current window.
      vim.schedule(function()
        if open() then
          redraw()
        end
      end)
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
          listener.wiped()
        end)
      end
    end,
  })
end

return M
