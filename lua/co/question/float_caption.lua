--- The title and the footer of the approval float.
local M = {}

local api = vim.api
local answer_keys = require('co.question.answer_keys')
local config = require('co.config')
local float_keys = require('co.question.float_keys')
local printable = require('co.ui.printable')
local question_text = require('co.question.float_text')

-- The most bytes of the name of a file in the title.
local LONGEST_NAME = 80

--- Returns the key that the person mapped to a `<Plug>`.
---@param name string such as `approve`
---@return string?
local function mapped_key(name)
  for _, map in ipairs(api.nvim_get_keymap('n')) do
    if map.rhs == ('<Plug>(co-%s)'):format(name) then
      return map.lhs --[[@as string]]
    end
  end
end

--- Returns the keys that work while the float does not have the focus, long and brief.
---@param question co.Question
---@param whole boolean the whole question is visible
---@return string long
---@return string brief
local function keys_from_elsewhere(question, whole)
  local approve = ('%s to answer'):format(mapped_key('approve') or ':Co /approve')
  local opted_in = config.get().question_keys
  local entries = {}
  local only_there = not whole or question.kind.alone(question)
  for _, answer in ipairs(only_there and {} or { 'yes', 'no' }) do
    local key = opted_in and answer_keys.keys[answer] or mapped_key(answer)
    if key then
      entries[#entries + 1] = ('%s %s'):format(key, answer)
    end
  end
  local brief = #entries > 0 and table.concat(entries, ' · ') or approve
  entries[#entries + 1] = approve
  return (' %s '):format(table.concat(entries, ' · ')), (' %s '):format(brief)
end

--- Returns the keys of the list, long and brief.
---@param approved integer[]
---@return string long
---@return string brief
local function list_keys(approved)
  local function keys(deny)
    local entries = { { 'gN', deny }, { 'q', 'back' } }
    if #approved > 0 then
      table.insert(entries, 1, { 'y', ('yes to %d'):format(#approved) })
    end
    return (' %s '):format((question_text.footer(entries)))
  end
  return keys('no to all commands'), keys('no to all')
end

--- Returns the keys of a question, long and brief.
---@param question co.Question
---@param several boolean several questions wait
---@return string long
---@return string brief
local function question_keys(question, several)
  local entries = { { 'd', question.kind.d(question) }, { 'g?', '' } }
  if several then
    table.insert(entries, 1, { 'Y', 'list' })
  end
  local long, brief = question.kind.footer(question)
  local more_long, more_brief = question_text.footer(entries)
  return (' %s · %s '):format(long, more_long), (' %s %s '):format(brief, more_brief)
end

--- Returns the longer text if it fits.
---@param width integer
---@param long string
---@param brief string
---@return string
local function fitting(width, long, brief)
  return vim.fn.strdisplaywidth(long) <= width and long or brief
end

--- The state of the window.
---@class (exact) co.float_caption.Window
---@field focused boolean
---@field whole boolean the whole question is visible
---@field width integer

--- Returns the footer: the keys that work now.
---@param phase co.float.Phase
---@param page co.Page
---@param window co.float_caption.Window
---@return string
function M.footer(phase, page, window)
  local question, width = page.question, window.width
  if phase == 'edited' then
    return ' <CR> next question '
  elseif phase == 'done' or not question then
    return ''
  elseif not window.focused then
    return fitting(width, keys_from_elsewhere(question, window.whole))
  elseif page.name == 'list' then
    return fitting(width, list_keys(page.list and page.list.approved or {}))
  elseif page.name == 'question' then
    return fitting(width, question_keys(question, #page.questions > 1))
  end
  return ''
end

--- Returns the title. If it is too wide, it does not name the question.
---@param phase co.float.Phase
---@param page co.Page
---@param hidden number lines that do not fit
---@param width number
---@return string
function M.title(phase, page, hidden, width)
  local total = #page.questions
  if phase == 'edited' then
    return (' co · %d more '):format(total)
  elseif phase == 'done' then
    return ' co · nothing waits '
  end
  local lines = hidden == 1 and '1 more line' or ('%d more lines'):format(hidden)
  if page:about_all() then
    local text = (' co · %d questions '):format(total)
    return hidden > 0 and ('%s· %s '):format(text, lines) or text
  end
  local question = page.question
  local about = question
      and ('· %s · #%d '):format(
        printable.line(question.kind.title(question), LONGEST_NAME),
        question.number
      )
    or ''
  local d = float_keys.name('d')
  local more = hidden > 0 and ('· %s%s '):format(d and d .. ': ' or '', lines) or ''
  local number = (' co 1/%d '):format(total)
  local title = number .. about .. more
  return vim.fn.strdisplaywidth(title) <= width and title or number .. more
end

return M
