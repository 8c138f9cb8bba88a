local install_scene = require('install_scene')
local neovim = require('neovim')
local version = require('co.version')

local DOWNLOADS = ('downloading co-nvim %s'):format(version.version)
local DONE = ('co-nvim %s is installed'):format(version.version)

-- lazy.nvim loads the file, calls it in a coroutine and continues that each time the loop turns. What it yields is
-- a text or a table with `msg` and `level`. To abort, it passes "abort".
local LAZY = [[
  local root, wait = ...
  _G.yielded, _G.resumed = {}, 0
  local chunk = assert(loadfile(root .. '/build.lua'))
  local thread = coroutine.create(function() chunk() end)
  local timer = assert(vim.uv.new_timer())
  timer:start(0, 10, vim.schedule_wrap(function()
    if coroutine.status(thread) == 'dead' then
      return
    end
    _G.resumed = _G.resumed + 1
    local ok, result = coroutine.resume(thread, _G.abort and 'abort' or nil)
    if not ok then
      _G.failure = result
    elseif result then
      table.insert(_G.yielded, result)
    end
    _G.ended = coroutine.status(thread) == 'dead'
  end))
]]

--- Returns the messages of a level that were yielded.
---@param nvim co.test.Neovim
---@param level integer
---@return string[]
local function yielded(nvim, level)
  local messages = {}
  for _, message in ipairs(nvim:lua('return _G.yielded')) do
    if message.level == level then
      messages[#messages + 1] = message.msg
    end
  end
  return messages
end

--- Runs `build.lua` as a script.
---@param scene co.test.InstallScene
---@return integer code
---@return string stdout
---@return string stderr
local function as_script(scene)
  local command = { vim.v.progpath, '-l', scene.root .. '/build.lua' }
  ---@type vim.SystemCompleted?
  local ended
  vim.system(command, { env = scene.env, text = true }, function(done)
    ended = done
  end)
  -- The server of the scene is in this process.
  neovim.wait('the script', function()
    return ended
  end)
  assert(ended)
  return ended.code, ended.stdout or '', ended.stderr or ''
end

describe('build.lua', function()
  it('installs as lazy.nvim runs it, and loads nothing of co', function()
    local scene, nvim = install_scene.released({ root = false })
    nvim:lua(LAZY, scene.root)
    nvim:wait('return _G.ended')
    same(vim.NIL, nvim:lua('return _G.failure'))
    same({ DOWNLOADS, DONE }, yielded(nvim, vim.log.levels.INFO))
    same({ DOWNLOADS .. ': 100%' }, yielded(nvim, vim.log.levels.TRACE))
    same({ scene:path() }, scene:installed())
    same(
      {},
      nvim:lua([[
        return vim.tbl_filter(function(name)
          return vim.startswith(name, 'co.')
        end, vim.tbl_keys(package.loaded))
      ]])
    )
  end)

  it('fails with one sentence', function()
    local scene = install_scene.new()
    local nvim = scene:neovim({ root = false })
    nvim:lua(LAZY, scene.root)
    nvim:wait('return _G.ended')
    local failure = nvim:lua('return _G.failure')
    yes(
      vim.startswith(failure, 'co-nvim 0.1.0 is not installed: no download (there is no'),
      failure
    )
    yes(vim.endswith(failure, 'the log is ' .. scene:log_path()), failure)
  end)

  it('ends its programs if lazy.nvim aborts it', function()
    local scene = install_scene.new()
    scene:cargo(install_scene.program(), true)
    local nvim = scene:neovim({ root = false })
    nvim:lua(LAZY, scene.root)
    nvim:wait("return vim.inspect(_G.yielded):find('crate 1 of 2', 1, true)")
    nvim:lua('_G.abort = true')
    nvim:wait('return _G.ended')
    same('aborted', nvim:lua('return _G.failure'))
    neovim.wait('the end of cargo', function()
      return vim.endswith(scene:log(), 'the installation was cancelled')
    end)
    same({}, scene:installed())
  end)

  it("sleeps as lazy.nvim's own tasks do", function()
    local scene, nvim = install_scene.released({ root = false })
    nvim:lua([[
      package.loaded['lazy.async'] = {
        running = function() return true end,
        sleep = function(ms)
          _G.slept = ms
          coroutine.yield()
        end,
      }
    ]])
    nvim:lua(LAZY, scene.root)
    nvim:wait('return _G.ended')
    same(100, nvim:lua('return _G.slept'))
    same({ scene:path() }, scene:installed())
  end)

  it('installs as a script', function()
    local scene = install_scene.new()
    scene:release(install_scene.program())
    local code, stdout, stderr = as_script(scene)
    same(('co: %s\nco: %s\n'):format(DOWNLOADS, DONE), stderr)
    same({ 0, '' }, { code, stdout })
    same({ scene:path() }, scene:installed())
  end)

  it('fails as a script with one sentence', function()
    local scene = install_scene.new()
    local code, stdout, stderr = as_script(scene)
    local start = ('co: %s\nco: co-nvim 0.1.0 is not installed'):format(DOWNLOADS)
    yes(vim.startswith(stderr, start) and vim.endswith(stderr, scene:log_path() .. '\n'), stderr)
    same({ 1, '' }, { code, stdout })
  end)

  it('does not block a Neovim with a screen that runs it in a hook', function()
    local scene = install_scene.new()
    scene:release(install_scene.program())
    scene.server.hold[scene:asset()] = true
    local nvim = scene:neovim({ root = false, screen = true })
    nvim:lua("dofile(... .. '/build.lua')", scene.root)
    neovim.wait('the request', function()
      return scene.server.held[scene:asset()]
    end)
    scene.server.held[scene:asset()]()
    nvim:wait('return vim.list_contains(_G.notices, ...)', 'co: ' .. DONE)
    same({ 'co: ' .. DOWNLOADS, 'co: ' .. DONE }, nvim:lua('return _G.notices'))
  end)

  it('shows cargo in a terminal', function()
    local scene = install_scene.new()
    scene:cargo(install_scene.program())
    local hook = scene:neovim({ root = false, screen = true })
    hook:lua("dofile(... .. '/build.lua')", scene.root)
    hook:wait_screen('co: building co-nvim 0.1.0: crate 1 of 2')
    local text, code = '', nil
    vim.fn.jobstart({ vim.v.progpath, '-l', scene.root .. '/build.lua' }, {
      env = scene.env,
      pty = true,
      on_stdout = function(_, data)
        text = text .. table.concat(data, '\n')
      end,
      on_exit = function(_, status)
        code = status
      end,
    })
    neovim.wait(function()
      return 'the end of the script: ' .. text
    end, function()
      return code
    end)
    local bar = '\r\27[K'
    local shown = ('%sco: building co-nvim 0.1.0: crate 1 of 2%sco: %s'):format(bar, bar, DONE)
    yes(text:find(shown, 1, true), text)
  end)

  it('names what makes a loaded co use the program', function()
    local scene, nvim = install_scene.released({ screen = true })
    nvim:lua("require('co.version').version = '0.0.9' dofile(... .. '/build.lua')", scene.root)
    nvim:wait(
      'return vim.list_contains(_G.notices, ...)',
      ('co: %s; restart Neovim to use it'):format(DONE)
    )
    nvim:lua(LAZY, scene.root)
    nvim:wait(
      'return vim.list_contains(_G.notices, ...)',
      'co: the program is installed; restart Neovim to use it'
    )
  end)

  it('names no step if nothing was installed', function()
    local scene, nvim = install_scene.released({ screen = true })
    scene:install(nvim)
    nvim:lua("vim.cmd('Co! echo one')")
    nvim:wait("return require('co.backend').status().ready")
    nvim:lua("_G.notices = {} dofile(... .. '/build.lua')", scene.root)
    nvim:wait(
      'return vim.list_contains(_G.notices, ...)',
      ('co: co-nvim %s is up to date'):format(version.version)
    )
  end)

  it('installs nothing if the setting "bin" names a program', function()
    local scene, nvim = install_scene.released({ screen = true })
    nvim:lua("vim.g.co = { bin = '/opt/co-nvim' } dofile(... .. '/build.lua')", scene.root)
    nvim:lua(LAZY, scene.root)
    nvim:wait('return _G.ended')
    same(
      { {}, {}, {} },
      { nvim:lua('return _G.notices'), scene.server.requests, scene:installed() }
    )
  end)

  it('says in an older Neovim that co needs 0.10', function()
    local nvim = neovim.start({ root = false })
    local sentence = nvim:lua(
      [[
        vim.fn.has = function() return 0 end
        local _, problem = pcall(dofile, ... .. '/build.lua')
        return problem
      ]],
      co_root
    )
    same('co needs Neovim 0.10 or later: please update Neovim', sentence)
    local plugin = table.concat(vim.fn.readfile(co_root .. '/plugin/co.lua'), '\n')
    yes(plugin:find(sentence, 1, true) ~= nil)
  end)
end)
