local lines = vim.fn.readfile(co_root .. '/doc/co.txt')
local text = table.concat(lines, '\n')

local function tagged(tag)
  yes(text:find('*' .. tag .. '*', 1, true), ('no tag *%s*'):format(tag))
end

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

  it('has every slash command', function()
    for name in pairs(require('co.user_command.slash').commands) do
      tagged('co-/' .. name)
    end
  end)

  it('has every setting that Lua reads, no other, and every key', function()
    local config = require('co.config').get()
    local section = assert(text:match('%*co%-settings%-late%*(.-)%*co%-backend%-settings%*'))
    local listed = {}
    for name in section:gmatch('\n[%w_]+ +%*co%-([%w_]+)%*') do
      listed[name] = true
    end
    -- It has no default.
    same(nil, config.bin)
    local known = { bin = true }
    for name in pairs(config) do
      known[name] = true
    end
    same(known, listed)
    for _, keys in pairs(config.keys) do
      for action, lhs in pairs(keys) do
        yes(text:find(action .. ' = ', 1, true), 'no key action ' .. action)
        for _, key in ipairs(type(lhs) == 'table' and lhs or { lhs }) do
          yes(text:find(key, 1, true), 'no key ' .. key)
        end
      end
    end
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
