local install_scene = require('install_scene')
local neovim = require('neovim')
local version = require('co.version')

local DONE = ('co: co-nvim %s is installed'):format(version.version)

--- Holds that this program is installed, that co finds it, and that nothing else was left.
---@param scene co.test.InstallScene
---@param nvim co.test.Neovim
---@param program string
local function holds(scene, nvim, program)
  same({ scene:path() }, scene:installed())
  same(vim.split(program, '\n'), vim.fn.readfile(scene:path(), 'b'))
  same(scene:path(), nvim:lua("return require('co.backend.executable').find()"))
end

describe('/install', function()
  it('downloads the release of this version', function()
    local scene, nvim = install_scene.released()
    same(DONE, scene:install(nvim))
    same({
      ('co: downloading co-nvim %s'):format(version.version),
      DONE,
    }, nvim:lua('return _G.notices'))
    holds(scene, nvim, install_scene.program())
    nvim:lua("vim.cmd('Co! echo one')")
    nvim:wait("return require('co.backend').status().ready")
  end)

  it('downloads nothing if the release is installed', function()
    local scene, nvim = install_scene.released()
    scene:install(nvim)
    scene.server.requests = {}
    same(('co: co-nvim %s is up to date'):format(version.version), scene:install(nvim))
    same({ scene:asset() .. '.sha256' }, scene.server.requests)
    holds(scene, nvim, install_scene.program())
  end)

  it('leaves a running backend alone and names /restart', function()
    local scene, nvim = install_scene.released()
    scene:install(nvim)
    nvim:lua("vim.cmd('Co! echo one')")
    nvim:wait("return require('co.backend').status().ready")
    local pid = nvim:lua("return require('co.backend').status().pid")
    local other = install_scene.program() .. '# another\n'
    scene:release(other)
    same(DONE .. '; :Co /restart starts it', scene:install(nvim))
    holds(scene, nvim, other)
    -- The advice stays until the backend is restarted.
    local current = ('co: co-nvim %s is up to date'):format(version.version)
    same(current .. '; :Co /restart starts it', scene:install(nvim))
    local function is_warned()
      nvim:lua("vim.cmd('checkhealth co')")
      local report =
        table.concat(nvim:lua('return vim.api.nvim_buf_get_lines(0, 0, -1, true)'), '\n')
      return report:find('that process runs another program than this', 1, true) ~= nil
    end
    same(true, is_warned())
    nvim:lua("vim.cmd('bwipeout') vim.cmd('Co! echo two')")
    nvim:wait("return vim.fn.getbufline(vim.fn.bufnr('^co://shell$'), 1, '$')[6] == 'ran echo two'")
    same(pid, nvim:lua("return require('co.backend').status().pid"))
    nvim:lua("vim.cmd('Co /restart')")
    nvim:wait("return require('co.backend').status().ready")
    yes(nvim:lua("return require('co.backend').status().pid") ~= pid)
    same(current, scene:install(nvim))
    same(false, is_warned())
  end)

  it('blocks nothing, and runs once', function()
    local scene = install_scene.new()
    scene:release(install_scene.program())
    scene.server.hold[scene:asset()] = true
    local nvim = scene:neovim()
    nvim:lua("vim.cmd('Co /install')")
    neovim.wait('the request', function()
      return scene.server.held[scene:asset()]
    end)
    nvim:keys('ione<Esc>')
    nvim:wait("return vim.api.nvim_get_current_line() == 'one'")
    nvim:lua("vim.cmd('Co /install')")
    nvim:wait("return vim.list_contains(_G.notices, 'co: co-nvim is being installed already')")
    scene.server.held[scene:asset()]()
    nvim:wait('return vim.list_contains(_G.notices, ...)', DONE)
    holds(scene, nvim, install_scene.program())
  end)

  --- A download that fails, so that cargo builds the program.
  ---@param name string
  ---@param reason string
  ---@param break_it fun(scene: co.test.InstallScene)
  local function builds(name, reason, break_it)
    it('builds with cargo ' .. name, function()
      local scene = install_scene.new()
      scene:release(install_scene.program())
      break_it(scene)
      local built = install_scene.program() .. '# built\n'
      scene:cargo(built)
      local nvim = scene:neovim()
      same(DONE, scene:install(nvim))
      local steps = table.concat(nvim:lua("return require('co.ui.log').lines()"), '\n')
      yes(
        steps:find('with cargo, which takes some minutes (no download: ' .. reason, 1, true),
        steps
      )
      holds(scene, nvim, built)
      yes(
        vim.fn.readfile(scene.dir .. '/cargo')[1]:find('^cargo build %-%-profile local %-%-locked ')
      )
    end)
  end

  builds('after a wrong checksum', 'the checksum of the download is wrong)', function(scene)
    scene:release(install_scene.program(), ('0'):rep(64))
  end)
  builds('after half a download', 'curl: (18)', function(scene)
    scene.server.short[scene:asset()] = 40
  end)
  builds('after half a checksum', 'http://127.0.0.1:', function(scene)
    scene:release(install_scene.program(), ('0'):rep(63))
  end)
  builds('if there is no network', 'curl: (7)', function(scene)
    scene:origin('http://127.0.0.1:1/owner/co')
  end)
  builds('if there is no such release', 'there is no release of 0.1.0)', function(scene)
    scene.server.files = {}
  end)
  builds('if the release does not run', 'the new program does not run: ', function(scene)
    scene:release('\127ELF and no more')
  end)
  builds('if the release fails', 'the new program does not run: gone)', function(scene)
    scene:release('#!/bin/sh\necho gone >&2\nexit 3\n')
  end)
  builds('if the release has another version', 'the new program is "co-nvim 0.0.9', function(scene)
    scene:release(install_scene.program('co-nvim 0.0.9 (protocol 3)'))
  end)
  builds('if the origin is no server', 'the "origin" of the plugin is no address', function(scene)
    scene:origin('/srv/git/co')
  end)
  builds('if the plugin is no checkout', 'the plugin is no git checkout)', function(scene)
    vim.fn.delete(scene.root .. '/.git', 'rf')
  end)
  builds('if curl is missing', 'curl is not installed)', function(scene)
    vim.fn.delete(scene.dir .. '/bin/curl')
  end)
  builds('on another machine', 'there is no release for riscv64)', function(scene)
    local real = scene.neovim
    scene.neovim = function(self)
      local nvim = real(self)
      nvim:lua([[
        local uname = vim.uv.os_uname()
        vim.uv.os_uname = function()
          return vim.tbl_extend('force', uname, { machine = 'riscv64' })
        end
      ]])
      return nvim
    end
  end)

  it('says in one sentence that nothing worked, and names the log', function()
    local scene = install_scene.new()
    scene:origin('http://127.0.0.1:1/owner/co')
    local nvim = scene:neovim()
    local notice = scene:install(nvim)
    yes(notice:find('no download (curl: (7)', 1, true), notice)
    yes(notice:find('no build (cargo is not on PATH: install Rust 1.88 or newer)', 1, true), notice)
    yes(vim.endswith(notice, '; the log is ' .. scene:log_path()), notice)
    yes(scene:log():find('$ curl ', 1, true), scene:log())
    same({}, scene:installed())
    nvim:lua("vim.cmd('Co! echo one')")
    nvim:wait("return vim.list_contains(_G.notices, 'co: no co-nvim found: run :Co /install')")
  end)

  it('keeps the installed program if nothing worked', function()
    local scene, nvim = install_scene.released()
    scene:install(nvim)
    scene:release('#!/bin/sh\nexit 3\n')
    local notice = scene:install(nvim)
    yes(notice:find('is not installed', 1, true), notice)
    holds(scene, nvim, install_scene.program())
  end)

  it('gives the error of cargo', function()
    local scene = install_scene.new()
    scene:cargo('')
    vim.fn.writefile({
      '#!/bin/sh',
      "printf '   Compiling cc\\nerror: linker `cc` not found\\n  |\\nerror: could not compile\\n' >&2",
      'exit 101',
    }, scene.dir .. '/bin/cargo')
    local nvim = scene:neovim()
    local notice = scene:install(nvim)
    yes(notice:find('no build (error: linker `cc` not found)', 1, true), notice)
    yes(scene:log():find('Compiling cc', 1, true), scene:log())
  end)

  it('shows how far it is, and logs only the steps while it runs', function()
    local scene = install_scene.new()
    local built = install_scene.program()
    scene:cargo(built, true)
    local nvim = scene:neovim({ screen = true })
    nvim:lua("vim.cmd('Co /install')")
    nvim:wait_screen('co: building co-nvim 0.1.0: crate 1 of 2')
    yes(vim.endswith(scene:log(), '   Compiling co-nvim'), scene:log())
    scene:let_cargo_end()
    nvim:wait('return vim.list_contains(_G.notices, ...)', DONE)
    holds(scene, nvim, built)
    yes(
      not scene:log():find('1/2', 1, true) and scene:log():find('\n[exit 0]', 1, true),
      scene:log()
    )
  end)

  it('names the setting "bin" that hides the installed program', function()
    local scene, nvim = install_scene.released()
    nvim:lua("vim.g.co = { bin = '/bin/sh' }")
    same(DONE .. '; the setting "bin" names another: /bin/sh', scene:install(nvim))
  end)

  it('says on macOS where co runs', function()
    local scene = install_scene.new()
    local nvim = scene:neovim()
    nvim:lua([[
      vim.uv.os_uname = function() return { sysname = 'Darwin', machine = 'arm64' } end
      vim.cmd('Co /install')
      vim.cmd('Co! echo one')
    ]])
    local sentence = 'co: co runs on Linux only: on macOS, use it over ssh or in a dev container'
    nvim:wait('return #_G.notices > 0')
    yes(vim.startswith(nvim:lua('return _G.notices[1]'), sentence), nvim:lua('return _G.notices'))
    same({}, scene.server.requests)
  end)

  it('works in a start package', function()
    local scene = install_scene.new()
    local start = scene.dir .. '/data/nvim/site/pack/plugins/start'
    vim.fn.mkdir(start, 'p')
    assert(os.rename(scene.root, start .. '/co'))
    scene:release(install_scene.program())
    local nvim = scene:neovim({ root = false })
    nvim:lua('vim.o.packpath = ... vim.cmd("packloadall!")', scene.dir .. '/data/nvim/site')
    same(DONE, scene:install(nvim))
    holds(scene, nvim, install_scene.program())
  end)
end)

describe('the address of the releases', function()
  local install = require('co.install')
  local function check(remote, expected)
    it('is made from ' .. remote, function()
      same(expected and expected .. '/releases/download', install.releases(remote))
    end)
  end
  check('https://example.org/owner/co', 'https://example.org/owner/co')
  check('https://example.org/owner/co.git', 'https://example.org/owner/co')
  check('https://example.org/owner/co/', 'https://example.org/owner/co')
  check('https://example.org:8443/owner/co.git', 'https://example.org:8443/owner/co')
  check('https://me:token@example.org/owner/co.git', 'https://example.org/owner/co')
  check('git@example.org:owner/co.git', 'https://example.org/owner/co')
  check('example.org:/owner/co.git', 'https://example.org/owner/co')
  check('ssh://git@example.org:2222/owner/co.git', 'https://example.org/owner/co')
  check('git+ssh://git@example.org/owner/co', 'https://example.org/owner/co')
  check('git://example.org/owner/co.git', 'https://example.org/owner/co')
  check('file:///srv/co.git', 'file:///srv/co')
  check('/srv/git/co.git', nil)
  check('../co', nil)
end)
