--- The messages in the text of a chat: the first row of each message, and its heading. Windows show a heading as a
--- rule.
---
--- In the buffer, a heading stays markdown. A window with a 'conceallevel' of 0 shows this markdown.
local M = {}

local api = vim.api
local config = require('co.config')

local marks = api.nvim_create_namespace('co.messages')

-- The names that rules show, by the headings of the speakers.
local SPEAKERS = { ['## You'] = 'You', ['## Co'] = 'co' }

---@class (exact) co.Messages
---@field buf integer
---@field times table<integer, integer> seconds since 1970, by the extmarks of messages
local Messages = {}
Messages.__index = Messages

---@type table<integer, co.Messages> by buffer
local all = setmetatable({}, { __mode = 'v' })

--- Returns an empty list of messages for a buffer.
---@param buf integer
---@return co.Messages
function M.new(buf)
  -- Neovim keeps extmarks of a buffer that it unloads.
  api.nvim_buf_clear_namespace(buf, marks, 0, -1)
  all[buf] = setmetatable({ buf = buf, times = {} }, Messages)
  return all[buf]
end

--- Adds messages. The buffer already has the rows of these messages.
---@param messages co.MessageRow[]
function Messages:add(messages)
  for _, message in ipairs(messages) do
    -- Text that is put above the first row moves it.
    local mark = api.nvim_buf_set_extmark(self.buf, marks, message.row, 0, { right_gravity = true })
    self.times[mark] = message.at
  end
end

--- Notes that a message begins with the text that follows in a row.
---@param row integer
---@param at? integer its time
function Messages:begin(row, at)
  local mark = api.nvim_buf_set_extmark(self.buf, marks, row, 0, { right_gravity = false })
  self.times[mark] = at
end

--- Returns the messages that begin among some rows, from top to bottom.
---@param first? integer
---@param last? integer
---@return co.MessageRow[]
function Messages:between(first, last)
  local from, to = { first or 0, 0 }, { last or -1, -1 }
  return vim.tbl_map(function(mark)
    return { row = mark[2], at = self.times[mark[1]] }
  end, api.nvim_buf_get_extmarks(self.buf, marks, from, to, {}))
end

--- Returns the time of a message in a few characters.
---@param at integer
---@return string
local function clock(at)
  local today = os.date('%Y-%m-%d') == os.date('%Y-%m-%d', at)
  return os.date(today and '%H:%M' or '%Y-%m-%d %H:%M', at) --[[@as string]]
end

--- Returns the rule that a window shows in place of a heading.
---@param speaker string
---@param at? integer the time of the message
---@param width integer
---@return [string, string][] chunks of virtual text
local function rule(speaker, at, width)
  local sign = config.get().ascii and '-' or '─'
  local head, tail = sign .. ' ', at and (' %s %s'):format(clock(at), sign) or ''
  local function room()
    local taken = api.nvim_strwidth(head .. speaker .. ' ' .. tail)
    return math.floor((width - taken) / api.nvim_strwidth(sign))
  end
  if room() < 1 then
    tail = ''
  end
  return {
    { head, 'CoRule' },
    { speaker, 'CoSpeaker' },
    { ' ' .. sign:rep(math.max(room(), 0)) .. tail, 'CoRule' },
  }
end

-- The messages among the rows that are being drawn, by their rows, and the cells of the window for text.
---@type table<integer, co.MessageRow>
local drawn = {}
local width = 0

---@param win integer
---@param buf integer
---@param first integer
---@param last integer
local function on_win(_, win, buf, first, last)
  local messages = all[buf]
  -- Most frames of an answer have no heading, and this runs for each.
  local shown = messages and messages:between(first, last) or {}
  if #shown == 0 or vim.wo[win].conceallevel == 0 then
    return false
  end
  drawn = {}
  for _, message in ipairs(shown) do
    drawn[message.row] = message
  end
  local info = vim.fn.getwininfo(win)[1]
  width = info.width - info.textoff
  return true
end

---@param buf integer
---@param row integer
local function on_line(_, _, buf, row)
  local message = drawn[row]
  local line = message and api.nvim_buf_get_lines(buf, row, row + 1, false)[1]
  local speaker = SPEAKERS[line]
  if message and speaker then
    api.nvim_buf_set_extmark(buf, marks, row, 0, {
      ephemeral = true,
      virt_text = rule(speaker, message.at, width),
      virt_text_win_col = 0,
      hl_mode = 'combine',
    })
  end
end

api.nvim_set_decoration_provider(marks, { on_win = on_win, on_line = on_line })

return M
