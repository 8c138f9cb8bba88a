--- The text of the winbar of a chat.
local M = {}

local gate = require('co.ui.gate')
local printable = require('co.ui.printable')

local SEPARATOR = ' · '
-- The most cells of a title, and the fewest to which the model and the title are shortened.
local LONGEST_TITLE = 30
local LEAST = { model = 8, title = 18 }

local WAITS = 'waits for your command'
local signs = {
  idle = 'ready',
  thinking = 'thinking',
  streaming = 'answering',
  asking = 'asks you',
  running = 'running',
  retrying = 'retrying',
}

--- Returns a number of tokens in a short form.
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
  local text = waits and WAITS or signs[state.state] or state.state
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
  text = printable.line(text)
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

--- Shortens the model, then the title, until the parts fit, but neither to less than its least width.
---@param parts string[]
---@param at { model?: integer, title?: integer } indices into the parts
---@param width integer
local function fit(parts, at, width)
  if at.model and cells(parts) > width then
    -- The name of the provider says least.
    parts[at.model] = parts[at.model]:match('^[^/]+/(.+)$') or parts[at.model]
  end
  for _, name in ipairs({ 'model', 'title' }) do
    local index = at[name]
    local excess = index and cells(parts) - width or 0
    if index and excess > 0 then
      local wanted = vim.api.nvim_strwidth(parts[index]) - excess
      parts[index] = M.shorten(parts[index], math.max(LEAST[name], wanted))
    end
  end
end

--- Returns the text of the winbar: the activity and the title first. In a narrow window it shortens the model, then the
--- title; Neovim then cuts the start of the directory, then the end.
---@param state co.State
---@param isolation? string
---@param width integer of the window
---@return string
function M.text(state, isolation, width)
  local parts = { M.activity(state) }
  ---@type { model?: integer, title?: integer }
  local at = {}
  if state.everything then
    parts[#parts + 1] = 'ASKS NOTHING'
  end
  if state.title and state.title ~= '' then
    parts[#parts + 1] = M.shorten(state.title, LONGEST_TITLE)
    at.title = #parts
  end
  if state.model and state.model ~= '' then
    parts[#parts + 1] = state.model
    at.model = #parts
  end
  if state.input + state.output > 0 then
    local used = ('%s in %s out'):format(tokens(state.input), tokens(state.output))
    parts[#parts + 1] = state.cost and ('%s $%.2f'):format(used, state.cost) or used
  end
  if state.window_used then
    parts[#parts + 1] = ('window %d%%'):format(state.window_used)
  end
  local confinement = state.confinement ~= '' and state.confinement or nil
  if confinement then
    parts[#parts + 1] = 'approved: ' .. confinement
    if isolation and isolation ~= '' then
      parts[#parts + 1] = isolation
    end
  end
  parts[#parts + 1] = printable.path(state.cwd)
  parts = vim.tbl_map(printable.line, parts)
  fit(parts, at, width)
  for index, part in ipairs(parts) do
    parts[index] = part:gsub('%%', '%%%%')
  end
  parts[#parts] = '%<' .. parts[#parts]
  return ' ' .. table.concat(parts, SEPARATOR)
end

return M
