--- `:checkhealth co`: checks of Neovim and the plugin, and the report of the backend.
local M = {}

local health = vim.health
local printable = require('co.ui.printable')

--- Checks the executable of the backend and returns its path.
---@return string?
local function check_backend()
  local backend = require('co.backend')
  local executable = require('co.backend.executable')
  local version = require('co.version')
  health.start('co: the backend')
  for _, candidate in ipairs(executable.candidates()) do
    if vim.fn.executable(candidate) == 1 then
      health.ok(candidate)
    else
      health.info(candidate .. ' is not there')
    end
  end
  local path, problem = executable.find()
  if not path then
    health.error(problem --[[@as string]], {
      'run :Co /install',
      'or set "bin" to the path of co-nvim',
    })
    return nil
  end
  local ok, result = pcall(function()
    return vim.system({ path, '--version' }, { text = true, timeout = 5000 }):wait()
  end)
  if not ok or result.code ~= 0 then
    health.error(
      ('%s --version failed: %s'):format(path, ok and printable.trim(result.stderr or '') or result)
    )
    return nil
  end
  local found = printable.trim(result.stdout or ''):gsub('^co%-nvim ', '')
  local wanted = ('%s (protocol %d)'):format(version.version, version.protocol)
  if found == wanted then
    health.ok('version ' .. found)
  else
    local step = require('co.config').get().bin
        and 'the setting "bin" names this program: change the setting, or remove it and run :Co /install'
      or 'run :Co /install'
    health.warn(('%s is version %s, the plugin is %s'):format(path, found, wanted), { step })
  end
  local status = backend.status()
  health.info(
    status.running and ('running as process %d'):format(status.pid)
      or 'not started yet: the first :Co does'
  )
  if backend.is_outdated() then
    health.warn('that process runs another program than this', { 'run :Co /restart' })
  end
  return path
end

---@class (exact) co.health.Check
---@field name string
---@field level 'ok'|'warn'|'error'
---@field message string
---@field advice? string

--- Shows one check of the backend.
---@param check co.health.Check
local function report(check)
  local text = ('%s: %s'):format(check.name, check.message)
  local advice = check.advice and { check.advice } or {}
  if check.level == 'error' then
    health.error(text, advice)
  elseif check.level == 'warn' then
    health.warn(text, advice)
  else
    health.ok(text)
  end
end

--- Shows the report of `co-nvim doctor --json`. An exit status other than 0 comes with a report, too.
---@param path string
local function ask_doctor(path)
  health.start('co: what the backend reports')
  local ok, result = pcall(function()
    local settings = vim.json.encode(require('co.config').settings())
    local command = { path, 'doctor', '--json', '--settings', settings }
    return vim.system(command, { text = true, timeout = 20000 }):wait()
  end)
  local parsed, checks = false, nil
  if ok then
    parsed, checks = pcall(vim.json.decode, result.stdout or '')
  end
  if not parsed or type(checks) ~= 'table' then
    health.error(
      ('%s doctor --json gave no report: %s'):format(
        path,
        ok and printable.trim(result.stderr or '') or result
      )
    )
    return
  end
  for _, check in ipairs(checks) do
    report(check)
  end
end

--- Runs all checks.
function M.check()
  if vim.fn.has('nvim-0.10') == 0 then
    ---@diagnostic disable-next-line: undefined-field -- the names of 0.7
    local report = vim.health and vim.health.error or require('health').report_error
    report('Neovim 0.10 or later is needed')
    return
  end
  health.start('co: the editor')
  health.ok(vim.fn.execute('version'):match('NVIM v%S+') or 'Neovim')
  for _, problem in ipairs(require('co.config').problems()) do
    health.error(problem)
  end
  if #vim.api.nvim_get_runtime_file('parser/markdown.*', false) > 0 then
    health.ok('markdown parser found')
  else
    health.warn('no markdown parser: chats are coloured by syntax rules', {})
  end
  local path = check_backend()
  if path then
    ask_doctor(path)
  end
end

return M
