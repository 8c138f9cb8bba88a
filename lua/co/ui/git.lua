--- Runs git for what it knows of files.
local M = {}

-- The longest time that git may take.
local LONGEST_MS = 3000

-- Programs that a setting of any repository may name.
local NO_PROGRAMS = {
  ['core.fsmonitor'] = 'false',
  ['core.hooksPath'] = '/dev/null',
  ['diff.submodule'] = 'short',
  ['log.showSignature'] = 'false',
}

--- Options of `git diff` and `git show`: without the programs of a repository and of its submodules.
M.PLAIN_DIFF = { '--no-ext-diff', '--no-textconv', '--ignore-submodules=dirty' }

---@alias co.git.Done fun(output?: string, problem: string, code?: integer) the output is nil if git failed

--- Runs git without locks and without the network.
---@param cwd string
---@param arguments string[]
---@param done co.git.Done
local function run(cwd, arguments, done)
  ---@param result vim.SystemCompleted
  local function ended(result)
    if result.code == 0 then
      done(result.stdout or '', '')
    elseif result.code == 124 then
      done(nil, ('git took more than %d s'):format(LONGEST_MS / 1000), 124)
    else
      local lines = vim.split(vim.trim(result.stderr or ''), '\n', { plain = true })
      done(nil, lines[1], result.code)
    end
  end
  local started = pcall(vim.system, vim.list_extend({ 'git', '--no-pager' }, arguments), {
    cwd = cwd,
    timeout = LONGEST_MS,
    env = {
      GIT_OPTIONAL_LOCKS = '0',
      GIT_NO_LAZY_FETCH = '1',
      -- Older versions of git do not know the line above.
      GIT_ALLOW_PROTOCOL = '',
      CO_EMPTY = '',
    },
  }, vim.schedule_wrap(ended))
  if not started then
    done(nil, 'git cannot be run')
  end
end

--- Returns the options that turn the filters and the hooks in the settings of a repository off. Git has no single
--- option for that. The filters of the person, such as git-lfs, stay.
---@param settings string for each setting its scope and its name, with a NUL after each
---@return string[]
local function without_filters(settings)
  local options = {}
  for scope, name in settings:gmatch('(%Z+)%z(%Z+)%z') do
    local theirs = scope ~= 'system' and scope ~= 'global' and scope ~= 'command'
    local hook = name:match('^hook%..*%.')
    local setting = hook and hook .. 'enabled' or name:match('^filter%..+$')
    if theirs and setting then
      -- The name of a filter may have a `=`, which `-c` would end it at.
      options[#options + 1] = ('--config-env=%s=CO_EMPTY'):format(setting)
    end
  end
  return options
end

--- Runs git without locks, without the network, and without the programs that a repository names. Neovim does not wait.
---@param cwd string
---@param arguments string[] of `diff` and `show` with `PLAIN_DIFF`
---@param done co.git.Done
function M.run(cwd, arguments, done)
  local list = { 'config', '--list', '--show-scope', '--name-only', '-z' }
  run(cwd, list, function(settings, problem, code)
    if not settings then
      return done(nil, problem, code)
    end
    local options = without_filters(settings)
    for name, value in pairs(NO_PROGRAMS) do
      vim.list_extend(options, { '-c', ('%s=%s'):format(name, value) })
    end
    vim.list_extend(options, { '-c', 'color.ui=false' })
    run(cwd, vim.list_extend(options, arguments), done)
  end)
end

return M
