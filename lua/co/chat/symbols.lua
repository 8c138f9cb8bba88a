--- Finds the names in a chat: goes to the definition of a name, and lists the names of an answer in the quickfix list.
local M = {}

local api = vim.api
local definitions = require('co.buffers.definitions')
local fence = require('co.chat.fence')
local locations = require('co.ui.locations')
local notify = require('co.ui.notify')
local printable = require('co.ui.printable')
local symbol_name = require('co.buffers.symbol_name')

-- The most definitions of one name, and the most names of one list.
local DEFINITIONS, NAMES = 50, 100
-- The most bytes of the name of a symbol or of a file with its line.
local LONGEST_WORD = 300
-- The longest time to wait for language servers for one list, in milliseconds.
local LONGEST = 10000

--- Returns a place as an entry of a quickfix list.
---@param place co.ServerPlace
---@param text string
---@return vim.quickfix.entry
local function entry(place, text)
  return { filename = place.file, lnum = place.row + 1, text = printable.line(text) }
end

--- Opens a place that a language server has told, with the cursor on it.
---@param place co.ServerPlace
local function open(place)
  local location = { path = place.file, line = place.row + 1 } ---@type co.Location
  locations.open(location)
  local line = api.nvim_get_current_line()
  local byte = place.character
  if place.unit ~= 'utf-8' then
    byte = vim.fn.byteidxcomp(line, place.character, place.unit == 'utf-16')
  end
  if api.nvim_buf_get_name(0) == place.file and byte > 0 then
    api.nvim_win_set_cursor(0, { api.nvim_win_get_cursor(0)[1], math.min(byte, #line) })
  end
end

--- Opens the file under the cursor, or goes to the definition of the name there. If the name has several definitions,
--- lists them in the quickfix list.
---@param cwd string relative paths are relative to it
---@param line boolean outside of code, a file that the line names with a position counts as under the cursor
function M.open(cwd, line)
  local at = api.nvim_win_get_cursor(0)
  local text = api.nvim_get_current_line()
  local _, marks = text:sub(1, at[2]):gsub('`', '')
  local find = line and marks % 2 == 0 and locations.find or locations.find_at
  local location = find(text, at[2] + 1, cwd)
  local name = symbol_name.at(text, at[2] + 1)
  if location then
    return locations.open(location)
  elseif not name then
    return notify.info('no file and no name under the cursor')
  end
  local win = api.nvim_get_current_win()
  definitions.find(name, DEFINITIONS, function(places, problem)
    local here = api.nvim_get_current_win() == win and api.nvim_win_get_cursor(win)
    if not places then
      notify.info(('no file and no definition of %s: %s'):format(name, problem))
    elseif #places > 1 or not vim.deep_equal(here, at) then
      -- The person does something else by now.
      locations.open_list(
        'Co: definitions of ' .. name,
        vim.tbl_map(function(place)
          return entry(place, name)
        end, places)
      )
    else
      open(places[1])
    end
  end)
end

--- Returns the words in lines of markdown that may name a file or a symbol: the code spans, and the words with a
--- position, such as `a.lua:3`. Leaves out code blocks.
---@param lines string[]
---@return { text: string, span: boolean }[]
local function words_of(lines)
  local found = {}
  local seen = {}
  local function add(text, span)
    if #found < NAMES and #text <= LONGEST_WORD and not seen[text] then
      seen[text] = true
      found[#found + 1] = { text = text, span = span }
    end
  end
  local inside
  for _, line in ipairs(lines) do
    local after = fence.after(inside, line)
    if not inside and not after then
      local at = 1 ---@type integer?
      while at do
        local start, stop, code = line:find('`([^`]+)`', at)
        for word in line:sub(at, start and start - 1):gmatch('%S+') do
          if word:find('[%w_][:(#]L?%d') then
            add(word, false)
          end
        end
        if code then
          add(printable.trim(code), true)
        end
        at = stop and stop + 1
      end
    end
    inside = after
  end
  return found
end

--- Returns the lines of the answer at a row, without those of its calls.
---@param text co.ChatText
---@param row integer
---@return string[]
local function answer_at(text, row)
  local first, after = 0, text:last_row() + 1
  for _, message in ipairs(text.messages:between()) do
    if message.row <= row then
      first = message.row
    else
      after = math.min(after, message.row)
    end
  end
  local lines = {}
  for _, call in ipairs(text:call_rows(first, after - 1)) do
    vim.list_extend(lines, api.nvim_buf_get_lines(text.buf, first, call.first, false))
    first = call.after
  end
  return vim.list_extend(lines, api.nvim_buf_get_lines(text.buf, first, after, false))
end

--- Fills the quickfix list with the files and symbols that an answer names. Uses the answer under the cursor, or else
--- the last answer.
---@param chat co.Chat
function M.list(chat)
  local at_cursor = api.nvim_get_current_buf() == chat.buf
  local row = at_cursor and api.nvim_win_get_cursor(0)[1] - 1 or chat.text:last_row()
  local words = words_of(answer_at(chat.text, row))
  local deadline = vim.uv.now() + LONGEST
  ---@type vim.quickfix.entry[]
  local entries = {}
  local function finish()
    if #entries == 0 then
      notify.info('the answer names no file and no symbol that a language server knows')
    else
      locations.open_list('Co: names of the answer', entries)
    end
  end
  ---@param index integer
  local function take(index)
    local word = words[index]
    if not word then
      return finish()
    end
    -- Looking for a file may take a millisecond. Keys are handled in between.
    local next_word = vim.schedule_wrap(function()
      take(index + 1)
    end)
    local location = locations.find(word.text, 1, chat.state.cwd)
    local name = word.span and symbol_name.whole(word.text)
    if location and vim.fn.isdirectory(location.path) == 0 then
      entries[#entries + 1] = {
        filename = location.path,
        lnum = location.line or 1,
        col = location.column,
        text = printable.line(word.text),
      }
    elseif name and vim.uv.now() < deadline then
      return definitions.find(name, DEFINITIONS, function(places)
        for _, place in ipairs(places or {}) do
          entries[#entries + 1] = entry(place, word.text)
        end
        next_word()
      end)
    end
    next_word()
  end
  take(1)
end

return M
