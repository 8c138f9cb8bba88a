--- The title and the footer of the approval float.
local M = {}

local api = vim.api

--- Returns the key that the person mapped to the float.
---@return string
local function focus_key()
  for _, map in ipairs(api.nvim_get_keymap('n')) do
    if map.rhs == '<Plug>(co-approve)' then
      return map.lhs --[[@as string]]
    end
  end
  return ':Co /approve'
end

--- Returns the keys of the list, long and brief.
---@param approved integer[]
---@return string long
---@return string brief
local function list_keys(approved)
  local yes = #approved > 0 and (' y yes to %d ·'):format(#approved) or ''
  return yes .. ' gN no to all commands · q back ', yes .. ' gN no to all · q back '
end

--- Returns the keys of a question, long and brief.
---@param state co.float.State
---@return string long
---@return string brief
local function question_keys(state)
  local question = state.question --[[@as co.Question]]
  local long, brief = question.kind.footer(question)
  if state.total > 1 then
    long, brief = long .. ' · Y list', brief .. ' Y'
  end
  local d = question.kind.d and question.kind.d(question) or 'all'
  return (' %s · d %s · g? '):format(long, d), (' %s d g? '):format(brief)
end

--- Returns the footer: the keys that work now.
---@param state co.float.State
---@param focused boolean
---@param width integer
---@return string
function M.footer(state, focused, width)
  if state.held then
    return ' <CR> next question '
  elseif state.finishing or not state.question then
    return ''
  elseif not focused then
    return (' %s to answer '):format(focus_key())
  elseif state.page ~= 'list' and state.page ~= 'question' then
    return ''
  end
  local long, brief
  if state.page == 'list' then
    long, brief = list_keys(state.approved)
  else
    long, brief = question_keys(state)
  end
  return vim.fn.strdisplaywidth(long) <= width and long or brief
end

--- Returns the title.
---@param state co.float.State
---@param hidden number lines that do not fit
---@return string
function M.title(state, hidden)
  if state.held then
    return (' co · %d more '):format(state.total)
  elseif state.finishing then
    return ' co · nothing waits '
  elseif state.page == 'list' or state.page == 'list_help' then
    local text = (' co · %d questions '):format(state.total)
    return hidden > 0 and ('%s· %d more lines '):format(text, hidden) or text
  end
  local question = state.question
  local about = question and ('%s · #%d'):format(question.kind.title(question), question.number)
    or ''
  local text = (' co 1/%d · %s '):format(state.total, about)
  return hidden > 0 and ('%s· d: %d more lines '):format(text, hidden) or text
end

return M
