-- The messages of src/protocol/ and of lua/co/types/ have the same names and fields.

---@param pattern string of file names below the root
---@return string
local function read(pattern)
  local texts = {}
  for _, file in ipairs(vim.fn.glob(_G.co_root .. '/' .. pattern, true, true)) do
    texts[#texts + 1] = table.concat(vim.fn.readfile(file), '\n')
  end
  return table.concat(texts, '\n')
end

local protocol = read('src/protocol/*.rs')
-- Some types of fields are declared in other modules or crates.
local rust = protocol .. read('src/**/*.rs') .. read('crates/**/*.rs')

---@param name string
---@return string
local function snake_case(name)
  return (name:gsub('(%l)(%u)', '%1_%2'):lower())
end

--- Returns the lines between the braces of a declaration.
---@param text string
---@param head string
---@return string
local function body(text, head)
  local found = text:match('\n' .. head .. ' {(.-)\n}')
  return assert(found, head .. ' is not declared') --[[@as string]]
end

--- Returns the fields that the variants of a Rust enum make, if it is one.
---@param name string
---@return table<string, true>?
local function variants(name)
  local text = rust:match('\npub enum ' .. name .. ' {(.-)\n}')
  local fields = {}
  for variant in (text or ''):gmatch('\n    (%u%w*)%(') do
    fields[snake_case(variant)] = true
  end
  return text and fields
end

--- Returns the names of the fields in a Rust struct or variant.
---@param text string
---@return table<string, true>
local function fields_in(text)
  local fields = {}
  local flatten = false
  for line in vim.gsplit(text:gsub('//[^\n]*', ''), '\n') do
    flatten = flatten or line:find('#[serde(flatten)]', 1, true) ~= nil
    for name, type in line:gsub('#%b[]', ''):gmatch('([%l_]+): ([%w_]+)') do
      if flatten then
        local own = variants(type) or fields_in(body(rust, 'pub struct ' .. type))
        fields = vim.tbl_extend('force', fields, own)
      else
        fields[name] = true
      end
      flatten = false
    end
  end
  return fields
end

---@param name string
---@return table<string, true>
local function struct(name)
  return fields_in(body(rust, 'pub struct ' .. name))
end

--- Returns the variants of a Rust enum as messages: their types and the names of their fields.
---@param name string
---@return table<string, table<string, true>>
local function messages_of(name)
  local messages = {}
  local text = body(protocol, 'pub enum ' .. name) .. '\n'
  text = text:gsub('\n%s*//[^\n]*', '')
  for variant, fields in text:gmatch('\n    (%u%w*) (%b{})') do
    messages[snake_case(variant)] = fields_in(fields)
  end
  for variant, content in text:gsub('Box<(%w+)>', '%1'):gmatch('\n    (%u%w*)%((%w+)%)') do
    messages[snake_case(variant)] = struct(content)
  end
  return messages
end

---@class co.test.Class
---@field type? string of the message
---@field own table<string, true>
---@field parent? string

local FROM_EDITOR = read('lua/co/types/from_editor.lua')
local TYPES = FROM_EDITOR .. read('lua/co/types/to_editor.lua')

--- Returns the classes of lua/co/types/.
---@return table<string, co.test.Class>
local function classes()
  local found, class = {}, nil
  for line in vim.gsplit(TYPES, '\n') do
    local name, parent = line:match('^%-%-%-@class [%(%)exact ]*co%.(%w+):? ?c?o?%.?(%w*)')
    local field, about = line:match('^%-%-%-@field ([%w_]+)%??%s+(.*)')
    if name then
      class = { own = {}, parent = parent ~= '' and parent or nil }
      found[name] = class
    elseif field == 'type' and class then
      class.type = assert(about):match("^'([%w_]+)'") --[[@as string?]]
    elseif field and class then
      class.own[field] = true
    end
  end
  return found
end

local known = classes()

--- Fails unless a class has exactly the fields of a Rust type; it may inherit some of them, and others that Lua sets.
---@param name string
---@param fields table<string, true>
local function check(name, fields)
  local class = known[name]
  yes(class, ('lua/co/types/ declares no co.%s'):format(name))
  local all = vim.tbl_extend('force', {}, class.own, class.parent and known[class.parent].own or {})
  for field in pairs(fields) do
    yes(all[field], ('co.%s of lua/co/types/ has no field %s'):format(name, field))
  end
  for field in pairs(class.own) do
    yes(fields[field], ('the Rust type for co.%s has no field %s'):format(name, field))
  end
end

describe('lua/co/types/', function()
  it('declares the messages of src/protocol/, with their fields', function()
    local by_type = {}
    for name, class in pairs(known) do
      if class.type then
        by_type[class.type] = name
      end
    end
    local count = 0
    for _, enum in ipairs({ 'FromEditor', 'ToEditor' }) do
      for type, fields in pairs(messages_of(enum)) do
        yes(by_type[type], ('lua/co/types/ declares no message "%s"'):format(type))
        check(by_type[type], fields)
        count = count + 1
      end
    end
    -- The two directions share the message "sandbox".
    same(vim.tbl_count(by_type) + 1, count)
  end)

  it('declares the types of their fields', function()
    for name, class in pairs({
      RunOptions = 'RunOptionsMessage',
      TokenUse = 'Used',
      Owner = 'Owner',
      Choice = 'Choice',
      ScreenPatch = 'Patch',
      Style = 'Style',
      TerminalSize = 'Size',
    }) do
      check(class, struct(name))
    end
  end)

  it('names every message that Lua sends, and handles every one that it gets', function()
    local union = assert(FROM_EDITOR:match('@alias co%.FromEditor ([^\n]*)'))
    local sent = {}
    for name in union:gmatch('co%.(%w+)') do
      local class = known[name]
      sent[class and class.type or name] = true
    end
    local expected = vim.tbl_keys(messages_of('FromEditor'))
    local actual = vim.tbl_keys(sent)
    table.sort(expected)
    table.sort(actual)
    same(expected, actual)
    local handlers = read('lua/co/handlers.lua')
    for type in pairs(messages_of('ToEditor')) do
      yes(handlers:find(('\n  %s = '):format(type), 1, true), 'no handler for ' .. type)
    end
    for module, name in handlers:gmatch("= to%('(co[%w_.]*)', '([%w_]+)'%)") do
      local path = 'lua/' .. module:gsub('%.', '/')
      local text = read(path .. '.lua') .. read(path .. '/init.lua')
      yes(text:find(('\nfunction M.%s('):format(name), 1, true), module .. ' has no ' .. name)
    end
  end)
end)
