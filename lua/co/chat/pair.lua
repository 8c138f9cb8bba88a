--- The two windows of a chat in a tab page: its text above, its prompt below.
---
--- They open, move and close together. The height of the prompt follows its text.
local M = {}

local api = vim.api
local buffer = require('co.ui.buffer')
local folds = require('co.ui.folds')
local guarded = require('co.ui.guarded')
local log = require('co.ui.log')
local textlock = require('co.ui.textlock')
local window_options = require('co.chat.window_options')
local window_size = require('co.chat.window_size')
local windows = require('co.ui.windows')

-- The smallest and the largest share of the height of both windows that the prompt takes.
local LEAST, MOST = 0.1, 0.4
-- The rows of the border of a float.
local BORDER = 2

-- True while this module closes or replaces both windows of a chat.
local changing = false

--- Returns the two windows in a tab page.
---@param chat co.Chat
---@param tab? integer the current one by default
---@return integer? text
---@return integer? prompt
function M.find(chat, tab)
  return windows.showing(chat.buf, tab)[1], windows.showing(chat.prompt.buf, tab)[1]
end

--- Returns whether the prompt is directly below the text.
---@param chat co.Chat
---@return boolean
local function together(chat)
  local texts, prompts = windows.showing(chat.buf), windows.showing(chat.prompt.buf)
  if #texts ~= 1 or #prompts ~= 1 then
    -- The person split one of the two.
    return #texts > 0 and #prompts > 0
  end
  local text, prompt = texts[1], prompts[1]
  local upper, lower = api.nvim_win_get_position(text), api.nvim_win_get_position(prompt)
  return windows.is_float(text) and windows.is_float(prompt)
    or upper[1] + api.nvim_win_get_height(text) + 1 == lower[1]
      and upper[2] == lower[2]
      and api.nvim_win_get_width(text) == api.nvim_win_get_width(prompt)
end

--- Runs `change`, which closes or replaces both windows of a chat.
---@param change fun()
local function change_both(change)
  changing = true
  local done, problem = pcall(change)
  changing = false
  if not done then
    error(problem, 0)
  end
end

--- Closes all windows of a chat in a tab page.
---@param chat co.Chat
---@param tab? integer the current one by default
function M.close(chat, tab)
  change_both(function()
    for _, buf in ipairs({ chat.prompt.buf, chat.buf }) do
      for _, win in ipairs(windows.showing(buf, tab)) do
        windows.hide(win)
      end
    end
  end)
end

--- Scrolls a text to its end if its cursor is there: Neovim keeps its first line when the height changes.
---@param text integer
local function show_end(text)
  if api.nvim_win_get_cursor(text)[1] == api.nvim_buf_line_count(api.nvim_win_get_buf(text)) then
    folds.scroll_back(text)
  end
end

--- Returns the number of rows of both windows together, and their width.
---@param text integer
---@param prompt integer
---@return { rows: integer, width: integer }
local function room_of(text, prompt)
  local rows = api.nvim_win_get_height(text) + api.nvim_win_get_height(prompt)
  return { rows = rows, width = api.nvim_win_get_width(prompt) }
end

--- Sets the height of the prompt. The other window gets the rest.
---@param chat co.Chat
function M.fit(chat)
  local text, prompt = M.find(chat)
  if not text or not prompt then
    return
  end
  local float = windows.is_float(text) and windows.float_area()
  local room = float and float.height - BORDER or room_of(text, prompt).rows
  local least, most = math.floor(room * LEAST), math.floor(room * MOST)
  local wanted = api.nvim_win_text_height(prompt, {}).all
  wanted = math.max(1, least, math.min(wanted, most)) --[[@as integer]]
  local before = api.nvim_win_get_height(text)
  windows.follow(chat.buf, function()
    if float then
      local height = math.max(1, room - wanted)
      local place = { relative = 'editor', col = float.col, width = float.width }
      api.nvim_win_set_config(
        text,
        vim.tbl_extend('force', place, { row = float.row, height = height })
      )
      local below = float.row + height + BORDER
      api.nvim_win_set_config(
        prompt,
        vim.tbl_extend('force', place, { row = below, height = wanted })
      )
    elseif wanted ~= api.nvim_win_get_height(prompt) then
      windows.options(prompt, { winfixheight = false })
      -- The rows come from the next window and go to it.
      windows.set_height(text, room - wanted)
      windows.options(prompt, { winfixheight = true })
    end
  end)
  if api.nvim_win_get_height(text) ~= before then
    show_end(text)
  end
  vim.w[prompt].co_room = room_of(text, prompt)
end

--- Sets the height of the prompt if both windows together have another size. The person may have moved the line between
--- the two.
---@param chat co.Chat
---@param text integer
---@param prompt integer
local function fit_to_room(chat, text, prompt)
  if not vim.deep_equal(vim.w[prompt].co_room, room_of(text, prompt)) then
    M.fit(chat)
  end
end

--- Moves the window without the cursor to the window with the cursor, because the person moved the window with the
--- cursor.
---@param text integer
---@param prompt integer
local function join(text, prompt)
  if api.nvim_get_current_win() == prompt then
    windows.move(text, prompt, 'above')
  else
    windows.move(prompt, text, 'below')
  end
end

--- Opens the missing window in the current tab page. If both windows are open, moves them together.
---@param chat co.Chat
function M.mend(chat)
  local text, prompt = M.find(chat)
  local ends = not buffer.alive(chat.buf) or not buffer.alive(chat.prompt.buf)
  if ends or not text and not prompt or together(chat) then
    return
  elseif text and prompt then
    join(text, prompt)
  elseif text then
    prompt = windows.open_beside(chat.prompt.buf, text, 'below')
  elseif prompt then
    text = windows.open_beside(chat.buf, prompt, 'above')
  end
  window_options.set_for_text(chat, text --[[@as integer]])
  window_options.set_for_prompt(prompt --[[@as integer]])
  M.fit(chat)
end

--- Opens both windows in the current tab page.
---@param chat co.Chat
---@param layout string
---@return integer text
function M.open(chat, layout)
  local text = windows.open(chat.buf, layout)
  local opened, problem = pcall(M.mend, chat)
  if not opened then
    M.close(chat)
    error(problem, 0)
  end
  window_size.note()
  return text
end

--- Shows a chat in the windows of another one in the current tab page.
---@param old co.Chat
---@param new co.Chat
---@return integer text
function M.replace(old, new)
  local text, prompt = M.find(old)
  ---@cast text integer
  ---@cast prompt integer
  change_both(function()
    guarded.set_buf(text, new.buf)
    windows.options(prompt, { winfixbuf = false })
    guarded.set_buf(prompt, new.prompt.buf)
  end)
  window_options.set_for_text(new, text)
  window_options.set_for_prompt(prompt)
  M.fit(new)
  return text
end

--- Returns whether the tab page shows nothing but the chat.
---@param chat co.Chat
---@return boolean
local function alone(chat)
  for _, win in ipairs(api.nvim_tabpage_list_wins(0)) do
    local buf = api.nvim_win_get_buf(win)
    if not windows.is_float(win) and buf ~= chat.buf and buf ~= chat.prompt.buf then
      return false
    end
  end
  return true
end

--- Closes the other window of the chat in each tab page where the person closed one window or shows another buffer in
--- it.
---@param chat co.Chat
---@param left table<integer, integer> the windows that were left, and their tab pages
local function close_rest(chat, left)
  for win, tab in pairs(left) do
    local still = api.nvim_win_is_valid(win) and api.nvim_win_get_buf(win)
    if still ~= chat.buf and still ~= chat.prompt.buf and api.nvim_tabpage_is_valid(tab) then
      local text, prompt = M.find(chat, tab)
      if not text or not prompt then
        M.close(chat, tab)
      end
    end
  end
end

--- Returns a function that schedules a call of `act`. While a call is scheduled, the function does nothing.
---@param act fun()
---@return fun()
local function soon(act)
  local due = false
  return function()
    if due then
      return
    end
    due = true
    vim.schedule(function()
      textlock.when_unlocked(function()
        due = false
        local ok, problem = pcall(act)
        if not ok then
          log.add('chat windows', tostring(problem))
        end
      end)
    end)
  end
end

--- Prepares for `:quit`, which must close both windows of the chat. If the tab page shows only the chat, closes all
--- windows except the current one.
---
--- If Neovim does not quit, the other window opens again.
---@param chat co.Chat
local function before_quit(chat)
  if alone(chat) then
    local here = api.nvim_get_current_win()
    for _, win in ipairs(api.nvim_tabpage_list_wins(0)) do
      if win ~= here and not windows.is_float(win) then
        guarded.close_window(win)
      end
    end
  end
end

--- Keeps the windows of a chat together until its autocommand group is cleared.
---@param chat co.Chat
---@param group integer
function M.watch(chat, group)
  ---@type table<integer, integer>
  local left = {}
  local settle = soon(function()
    local windows_left = left
    left = {}
    close_rest(chat, windows_left)
    M.mend(chat)
  end)
  local function on(events, buffers, callback)
    for _, buf in ipairs(buffers) do
      api.nvim_create_autocmd(events, { group = group, buffer = buf, callback = callback })
    end
  end
  local both, text, prompt = { chat.buf, chat.prompt.buf }, { chat.buf }, { chat.prompt.buf }
  on({ 'BufWinEnter', 'WinEnter' }, both, settle)
  on('QuitPre', both, function()
    before_quit(chat)
  end)
  on('WinClosed', both, function(event)
    local win = tonumber(event.match) --[[@as integer]]
    -- A window that another one closes, such as with `:only`, opens again.
    local by_person = win == api.nvim_get_current_win() and not changing
    left[win] = by_person and api.nvim_get_current_tabpage() or nil
    settle()
  end)
  on('BufLeave', text, function()
    left[api.nvim_get_current_win()] = not changing and api.nvim_get_current_tabpage() or nil
    settle()
  end)
  on({ 'TextChanged', 'TextChangedI' }, prompt, function()
    M.fit(chat)
  end)
  local function everywhere(events, callback)
    api.nvim_create_autocmd(events, {
      group = group,
      callback = function()
        local text_win, prompt_win = M.find(chat)
        if text_win and prompt_win then
          callback(text_win, prompt_win)
        end
      end,
    })
  end
  everywhere({ 'VimResized', 'TabEnter' }, function(text_win)
    window_size.restore()
    M.fit(chat)
    show_end(text_win)
  end)
  everywhere('WinResized', function(text_win, prompt_win)
    window_size.note()
    fit_to_room(chat, text_win, prompt_win)
    window_options.update_winbar(chat)
  end)
  -- No other event tells of a window that changed its place and not its size, as with CTRL-W r.
  everywhere('SafeState', function()
    if not together(chat) then
      settle()
    end
  end)
end

return M
