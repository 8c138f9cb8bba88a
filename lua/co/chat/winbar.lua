--- The text of the winbar of a chat.
local M = {}

local config = require('co.config')
local gate = require('co.ui.gate')
local printable = require('co.ui.printable')

local SEPARATOR = ' · '
-- The largest number of cells of a title, and the smallest number to which the title is shortened.
local LONGEST_TITLE, LEAST_TITLE = 30, 8
-- The confinement of commands that run unasked, if the kernel confines them.
local USUAL_ISOLATION = 'unasked: read-only'

local WAITS = 'waits for your command'
local words = {
  idle = 'ready',
  thinking = 'thinking',
  streaming = 'answering',
  asking = 'asks you',
  running = 'running',
  retrying = 'retrying',
}

--- Returns the word for the state of a chat.
---@param state co.StateName
---@return string
function M.word(state)
  return words[state] or state
end

--- Returns a count of tokens in a short form, such as '12k'.
---@param count integer
---@return string
local function tokens(count)
  if count >= 1000000 then
    return ('%.1fM'):format(count / 1000000)
  elseif count >= 10000 then
    return ('%dk'):format(math.floor(count / 1000))
  elseif count >= 1000 then
    return ('%.1fk'):format(count / 1000)
  end
  return tostring(count)
end

--- Returns the activity of a chat.
---@param state co.State
---@return string
function M.activity(state)
  local waits = state.chat and gate.delays(state.chat)
  local text = waits and WAITS or M.word(state.state)
  if state.detail and state.detail ~= '' then
    text = text .. (state.state == 'retrying' and ' ' or ': ') .. state.detail
  end
  local waiting = {}
  for _, kind in ipairs({ 'steering', 'queued' }) do
    local count = state[kind] or 0
    waiting[#waiting + 1] = count > 0 and ('%d %s'):format(count, kind) or nil
  end
  return #waiting > 0 and ('%s (%s)'):format(text, table.concat(waiting, ', ')) or text
end

--- Returns a text with the number of changes without an answer and their time, and the same text without the time.
---@param open co.OpenSummary
---@return string
---@return string
local function open_changes(open)
  local text = ('%d %s in %d %s'):format(
    open.changes,
    open.changes == 1 and 'change' or 'changes',
    open.files,
    open.files == 1 and 'file' or 'files'
  )
  if not open.since then
    return text, text
  end
  local today = os.date('%x', open.since) == os.date('%x')
  return ('%s since %s'):format(text, os.date(today and '%H:%M' or '%d %b', open.since)), text
end

--- Returns the number of cells that the parts take.
---@param parts string[]
---@return integer
local function cells(parts)
  return vim.api.nvim_strwidth(' ' .. table.concat(parts, SEPARATOR))
end

--- Shortens a part to at most so many cells.
---@param text string
---@param limit integer
---@return string
function M.shorten(text, limit)
  text = printable.label(text)
  if vim.api.nvim_strwidth(text) <= limit then
    return text
  end
  -- Most characters take a cell or more.
  local start = vim.fn.strcharpart(text, 0, limit)
  local count = vim.fn.strchars(start)
  while count > 0 and vim.api.nvim_strwidth(start) >= limit do
    count = count - 1
    start = vim.fn.strcharpart(start, 0, count)
  end
  return start .. '…'
end

--- Removes parts from the end until the other parts fit. Shortens the title, if that is enough, instead of removing it.
---@param parts string[] the most important one first
---@param title? integer index of the title
---@param width integer
local function fit(parts, title, width)
  while cells(parts) > width and #parts > 1 do
    local excess = cells(parts) - width
    local room = title == #parts and vim.api.nvim_strwidth(parts[#parts]) - excess or 0
    if room >= LEAST_TITLE then
      parts[#parts] = M.shorten(parts[#parts], room)
      return
    end
    parts[#parts] = nil
  end
end

--- Returns the text of the winbar: the activity, what is not as usual, the title, what the chat costs, and the model and the
--- directory if they are not the usual ones. In a narrow window, the last ones are left out.
---@param state co.State
---@param isolation? string
---@param width integer of the window
---@param cwd string the directory of the window
---@return string
function M.text(state, isolation, width, cwd)
  local parts = { M.activity(state) }
  vim.list_extend(parts, state.unusual or {})
  if state.open then
    local long, short = open_changes(state.open)
    parts[#parts + 1] = long
    parts[#parts] = cells(parts) > width and short or long
  end
  if state.plan then
    parts[#parts + 1] = ('plan %d/%d'):format(state.plan.done, state.plan.steps)
  end
  if state.mode then
    parts[#parts + 1] = 'mode ' .. state.mode
  end
  if state.confinement ~= '' and state.confinement ~= 'unconfined' then
    parts[#parts + 1] = 'approved: ' .. state.confinement
  end
  if isolation and isolation ~= '' and isolation ~= USUAL_ISOLATION then
    parts[#parts + 1] = isolation
  end
  local title
  if state.title and state.title ~= '' then
    parts[#parts + 1] = M.shorten(state.title, LONGEST_TITLE)
    title = #parts
  end
  if state.input + state.output > 0 then
    local used = ('%s in %s out'):format(tokens(state.input), tokens(state.output))
    local bound = state.at_least and (config.get().ascii and '>= ' or '≥ ') or ''
    parts[#parts + 1] = state.cost and ('%s %s$%.2f'):format(used, bound, state.cost) or used
  end
  if state.window_used then
    parts[#parts + 1] = ('window %d%%'):format(state.window_used)
  end
  if state.chosen and state.model ~= '' then
    parts[#parts + 1] = state.model
  end
  if state.cwd ~= cwd then
    parts[#parts + 1] = printable.path(state.cwd)
  end
  parts = vim.tbl_map(printable.label, parts)
  fit(parts, title, width)
  return ' ' .. table.concat(parts, SEPARATOR):gsub('%%', '%%%%') .. '%<'
end

return M
