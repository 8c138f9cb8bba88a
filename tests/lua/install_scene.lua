--- A checkout of the plugin whose `origin` is a server of the test, and a Neovim that finds only the programs it needs.
local M = {}

---@diagnostic disable: undefined-field -- the checker knows little of libuv

local neovim = require('neovim')
local http_server = require('http_server')
local version = require('co.version')

local ASSET = ('/owner/co/releases/download/v%s/co-nvim-%s-unknown-linux-musl'):format(
  version.version,
  vim.uv.os_uname().machine
)

---@class co.test.InstallScene
---@field dir string
---@field root string the checkout
---@field env table<string, string>
---@field server co.test.Server
local Scene = {}
Scene.__index = Scene

---@param path string
---@param lines string[]
local function write_program(path, lines)
  vim.fn.mkdir(vim.fs.dirname(path), 'p')
  vim.fn.writefile(lines, path, 'b')
  vim.fn.setfperm(path, 'rwxr-xr-x')
end

--- Returns a program in the place of co-nvim that prints this for `--version`, and else is the stand-in.
---@param reported? string
---@return string
function M.program(reported)
  return table.concat({
    '#!/bin/sh',
    ('[ "$1" = --version ] && { echo \'%s\'; exit; }'):format(
      reported or ('co-nvim %s (protocol %d)'):format(version.version, version.protocol)
    ),
    ("CO_TEST_LOG=/dev/null exec '%s' --headless --clean -l '%s/tests/lua/stand_in.lua' ready"):format(
      vim.v.progpath,
      co_root
    ),
    '',
  }, '\n')
end

--- Makes a scene. Its paths have blanks.
---@return co.test.InstallScene
function M.new()
  local self = setmetatable({}, Scene)
  self.dir = vim.fn.tempname() .. ' with blanks'
  self.root = self.dir .. '/the plugin'
  vim.fn.mkdir(self.root, 'p')
  vim.fn.mkdir(self.dir .. '/bin', 'p')
  for _, name in ipairs({ 'lua', 'plugin', 'build.lua' }) do
    assert(vim.uv.fs_symlink(co_root .. '/' .. name, self.root .. '/' .. name))
  end
  for _, name in ipairs({ 'git', 'curl', 'sha256sum', 'cp', 'sh' }) do
    assert(vim.uv.fs_symlink(vim.fn.exepath(name), self.dir .. '/bin/' .. name))
  end
  self.env = {
    PATH = self.dir .. '/bin',
    XDG_DATA_HOME = self.dir .. '/data',
    XDG_STATE_HOME = self.dir .. '/state',
    XDG_CONFIG_HOME = self.dir .. '/config',
    -- A proxy is not for this machine.
    no_proxy = '127.0.0.1',
  }
  self.server = http_server.start()
  self:origin(('http://127.0.0.1:%d/owner/co.git'):format(self.server.port))
  return self
end

--- Sets the address of the repository.
---@param address string
function Scene:origin(address)
  vim.fn.delete(self.root .. '/.git', 'rf')
  vim.fn.system({ 'git', 'init', '-q', self.root })
  vim.fn.system({ 'git', '-C', self.root, 'remote', 'add', 'origin', address })
  same(0, vim.v.shell_error)
end

--- Publishes a release.
---@param program string
---@param checksum? string
function Scene:release(program, checksum)
  self.server.files[ASSET] = program
  self.server.files[ASSET .. '.sha256'] = (checksum or vim.fn.sha256(program)) .. '  co-nvim\n'
end

---@return string
function Scene:asset()
  return ASSET
end

--- Puts a cargo on PATH that builds a program.
---@param program string
---@param wait? boolean it waits for `let_cargo_end`
function Scene:cargo(program, wait)
  local built = self.root .. '/target/local/co-nvim'
  write_program(self.dir .. '/co-nvim', vim.split(program, '\n'))
  if wait then
    vim.fn.system({ 'mkfifo', self.dir .. '/go' })
  end
  write_program(self.dir .. '/bin/cargo', {
    '#!/bin/sh',
    ('echo "cargo $*" > \'%s/cargo\''):format(self.dir),
    '/bin/mkdir -p target/local',
    ("cp '%s/co-nvim' target/local/co-nvim"):format(self.dir),
    "printf '   Compiling co-nvim\\n   Building [==>  ] 1/2: co-nvim\\r' >&2",
    wait and ("read -r line < '%s/go'"):format(self.dir) or '',
    ('echo \'{"reason":"compiler-artifact","executable":"%s"}\''):format(built),
    '',
  })
end

--- Lets the cargo that waits go on.
function Scene:let_cargo_end()
  vim.fn.writefile({ 'go' }, self.dir .. '/go')
end

--- Starts a Neovim with the plugin.
---@param opts? table
---@return co.test.Neovim
function Scene:neovim(opts)
  local nvim = neovim.start(
    vim.tbl_extend('force', { bare = true, env = self.env, root = self.root }, opts or {})
  )
  nvim:lua(
    [[
    if not ... then
      vim.o.columns = 300
    end
    _G.notices = {}
    vim.notify = function(message) table.insert(_G.notices, message) end
    vim.cmd('runtime plugin/co.lua')
  ]],
    opts and opts.screen
  )
  return nvim
end

--- Returns the path of the installed program.
---@return string
function Scene:path()
  return ('%s/data/nvim/co/bin/co-nvim-%s'):format(self.dir, version.version)
end

--- Returns the names of all files beside the installed program.
---@return string[]
function Scene:installed()
  return vim.fn.glob(vim.fs.dirname(self:path()) .. '/*', true, true)
end

---@return string
function Scene:log_path()
  return self.dir .. '/state/co-nvim/install.log'
end

---@return string
function Scene:log()
  return table.concat(vim.fn.readfile(self:log_path()), '\n')
end

--- Runs `:Co /install` and returns its last notice.
---@param nvim co.test.Neovim
---@return string
function Scene:install(nvim)
  nvim:lua("_G.notices = {} vim.cmd('Co /install')")
  nvim:wait([[
    local last = _G.notices[#_G.notices] or ''
    return last:find('is installed') or last:find('is not installed') or last:find('up to date')
  ]])
  return nvim:lua('return _G.notices[#_G.notices]')
end

--- Publishes the release of this version, and starts a Neovim with the plugin.
---@param opts? table
---@return co.test.InstallScene
---@return co.test.Neovim
function M.released(opts)
  local scene = M.new()
  scene:release(M.program())
  return scene, scene:neovim(opts)
end

return M
