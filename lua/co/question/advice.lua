--- Counts the yeses to questions of one kind, and tells the person which answer would end these questions.
local M = {}

local float_keys = require('co.question.float_keys')
local notify = require('co.ui.notify')
local printable = require('co.ui.printable')

-- The number of yeses before the notice.
local YESES = 3
-- The largest number of bytes of a name in a notice. Then the whole notice fits on a screen of 80 columns.
local LONGEST_NAME = 20

--- Questions of one kind.
---@class (exact) co.advice.Kind
---@field id string
---@field about string
---@field keys string[] the usual keys of the answer that ends them
---@field does string

local EDITS = 'edits'

-- The yeses to questions of each kind, by its id.
---@type table<string, integer>
local yeses = {}

--- Returns the kinds that a question belongs to, the narrowest first.
---@param question co.CommandQuestion
---@return co.advice.Kind[]
local function kinds_of(question)
  ---@type co.advice.Kind[]
  local kinds = {}
  if question.prefix then
    kinds[1] = {
      id = 'prefix ' .. question.prefix,
      about = ('`%s`'):format(printable.line(question.prefix, LONGEST_NAME)),
      keys = { 'a', 's' },
      does = 'makes it a rule',
    }
  elseif not question.change and not question.run then
    kinds[1] = {
      id = 'command ' .. vim.fn.sha256(question.command),
      about = ('`%s`'):format(printable.line(question.command, LONGEST_NAME)),
      keys = { 'a', 'c' },
      does = 'allows it here',
    }
  end
  if question.change and not question.tried then
    kinds[#kinds + 1] = {
      id = EDITS,
      about = 'edits',
      keys = { 'a', 'f' },
      does = 'allows all edits',
    }
  elseif question.may_try then
    kinds[#kinds + 1] = {
      id = 'tried',
      about = 'commands',
      keys = { 'T' },
      does = 'tries first',
    }
  end
  return kinds
end

--- Counts a yes. After the third yes to questions of one kind, shows once how to end these questions. Does not count a
--- yes to a dangerous question, because co should ask each dangerous question.
---@param question co.Question
function M.note_yes(question)
  if question.kind.alone(question) or #question.kind.scopes(question) == 0 then
    return
  end
  local about
  ---@type string[]
  local ways = {}
  for _, kind in
    ipairs(kinds_of(question --[[@as co.CommandQuestion]]))
  do
    yeses[kind.id] = (yeses[kind.id] or 0) + 1
    local keys = vim.tbl_map(float_keys.name, kind.keys)
    -- One rule is enough, the narrowest.
    local redundant = about ~= nil and kind.id == EDITS
    if yeses[kind.id] == YESES and #keys == #kind.keys and not redundant then
      about = about or kind.about
      ways[#ways + 1] = ('%s %s'):format(table.concat(keys, ' '), kind.does)
    end
  end
  if about then
    notify.info(('third yes to %s: next time, %s'):format(about, table.concat(ways, ', ')))
  end
end

return M
