-- Hooks of other plugins.

local neovim = require('neovim')

--- Sends a command to the hooks and returns the reason why they refuse it.
local function refusal(nvim, command)
  nvim:lua('_G.sent = {}')
  nvim:receive({
    type = 'before_command',
    request = 7,
    chat = 1,
    command = command,
    cwd = '/tmp',
    unasked = true,
  })
  local answer = nvim:wait_sent(1, 'command_hooked')
  same(7, answer.request)
  return answer.refusal
end

describe('hooks before a command', function()
  it(
    'refuse it by a text, by false and by an error, and each is called until one refuses',
    function()
      local nvim = neovim.start()
      nvim:lua([[
      _G.seen = {}
      local co = require('co')
      co.before_command(function(command)
        table.insert(_G.seen, command)
        command.command = 'changed'
        return true
      end)
      _G.line = 2
      co.before_command(assert(loadstring([=[

        return function(command)
        if command.command == 'bad' then
          error('oh\nmore')
        elseif command.command == 'table' then
          error({ message = 'E7: no' })
        elseif command.command == 'list' then
          error({ 7 })
        elseif command.command == 'reason' then
          return { because = 'no' }
        elseif command.command == 'rm' then
          return 'no rm'
        elseif command.command == 'no' then
          return false
        elseif command.command == 'bytes' then
          return 'not \255'
        end
      end]=], '@/plugins/a hook.lua'))())
    ]])
      same(nil, refusal(nvim, 'ls'))
      same('no rm', refusal(nvim, 'rm'))
      same('it gives no reason', refusal(nvim, 'no'))
      same('its reason is not all UTF-8', refusal(nvim, 'bytes'))
      local hook = nvim:lua('return _G.line')
      same(('its hook a hook.lua:%d failed: oh'):format(hook), refusal(nvim, 'bad'))
      same(('its hook a hook.lua:%d failed: E7: no'):format(hook), refusal(nvim, 'table'))
      same(('its hook a hook.lua:%d failed: { 7 }'):format(hook), refusal(nvim, 'list'))
      same('{ because = "no" }', refusal(nvim, 'reason'))
      same('changed', nvim:lua('return _G.seen[8].command'))
      same(
        { 1, '/tmp', true },
        nvim:lua('local it = _G.seen[1] return { it.chat, it.cwd, it.unasked }')
      )
    end
  )

  it('are announced while there are some', function()
    local nvim = neovim.start()
    nvim:lua([[
      local function hook() end
      _G.told = {}
      require('co.backend').set_hooks = function(message) table.insert(_G.told, message.before_command) end
      local remove = { require('co').before_command(hook), require('co').before_command(hook) }
      remove[1]()
      remove[1]()
      remove[2]()
    ]])
    same({ true, true, true, true, false }, nvim:lua('return _G.told'))
  end)
end)

describe('a hook after an edit', function()
  it('gets the files until it is removed', function()
    local nvim = neovim.start()
    nvim:lua([[
      _G.files = {}
      _G.remove = require('co').after_edit(function(edit) table.insert(_G.files, edit.files[1]) end)
    ]])
    local event = { type = 'event', name = 'CoEdited', data = { chat = 1, files = { '/tmp/a' } } }
    nvim:receive(event)
    nvim:wait('return #_G.files == 1')
    nvim:lua('_G.remove()')
    nvim:receive(event, { type = 'notice', level = 'info', message = 'after it' })
    nvim:wait_notice('after it')
    same({ '/tmp/a' }, nvim:lua('return _G.files'))
  end)

  it('formats closed files, as a recipe does', function()
    local recipes = table.concat(vim.fn.readfile(co_root .. '/docs/RECIPES.md'), '\n')
    local recipe = recipes:match('## Format the files that are not open.-```lua\n(.-)```')
    local dir = vim.fn.tempname()
    vim.fn.mkdir(dir .. '/bin', 'p')
    local stylua = dir .. '/bin/stylua'
    vim.fn.writefile({ '#!/bin/sh', 'echo formatted >> "$1"', '! grep wrong "$1" >&2' }, stylua)
    vim.fn.setfperm(stylua, 'rwxr-xr-x')
    local nvim = neovim.start({ env = { PATH = dir .. '/bin:' .. vim.env.PATH } })
    nvim:lua(assert(recipe))
    local files = {}
    for index, name in ipairs({ 'open.lua', 'notes.xyz', 'a file.lua', 'wrong.lua', 'gone.lua' }) do
      files[index] = dir .. '/' .. name
      if name ~= 'gone.lua' then
        vim.fn.writefile({ name }, files[index])
      end
    end
    nvim:lua('vim.cmd.edit(...)', files[1])
    nvim:receive({ type = 'event', name = 'CoEdited', data = { chat = 1, files = files } })
    nvim:wait_notice(('stylua %s: wrong.lua\n'):format(files[4]))
    nvim:wait('return #vim.fn.readfile(...) == 2', files[3])
    same({ 'open.lua' }, vim.fn.readfile(files[1]))
    same({ 'notes.xyz' }, vim.fn.readfile(files[2]))
    same(0, vim.fn.filereadable(files[5]))
    same(1, #nvim:lua('return _G.notices'))
  end)

  it('that fails is named in one sentence', function()
    local nvim = neovim.start({ screen = true, columns = 80, lines = 8 })
    nvim:lua([[
      local hook = "return function() error({ code = 'E9' }) end"
      require('co').after_edit(assert(loadstring(hook, '@/plugins/formatter.lua'))())
    ]])
    nvim:receive({ type = 'event', name = 'CoEdited', data = { chat = 1, files = { '/tmp/a' } } })
    local sentence = 'co: the hook formatter.lua:1 failed: { code = "E9" }'
    nvim:wait('return _G.notices[1] == ...', sentence)
    nvim:wait_screen(sentence)
    same('n', nvim:mode())
  end)
end)
