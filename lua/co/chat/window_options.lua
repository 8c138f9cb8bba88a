--- The options of the windows of a chat, and its winbar.
local M = {}

local backend = require('co.backend')
local config = require('co.config')
local winbar = require('co.chat.winbar')
local windows = require('co.ui.windows')

local COMMON = {
  wrap = true,
  linebreak = true,
  breakindent = true,
  number = false,
  relativenumber = false,
  signcolumn = 'no',
  spell = false,
}

--- Returns the winbar of a window that shows the text of a chat, if there is room for one.
---@param chat co.Chat
---@param win integer
---@return string
local function winbar_of(chat, win)
  if not windows.fits_winbar(win) then
    return ''
  end
  local info = vim.fn.getwininfo(win)[1]
  local cwd = vim.fn.getcwd(info.winnr, info.tabnr)
  return winbar.text(chat.state, backend.status().isolation, info.width, cwd)
end

--- Sets the options of a window that shows the text of a chat.
---@param chat co.Chat
---@param win integer
function M.set_for_text(chat, win)
  windows.options(win, COMMON)
  windows.options(win, {
    foldmethod = 'manual',
    -- A closed fold shows its first line, which is a call or says how many lines follow.
    foldtext = '',
    foldminlines = 0,
    fillchars = 'fold: ',
    smoothscroll = true,
    breakindentopt = 'list:-1',
    conceallevel = config.get().chat_conceal and 2 or vim.go.conceallevel,
    foldenable = true,
    winbar = winbar_of(chat, win),
  })
end

--- Sets the options of a window that shows a prompt. A file does not belong into such a small window.
---@param win integer
function M.set_for_prompt(win)
  windows.options(win, COMMON)
  windows.options(
    win,
    { conceallevel = 0, winfixheight = true, winfixbuf = true, foldenable = false }
  )
end

-- The state of each chat that the statuslines show.
---@type table<co.Chat, co.StateName>
local drawn = setmetatable({}, { __mode = 'k' })

--- Updates the winbar of each window that shows the chat. Updates the statuslines only if the state has changed,
--- because a chat may report its tokens many times a second.
---@param chat co.Chat
function M.update_winbar(chat)
  for _, win in ipairs(vim.fn.win_findbuf(chat.buf)) do
    local text = winbar_of(chat, win)
    if vim.wo[win].winbar ~= text then
      windows.options(win, { winbar = text })
    end
  end
  if drawn[chat] ~= chat.state.state then
    drawn[chat] = chat.state.state
    vim.cmd('redrawstatus!')
  end
end

return M
