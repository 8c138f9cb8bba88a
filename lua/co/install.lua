--- Installs the backend: downloads the release of this version, or builds it with cargo.
---
--- It requires no other module: `build.lua` loads it from a directory that is not on 'runtimepath', or beside an older
--- co that is still loaded.
local M = {}

-- The releases of `.github/workflows/release.yml`, by machine.
local TARGETS = { x86_64 = 'x86_64-unknown-linux-musl', aarch64 = 'aarch64-unknown-linux-musl' }

local CARGO = vim.split('cargo build --profile local --locked', ' ')

-- A server that sends less than 1,000 bytes a second for 30 seconds counts as dead.
local CURL = { 'curl', '--fail', '--location', '--show-error', '--connect-timeout', '15' }
vim.list_extend(CURL, { '--speed-limit', '1000', '--speed-time', '30' })

local VERSION_MS = 10000

---@class (exact) co.install.Options
---@field on_step fun(message: string) called when another step begins
---@field on_progress fun(message: string) called often within a step
---@field on_done fun(problem: string?, message: string) called once, with the problem or with what was done

---@class (exact) co.install.Job
---@field options co.install.Options
---@field thread thread
---@field root string
---@field version string
---@field reported string what `--version` of the program must print
---@field path string
---@field new string the new program until it replaces the old one
---@field child? vim.SystemObj
---@field cancelled boolean

---@class (exact) co.install.Result
---@field code integer
---@field stdout string
---@field stderr string

--- Returns the directory of the plugin.
---@return string
function M.root()
  local source = assert(debug.getinfo(1, 'S')).source:sub(2)
  -- The file is lua/co/install.lua below the root.
  return vim.fn.fnamemodify(source, ':p:h:h:h')
end

--- Returns the path of the installed program.
---@param version string
---@return string
function M.path(version)
  return ('%s/co/bin/co-nvim-%s'):format(vim.fn.stdpath('data'), version)
end

--- Returns the log of the last installation. It is beside the log of the backend.
---@return string
function M.log_path()
  return vim.fs.dirname(vim.fn.stdpath('state') --[[@as string]]) .. '/co-nvim/install.log'
end

--- Returns the names of the system and of the machine.
---@return { sysname: string, machine: string }
local function uname()
  ---@diagnostic disable-next-line: undefined-field -- the checker knows little of libuv
  return vim.uv.os_uname()
end

--- Returns the reason why co cannot run on this system.
---@return string?
function M.unsupported()
  local system = uname().sysname
  if system == 'Linux' then
    return nil
  end
  return ('co runs on Linux only: on %s, use it over ssh or in a dev container'):format(
    system == 'Darwin' and 'macOS' or system
  )
end

--- Returns the address of the releases, from the address of the repository. GitHub, Gitea and Forgejo have them there.
---@param remote string
---@return string?
function M.releases(remote)
  local scheme, rest = remote:match('^([%w+]+)://(.+)$')
  if not scheme then
    -- The short form of ssh: `git@host:owner/name`.
    local host, path = remote:match('^([^/]+):/*(.+)$')
    scheme, rest = 'ssh', host and ('%s/%s'):format(host, path)
  end
  if not rest then
    return nil
  end
  if scheme ~= 'http' and scheme ~= 'file' then
    scheme = 'https'
    rest = remote:match('^https:') and rest or rest:gsub('^([^/]*):%d+/', '%1/')
  end
  -- A password in the address is not for curl.
  rest = rest:gsub('^[^/]*@', ''):gsub('/+$', ''):gsub('%.git$', '')
  return ('%s://%s/releases/download'):format(scheme, rest)
end

--- Appends to the log. A log that cannot be written is no reason to stop.
---@param text string
local function log(text)
  local file = io.open(M.log_path(), 'a')
  if file then
    file:write(text, '\n')
    file:close()
  end
end

--- Ends the job.
---@param job co.install.Job
---@param problem? string
---@param message? string what was done
local function finish(job, problem, message)
  os.remove(job.new)
  log(problem or message or '')
  job.options.on_done(problem, message or '')
end

--- Continues the job.
---@param job co.install.Job
---@param ... any
local function resume(job, ...)
  local ok, problem = coroutine.resume(job.thread, ...)
  if not ok then
    finish(job, tostring(problem))
  end
end

--- Runs a program and waits for its end without blocking. The log gets its output.
---@param job co.install.Job
---@param command string[]
---@param on_stderr? fun(text: string) called in a fast event
---@param opts? vim.SystemOpts
---@return co.install.Result
local function run(job, command, on_stderr, opts)
  if job.cancelled then
    return { code = 130, stdout = '', stderr = '' }
  end
  ---@type string[]
  local lines = {}
  local rest = ''
  -- A bar that moves is not for the log.
  local function add(line)
    lines[#lines + 1] = line:gsub('^.*\r', '')
    log(lines[#lines])
  end
  log('$ ' .. table.concat(command, ' '))
  opts = vim.tbl_extend('force', opts or {}, {
    stderr = function(_, data)
      local parts = vim.split(rest .. (data or ''), '\n', { plain = true })
      rest = table.remove(parts)
      vim.tbl_map(add, parts)
      if data and on_stderr then
        on_stderr(data)
      end
    end,
  })
  local on_exit = vim.schedule_wrap(function(done)
    resume(job, done)
  end)
  local started, child = pcall(vim.system, command, opts, on_exit)
  local code, stdout = 127, ''
  if started then
    job.child = child
    ---@diagnostic disable-next-line: await-in-sync -- `job.thread` runs this
    local done = coroutine.yield() --[[@as vim.SystemCompleted]]
    job.child = nil
    code, stdout = done.code ~= 0 and done.code or done.signal, done.stdout or ''
  else
    local absent = tostring(child):find('ENOENT', 1, true)
    rest = absent and command[1] .. ' is not installed' or tostring(child):gsub('^.-:%d+: ', '')
  end
  if rest ~= '' then
    add(rest)
  end
  log(('[exit %d]'):format(code))
  return { code = code, stdout = stdout, stderr = table.concat(lines, '\n') }
end

--- Returns a function that reports the last match of `pattern` in the text that it gets.
---@param job co.install.Job
---@param pattern string
---@param message string with a place for each capture
---@return fun(text: string)
local function progress(job, pattern, message)
  ---@type string?
  local last
  local tail = ''
  return function(text)
    -- A line may come in pieces.
    tail = (tail .. text):sub(-200)
    ---@type string?, string?
    local first, second = tail:match('^.*%D' .. pattern)
    local told = first and message:format(first, second)
    if told and told ~= last then
      last = told
      vim.schedule(function()
        job.options.on_progress(told)
      end)
    end
  end
end

--- Returns the first line of an error message that starts with `start`, or the first line.
---@param result co.install.Result
---@param start string
---@return string
local function reason(result, start)
  for line in vim.gsplit(result.stderr, '\n') do
    if vim.startswith(line, start) then
      return line
    end
  end
  local first = vim.split(vim.trim(result.stderr), '\n')[1]
  return first ~= '' and first or ('exit %d'):format(result.code)
end

--- Returns the SHA-256 of a file as hexadecimal digits.
---@param job co.install.Job
---@param path string
---@return string?
local function checksum(job, path)
  return run(job, { 'sha256sum', '--', path }).stdout:match('^\\?(%x+)')
end

--- Replaces the old program by the new one if that runs and has the right version. A running backend keeps the old file.
---@param job co.install.Job
---@return string? problem
local function replace(job)
  vim.fn.setfperm(job.new, 'rwxr-xr-x')
  local result = run(job, { job.new, '--version' }, nil, { timeout = VERSION_MS })
  local reported = vim.trim(result.stdout)
  if result.code ~= 0 then
    return ('the new program does not run: %s'):format(reason(result, 'co-nvim'))
  elseif reported ~= job.reported then
    return ('the new program is "%s", not "%s"'):format(reported, job.reported)
  end
  local renamed, problem = os.rename(job.new, job.path)
  return not renamed and problem or nil
end

--- Returns the address of the release, from the `origin` of the plugin's checkout.
---@param job co.install.Job
---@return string?
---@return string? problem
local function address(job)
  local machine = uname().machine
  local target = TARGETS[machine]
  if not target then
    return nil, ('there is no release for %s'):format(machine)
  end
  local git = job.root .. '/.git'
  if not vim.uv.fs_stat(git) then
    return nil, 'the plugin is no git checkout'
  end
  -- Without `--git-dir`, GIT_DIR or a directory above the plugin could name another repository.
  local result = run(job, { 'git', '--git-dir', git, 'remote', 'get-url', 'origin' })
  if result.code ~= 0 then
    return nil, reason(result, 'error')
  end
  local releases = M.releases(vim.trim(result.stdout))
  if not releases then
    return nil, 'the "origin" of the plugin is no address of a server'
  end
  return ('%s/v%s/co-nvim-%s'):format(releases, job.version, target)
end

--- Returns the reason why a download failed.
---@param job co.install.Job
---@param result co.install.Result
---@return string
local function download_problem(job, result)
  if result.stderr:find('error: 404', 1, true) then
    return ('there is no release of %s'):format(job.version)
  end
  return reason(result, 'curl')
end

--- Downloads the release.
---@param job co.install.Job
---@return string? problem
---@return boolean? current the installed program is the release
local function download(job)
  local url, problem = address(job)
  if not url then
    return problem
  end
  local message = 'downloading co-nvim ' .. job.version
  job.options.on_step(message)
  -- A redirection must not leave TLS.
  local curl = vim.list_extend({}, CURL)
  if vim.startswith(url, 'https:') then
    vim.list_extend(curl, { '--proto-redir', '=https' })
  end
  local result = run(job, vim.list_extend({ unpack(curl) }, { '--silent', url .. '.sha256' }))
  if result.code ~= 0 then
    return download_problem(job, result)
  end
  local wanted = result.stdout:match('^%x+')
  if not wanted or #wanted ~= 64 then
    return ('%s.sha256 is no checksum'):format(url)
  end
  if vim.uv.fs_stat(job.path) and checksum(job, job.path) == wanted then
    return nil, true
  end
  local show = progress(job, '(%d+)%.%d%%', message .. ': %s%%')
  result = run(job, vim.list_extend(curl, { '--progress-bar', '--output', job.new, url }), show)
  if result.code ~= 0 then
    return download_problem(job, result)
  end
  if checksum(job, job.new) ~= wanted then
    return 'the checksum of the download is wrong'
  end
  return replace(job)
end

--- Returns the path of the program that cargo built, from its messages.
---@param messages string
---@return string?
local function built_program(messages)
  for line in vim.gsplit(messages, '\n') do
    local ok, message = pcall(vim.json.decode, line)
    local path = ok and type(message) == 'table' and message.executable
    if type(path) == 'string' and vim.fs.basename(path) == 'co-nvim' then
      return path
    end
  end
end

--- Builds the program from the plugin's own source.
---@param job co.install.Job
---@param no_download string the reason
---@return string? problem
local function build(job, no_download)
  if vim.fn.executable('cargo') == 0 then
    return 'cargo is not on PATH: install Rust 1.88 or newer'
  end
  local step = 'building co-nvim %s with cargo, which takes some minutes (no download: %s)'
  job.options.on_step(step:format(job.version, no_download))
  local command = vim.list_extend({ unpack(CARGO) }, { '--message-format=json-render-diagnostics' })
  local message = ('building co-nvim %s: crate %%s of %%s'):format(job.version)
  local show = progress(job, '(%d+)/(%d+):', message)
  local result = run(job, command, show, {
    cwd = job.root,
    env = {
      CARGO_TERM_COLOR = 'never',
      CARGO_TERM_PROGRESS_WHEN = 'always',
      CARGO_TERM_PROGRESS_WIDTH = '80',
    },
  })
  if result.code ~= 0 then
    return reason(result, 'error')
  end
  local program = built_program(result.stdout)
  if not program then
    return 'cargo does not say where the program is'
  end
  result = run(job, { 'cp', '--', program, job.new })
  return result.code ~= 0 and reason(result, 'cp') or replace(job)
end

--- Downloads the release, or builds the program.
---@param job co.install.Job
local function install(job)
  local made, problem = pcall(vim.fn.mkdir, vim.fs.dirname(job.path), 'p')
  if not made then
    finish(job, ('co-nvim cannot be installed: %s'):format(problem))
    return
  end
  local no_download, current = download(job)
  local no_build
  if no_download and not job.cancelled then
    no_build = build(job, no_download)
  end
  if job.cancelled then
    finish(job, 'the installation was cancelled')
  elseif no_build then
    local text = 'co-nvim %s is not installed: no download (%s), no build (%s); the log is %s'
    finish(job, text:format(job.version, no_download, no_build, M.log_path()))
  else
    local done = current and 'is up to date' or 'is installed'
    finish(job, nil, ('co-nvim %s %s'):format(job.version, done))
  end
end

local count = 0

--- Installs the backend without blocking, and returns a function that cancels this.
---@param options co.install.Options
---@return fun() cancel
function M.start(options)
  local problem = M.unsupported()
  if problem then
    options.on_done(problem, '')
    return function() end
  end
  local root = M.root()
  local version = dofile(root .. '/lua/co/version.lua')
  count = count + 1
  ---@type co.install.Job
  local job = {
    options = options,
    thread = coroutine.create(install),
    root = root,
    version = version.version,
    reported = ('co-nvim %s (protocol %d)'):format(version.version, version.protocol),
    path = M.path(version.version),
    -- Two Neovims may install at the same time.
    new = ('%s.%d-%d.tmp'):format(M.path(version.version), vim.fn.getpid(), count),
    cancelled = false,
  }
  pcall(vim.fn.mkdir, vim.fs.dirname(M.log_path()), 'p', '0o700')
  os.remove(M.log_path())
  resume(job, job)
  return function()
    job.cancelled = true
    if job.child then
      job.child:kill('sigterm')
    end
  end
end

return M
