local lines = vim.fn.readfile(co_root .. '/doc/co.txt')
local text = table.concat(lines, '\n')

local function tagged(tag)
  yes(text:find('*' .. tag .. '*', 1, true), ('no tag *%s*'):format(tag))
end

-- The columns of the help.
local WIDTH = 78

--- Returns a text in indented lines no wider than the help.
---@param words string
---@return string
local function filled(words)
  local out, line = {}, '   '
  for word in words:gmatch('%S+') do
    if #line + 1 + #word > WIDTH then
      out[#out + 1], line = line, '   '
    end
    line = line .. ' ' .. word
  end
  out[#out + 1] = line
  return table.concat(out, '\n') .. '\n'
end

--- Returns the entry of a setting.
---@param setting co.Setting
---@return string
local function entry(setting)
  local tag = ('*co-%s*'):format(setting.name)
  local default = setting.default
  local parts = { setting.name .. (' '):rep(WIDTH - #setting.name - #tag) .. tag .. '\n' }
  parts[#parts + 1] = filled('Accepts: ' .. setting.accepts)
  if type(default) ~= 'table' then
    parts[#parts + 1] = filled('Default: ' .. (default == nil and '(none)' or tostring(default)))
  end
  parts[#parts + 1] = filled('Applies: ' .. setting.applies)
  parts[#parts + 1] = filled(setting.help)
  return table.concat(parts)
end

describe('slash commands', function()
  it('are carried out by Lua or by the backend', function()
    local source = table.concat(vim.fn.readfile(co_root .. '/src/chat/slash_commands.rs'), '\n')
    local body = assert(source:match('fn command%(.-match name {(.-)other =>'))
    local commands, carried_out = require('co.user_command.slash').commands, {}
    for name in body:gmatch('\n +"(%l+)"') do
      carried_out[name] = true
      yes(commands[name], ('the backend carries out /%s, but nobody can type it'):format(name))
    end
    for name, command in pairs(commands) do
      yes(command.run or carried_out[name], ('nothing carries out /%s'):format(name))
    end
  end)
end)

describe('the help', function()
  it('has tags that :helptags takes, each once', function()
    local dir = vim.fn.tempname()
    vim.fn.mkdir(dir .. '/doc', 'p')
    vim.fn.writefile(lines, dir .. '/doc/co.txt')
    vim.cmd.helptags(dir .. '/doc')
    local tags, seen = vim.fn.readfile(dir .. '/doc/tags'), {}
    yes(#tags > 40)
    for _, tag in ipairs(tags) do
      local name = tag:match('^[^\t]+')
      yes(not seen[name], 'twice: ' .. name)
      seen[name] = true
    end
    for link in text:gmatch('|([^|%s]+)|') do
      local own = seen[link]
      local others = own or #vim.fn.getcompletion(link, 'help') > 0
      yes(others, ('|%s| leads nowhere'):format(link))
    end
  end)

  it('is no wider than 80 columns', function()
    for number, line in ipairs(lines) do
      yes(vim.fn.strdisplaywidth(line) <= 80, ('line %d: %s'):format(number, line))
    end
  end)

  it('has every slash command with its arguments', function()
    for name, command in pairs(require('co.user_command.slash').commands) do
      tagged('co-/' .. name)
      local usage = '/' .. name .. (command.arguments and ' ' .. command.arguments or '')
      local after = assert(text:match(vim.pesc(('*co-/%s*'):format(name)) .. '[^\n]*\n([^\n]*)'))
      local rest = vim.startswith(after, usage) and after:sub(#usage + 1)
      yes(rest and (rest == '' or rest:match('^ +%u')), ('%s is not %s'):format(after, usage))
    end
  end)

  it('has every setting that Lua reads, as the table of settings says it, and no other', function()
    local section = assert(
      text:match('\n(bin +%*co%-bin%*.-)\nThe backend reads all others:'),
      'no list of settings'
    )
    local list, given = section:match('^(.-)    Default: >lua\n(.-)<$')
    local entries = vim.tbl_map(entry, require('co.settings').all)
    same(table.concat(entries, '\n'), list)
    local code = assert(given):gsub('^%s*keys = ', 'return ')
    local keys = assert(loadstring(code))()
    same(require('co.settings').keys, keys)
  end)

  it('has every map, highlight group, context and public function', function()
    local plugin = table.concat(vim.fn.readfile(co_root .. '/plugin/co.lua'), '\n')
    for plug in plugin:gmatch("'(<Plug>%b())'") do
      tagged(plug)
    end
    for group, link in pairs(require('co.ui.highlight').links) do
      yes(text:find(group .. '%s.-links to ' .. link), 'no group ' .. group)
    end
    for name in pairs(require('co.chat.context').about) do
      yes(text:find(name, 1, true), 'no context ' .. name)
    end
    for name in pairs(require('co')) do
      if name ~= 'adopt' and name ~= 'restore' then
        tagged('co.' .. name)
      end
    end
  end)
end)
