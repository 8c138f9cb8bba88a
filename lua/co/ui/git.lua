--- Runs git for what it knows of files.
local M = {}

-- The longest time that git may take.
local LONGEST_MS = 3000

--- Runs git without locks, without the network, and without the programs that a repository may name, except its filters.
--- Neovim does not wait.
---@param cwd string
---@param arguments string[]
---@param done fun(output?: string, problem: string, code?: integer) the output is nil if git failed
function M.run(cwd, arguments, done)
  local command = { 'git', '--no-pager', '-c', 'diff.submodule=short' }
  for _, setting in ipairs({ 'color.ui', 'core.fsmonitor', 'log.showSignature' }) do
    vim.list_extend(command, { '-c', setting .. '=false' })
  end
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
  local started = pcall(vim.system, vim.list_extend(command, arguments), {
    cwd = cwd,
    timeout = LONGEST_MS,
    env = { GIT_OPTIONAL_LOCKS = '0', GIT_NO_LAZY_FETCH = '1', GIT_TERMINAL_PROMPT = '0' },
  }, vim.schedule_wrap(ended))
  if not started then
    done(nil, 'git cannot be run')
  end
end

return M
