--- The text of the winbar of a chat.
local M = {}

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
  local text = signs[state.state] or state.state
  if state.detail and state.detail ~= '' then
    text = text .. (state.state == 'retrying' and ' ' or ': ') .. state.detail
  end
  if state.queued and state.queued > 0 then
    text = ('%s (%d queued)'):format(text, state.queued)
  end
  return text
end

--- Returns the text of the winbar: the activity first. A narrow window cuts the start of the directory, then the end.
---@param state co.State
---@param isolation? string
---@return string
function M.text(state, isolation)
  local parts = { M.activity(state) }
  if state.everything then
    parts[#parts + 1] = 'ASKS NOTHING'
  end
  if state.model and state.model ~= '' then
    parts[#parts + 1] = state.model
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
    parts[#parts + 1] = 'approved: '
      .. (confinement == 'subprocess' and 'unconfined' or confinement)
    if isolation and isolation ~= '' then
      parts[#parts + 1] = isolation
    end
  end
  parts[#parts + 1] = vim.fn.fnamemodify(state.cwd, ':~')
  for index, part in ipairs(parts) do
    parts[index] = part:gsub('%%', '%%%%')
  end
  parts[#parts] = '%<' .. parts[#parts]
  return ' ' .. table.concat(parts, ' · ')
end

return M
