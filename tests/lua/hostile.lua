--- Messages of the backend with any text in each of their fields, made from the types in lua/co/types/to_editor.lua.
local M = {}

---@class co.test.Field
---@field name string
---@field optional boolean
---@field type string

---@type table<string, co.test.Field[]>
local classes = {}
---@type table<string, string>
local aliases = {}
-- The class of each type of message.
---@type table<string, string>
local by_type = {}

-- Lua sets these.
local OWN = { kind = true, number = true, hidden = true }

-- Bytes that a field never has: names of files have no NUL, and lines no line break.
local NEVER =
  { path = '%z', file = '%z', files = '%z', to = '%z', cwd = '%z', spill = '%z', lines = '\n' }

-- Places in texts that are random: they are in the shortest one.
local PLACES = {
  start = 0,
  ['end'] = 0,
  line = 0,
  from = 0,
  skipped = 0,
  answer = 0,
  messages = { { row = 0 } },
  folds = { { 0, 0 } },
}

-- Pieces that some part of Neovim takes amiss, as text, in an option, or as an argument.
local PIECES = {
  'word',
  ' ',
  '\n',
  '\r',
  '\r\n',
  '\t',
  '\0',
  '\1\27[31m\127',
  '\255\254',
  '\192\128',
  '\237\160\128',
  '\226\130',
  '\226\128\174',
  '\226\128\139',
  '\239\187\191',
  'e\204\129\204\129\204\129',
  '\240\159\145\169\226\128\141\240\159\145\169',
  '\228\184\173\230\150\135',
  '%',
  '%{%execute("let g:hostile = 1")%}',
  '%#Error#%=%<%!',
  '`',
  "'",
  '"',
  '\\',
  '/',
  '~',
  '$HOME',
  '|',
  '<CR>',
  '<C-\\><C-n>:let g:hostile = 1\n',
  '--- a\n+++ b\n@@ -1 +1 @@\n',
  '```',
}

--- Returns a text of random pieces, or of random bytes. A few are long.
---@return string
function M.text()
  local pick = math.random(20)
  if pick == 1 then
    return ''
  elseif pick == 2 then
    local piece = PIECES[math.random(#PIECES)] --[[@as string]]
    return piece:rep(math.random(20000))
  elseif pick == 3 then
    local bytes = {}
    for index = 1, math.random(200) do
      bytes[index] = string.char(math.random(0, 255))
    end
    return table.concat(bytes)
  elseif pick == 4 then
    return ('long '):rep(20000)
  end
  local parts = {}
  for index = 1, math.random(6) do
    parts[index] = PIECES[math.random(#PIECES)]
  end
  return table.concat(parts)
end

---@param depth integer
---@return any
local function anything(depth)
  local pick = math.random(depth > 0 and 5 or 3)
  if pick == 1 then
    return M.text()
  elseif pick == 2 then
    return math.random(-2, 3)
  elseif pick == 3 then
    return math.random(2) == 1
  elseif pick == 4 then
    return { anything(depth - 1) }
  end
  return { [M.text()] = anything(depth - 1) }
end

---@type fun(class: string, depth: integer): table
local object

--- Returns a value of a type.
---@param type string as an annotation names it
---@param depth integer
---@return any
local function value(type, depth)
  local each = type:match('^(.*)%[%]$')
  local inner = type:match('^{ (.*) }$')
  if each then
    local list = {}
    for index = 1, math.random(0, depth > 0 and 3 or 1) do
      list[index] = value(each, depth - 1)
    end
    return list
  elseif inner then
    local made = {}
    for name, its in inner:gmatch('([%w_]+)%??: ([^,]+)') do
      made[name] = value(its, depth)
    end
    return made
  elseif type:find('^%[') then
    local made = {}
    for its in type:sub(2, -2):gmatch('[^, ]+') do
      made[#made + 1] = value(its, depth)
    end
    return made
  elseif type:find("^'") then
    local words = vim.split(type:gsub("'", ''), '|')
    return words[math.random(#words)]
  elseif type == 'integer' or type == 'number' then
    return ({ 0, 1, 2, 7, 100, 100000 })[math.random(6)]
  elseif type == 'boolean' then
    return math.random(2) == 1
  elseif type == 'string' then
    return M.text()
  elseif type == 'any' then
    return anything(2)
  end
  local name = assert(type:match('^co%.(%w+)$'), 'a type that no message has: ' .. type)
  return aliases[name] and value(aliases[name], depth) or object(name, depth - 1)
end

--- Removes bytes from a text, or from each text of a list.
---@param never? string a pattern
---@param from any
---@return any
local function without(never, from)
  if never and type(from) == 'table' then
    return vim.tbl_map(function(each)
      return without(never, each)
    end, from)
  end
  return never and type(from) == 'string' and (from:gsub(never, '')) or from
end

--- Returns a table of a class. Fields that may be absent sometimes are.
function object(class, depth)
  local made = {}
  for _, field in ipairs(classes[class]) do
    -- A change has changes: the deeper it gets, the fewer it has.
    local absent = field.optional and field.name ~= 'request' and (depth < 0 or math.random(3) == 1)
    if PLACES[field.name] and field.type ~= 'boolean' then
      made[field.name] = PLACES[field.name]
    elseif field.name == 'type' then
      made.type = field.type:match("^'([%w_]+)'")
    elseif (class == 'Fact' or not OWN[field.name]) and not absent then
      made[field.name] = without(NEVER[field.name], value(field.type, depth))
    end
  end
  return made
end

--- Reads the annotations of a file.
---@param file string
---@param received boolean Lua gets its messages
local function read(file, received)
  ---@type string?
  local class
  for line in io.lines(co_root .. '/lua/co/types/' .. file) do
    local name, parent = line:match('^%-%-%-@class [%(%)exact ]*co%.(%w+):? ?c?o?%.?(%w*)')
    local alias, meaning = line:match('^%-%-%-@alias co%.(%w+) (.*)')
    local field, optional, about = line:match('^%-%-%-@field ([%w_]+)(%??)%s+(.*)')
    if name then
      class = name
      classes[class] = vim.list_extend({}, classes[parent] or {})
    elseif alias then
      aliases[alias] = meaning
    elseif field then
      local type = about:match("^'[^ ]+") or about:match('^%b{}') or about:match('^%b[]%S*')
      type = type or about:match('^%S+')
      local fields = classes[class] --[[@as co.test.Field[] ]]
      fields[#fields + 1] = { name = field, optional = optional ~= '', type = type }
      local kind = field == 'type' and type:match("^'([%w_]+)'")
      if kind and received then
        by_type[kind] = class
      end
    end
  end
end

read('from_editor.lua', false)
read('to_editor.lua', true)

--- Returns the types of all messages, sorted.
---@return string[]
function M.types()
  local types = vim.tbl_keys(by_type)
  table.sort(types)
  return types
end

--- Returns a message of a type with any text in its fields.
---@param type string
---@param fields? table that are as they should be
---@return table
function M.message(type, fields)
  local message = vim.tbl_extend('force', object(by_type[type], 3), fields or {})
  if type == 'changes' then
    -- A review has files, and each has parts.
    message.files[1] = message.files[1] or object('FileChange', 0)
    for _, change in ipairs(message.files) do
      change.text, change.parts = '@\n+' .. M.text() .. '\n', 1
    end
  end
  return message
end

return M
