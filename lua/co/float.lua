--- The window of the approval float: where it is, what it shows, which keys it has.
---
--- Knows one question at a time, whose kind gives it text and keys; the queue is `co.approve`'s.
local M = {}

local api = vim.api
local highlight = require('co.highlight')

local spans = api.nvim_create_namespace('co.approval')

local SWALLOW_NS = 250 * 1000000

---@class (exact) co.float.Listener
---@field hide fun()
---@field wiped fun() the buffer is gone
---@field closed fun(tab: integer) the window was closed, by the person or with its tab page

---@type co.float.Listener
local listener
-- -1 is none: unlike 0 and nil, it is no buffer and no window to Neovim.
local buf, win = -1, -1
---@type co.Question?
local shown
---@type co.QuestionPage
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
  elseif page ~= 'question' or not shown then
    return ''
  end
  local long, brief = shown.kind.footer(shown)
  long, brief = (' %s · d all · g? '):format(long), (' %s d g? '):format(brief)
  return vim.fn.strdisplaywidth(long) <= width and long or brief
end

---@param hidden number lines that do not fit
---@return string
local function title(hidden)
  local text = (' co 1/%d · %s '):format(total, shown and shown.kind.title(shown) or '')
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

---@param ask co.Question
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
  local text = shown.kind.text(shown, page)
  write(text)
  if open() then
    api.nvim_win_set_config(win, geometry(text.lines))
  end
end

--- Shows another page, from its top.
---@param to co.QuestionPage
function M.turn(to)
  page = to
  redraw()
  if open() then
    api.nvim_win_set_cursor(win, { 1, 0 })
  end
end

---@param ask co.Question
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
---@param ask co.Question
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
  local text = ask.kind.text(ask, page)
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

--- The keys that every kind of question has.
---@type table<string, fun()>
local common = {
  ['g?'] = function()
    M.turn(page == 'help' and 'question' or 'help')
  end,
  q = function()
    if page == 'question' then
      listener.hide()
    else
      M.turn('question')
    end
  end,
  d = function()
    if page == 'question' then
      large = not large
      redraw()
    end
  end,
}

--- Does what a key means on the page that is shown.
---@param key string
local function press(key)
  if vim.uv.hrtime() - focused_at < SWALLOW_NS or not shown then
    return
  end
  local own = (shown.kind.keys[page] or {})[key]
  if own then
    own(shown)
  elseif common[key] then
    common[key]()
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
