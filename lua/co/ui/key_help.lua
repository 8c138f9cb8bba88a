--- The lists of keys that `g?` shows.
local M = {}

local popup = require('co.ui.popup')

-- Each action with its description.
local actions = {
  chat = {
    { 'submit', 'send the prompt' },
    { 'send', 'send the prompt, from insert mode too; again: into the running turn' },
    { 'cancel', 'cancel the turn; again: what is queued' },
    { 'hide', 'hide the chat; in the prompt, q records a macro' },
    { 'next', 'next message' },
    { 'previous', 'previous message' },
    { 'next_call', 'next call' },
    { 'previous_call', 'previous call' },
    { 'target', 'open the file of the call under the cursor, at its line, else its output' },
    { 'output', 'open the output of the call under the cursor' },
    { 'open', 'open the file:line under the cursor' },
    { 'yank', 'yank the code block' },
    { 'plan', 'ask for a plan with this prompt; again: do not' },
  },
  shell = {
    { 'cancel', 'cancel the run under the cursor' },
    { 'hide', 'hide the window' },
    { 'background', 'continue the run in the background' },
    { 'again', 'run it again' },
    { 'next', 'next run' },
    { 'previous', 'previous run' },
    { 'open', 'open the file:line under the cursor' },
    { 'quickfix', "the run's locations into the quickfix list" },
  },
  jobs = {
    { 'open', 'go to its output' },
    { 'tail', 'show the end of its output, and stay there' },
    { 'cancel', 'cancel it' },
    { 'quickfix', 'its locations into the quickfix list' },
    { 'write', 'write a line to its standard input' },
    { 'close', 'close its standard input' },
    { 'keep', 'keep a job running after its chat closes; again: undo that' },
    { 'delete', 'remove a finished one from the list' },
    { 'hide', 'hide the list' },
  },
}

--- Returns the lines of the list.
---@param place 'chat'|'shell'|'jobs'
---@param keys table<string, string|string[]|false> the keys of each action
---@return string[]
local function lines_of(place, keys)
  local lines = {}
  for _, entry in ipairs(actions[place]) do
    local lhs = keys[entry[1]]
    if lhs then
      local shown = type(lhs) == 'table' and table.concat(lhs, ' ') or lhs --[[@as string]]
      lines[#lines + 1] = (' %-10s %s '):format(shown, entry[2])
    end
  end
  if place == 'chat' then
    lines[#lines + 1] = (' %-10s %s '):format('<Up>', 'earlier prompts, in an empty prompt')
  end
  return lines
end

--- Shows the keys of a buffer in a float, which has the focus until it is closed.
---@param place 'chat'|'shell'|'jobs'
---@param keys table<string, string|string[]|false> the keys of each action
function M.show(place, keys)
  popup.enter(lines_of(place, keys), ' co · q closes ', keys.help)
end

return M
