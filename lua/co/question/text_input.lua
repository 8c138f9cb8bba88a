--- A small window in which the person writes a text: a reason, or another command.
local M = {}

local api = vim.api
local guarded = require('co.ui.guarded')
local printable = require('co.ui.printable')

---@class (exact) co.entry.About
---@field title string
---@field text string the initial text
---@field single boolean one line: `<CR>` submits it in insert mode too
---@field submits? string what `<C-s>` does with text that is no command
---@field syntax? string of text that is no command; it is kept as it is, white space too

--- Opens the window and puts the cursor into it. `done` gets the text; it is not called if the person cancels.
---@param about co.entry.About
---@param done fun(text: string)
function M.open(about, done)
  local lines = vim.split(about.text, '\n', { plain = true })
  local buf = api.nvim_create_buf(false, true)
  vim.bo[buf].bufhidden = 'wipe'
  guarded.set_option(
    buf,
    'filetype',
    about.single and 'co-reason' or about.syntax and 'co-lines' or 'co-command'
  )
  guarded.set_option(buf, 'syntax', about.single and '' or about.syntax or 'sh')
  vim.bo[buf].modifiable = true
  api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  local back = api.nvim_get_current_win()
  local width = math.max(1, math.min(80, vim.o.columns - 2))
  local height = math.min(math.max(#lines, about.single and 1 or 3), math.max(1, vim.o.lines - 6))
  local win = guarded.open_window(buf, true, {
    relative = 'editor',
    anchor = 'SE',
    row = vim.o.lines - vim.o.cmdheight - 1,
    col = vim.o.columns,
    width = width,
    height = height,
    border = 'rounded',
    title = (' %s '):format(about.title),
    footer = about.single and ' <CR> sends · <Esc>q gives up '
      or (' <C-s> %s · <Esc>q gives up '):format(
        about.submits or about.syntax and 'takes it' or 'runs it'
      ),
    footer_pos = 'right',
    zindex = 70,
    style = 'minimal',
  })
  vim.wo[win].wrap = true
  local finished = false
  ---@param text? string
  local function finish(text)
    if finished then
      return
    end
    finished = true
    vim.cmd.stopinsert()
    if api.nvim_win_is_valid(win) then
      guarded.close_window(win, true)
    end
    if api.nvim_win_is_valid(back) then
      guarded.go_to_window(back)
    end
    if text then
      done(text)
    end
  end
  local function submit()
    local text = table.concat(api.nvim_buf_get_lines(buf, 0, -1, false), '\n')
    finish(about.syntax and text or printable.trim(text))
  end
  local function map(modes, lhs, action)
    vim.keymap.set(modes, lhs, action, { buffer = buf, nowait = true, silent = true })
  end
  map({ 'n', 'i' }, '<C-s>', submit)
  map('n', '<CR>', submit)
  if about.single then
    map('i', '<CR>', submit)
  end
  map('n', 'q', function()
    finish(nil)
  end)
  map({ 'n', 'i' }, '<C-c>', function()
    finish(nil)
  end)
  if about.single then
    vim.cmd.startinsert()
  end
end

return M
