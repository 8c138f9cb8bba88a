--- The contexts that git reads: `@diff`, `@git:HEAD~1` and `@search:text`.
local M = {}

-- Neovim waits for git meanwhile.
local LONGEST_MS = 3000

--- Runs git without the programs that a repository may name, without locks and without the network.
---@param cwd string
---@param arguments string[]
---@return string? output nil if git failed
---@return string problem
---@return integer? code
local function git(cwd, arguments)
  local command = { 'git', '--no-pager', '-c', 'core.fsmonitor=false', '-c', 'color.ui=false' }
  local started, process = pcall(vim.system, vim.list_extend(command, arguments), {
    cwd = cwd,
    timeout = LONGEST_MS,
    env = { GIT_OPTIONAL_LOCKS = '0', GIT_NO_LAZY_FETCH = '1', GIT_TERMINAL_PROMPT = '0' },
  })
  if not started then
    return nil, 'git cannot be run'
  end
  local result = process:wait()
  if result.code == 0 then
    return result.stdout or '', ''
  elseif result.code == 124 then
    return nil, ('git took more than %d s'):format(LONGEST_MS / 1000), 124
  end
  return nil, vim.split(vim.trim(result.stderr or ''), '\n', { plain = true })[1], result.code
end

--- Returns the changes that are staged and those that are not.
---@param cwd string
---@return co.Context?
---@return string? missing
function M.diff(cwd)
  local text, problem = git(cwd, { 'diff', '--no-ext-diff', '--no-textconv', 'HEAD' })
  if not text then
    return nil, problem:find("'HEAD'", 1, true) and 'there is no commit yet' or problem
  elseif text == '' then
    return nil, 'git has no changes'
  end
  return { name = '@diff', text = text }
end

--- Returns a commit with its changes, or another object of git.
---@param revision string
---@param cwd string
---@return co.Context?
---@return string? missing
function M.show(revision, cwd)
  local text, problem =
    git(cwd, { 'show', '--no-ext-diff', '--no-textconv', '--end-of-options', revision })
  return text and { name = '@git:' .. revision, text = text }, problem
end

--- Returns the lines of files below a directory that contain a text. Ignored files are left out.
---
--- A NUL is after the name and after the number of each line: the backend leaves out the lines of secret files.
---@param wanted string
---@param cwd string
---@return co.Context?
---@return string? missing
function M.search(wanted, cwd)
  local grep = { 'grep', '-nz', '-I', '-F', '--untracked', '-e', wanted }
  local text, problem, code = git(cwd, grep)
  if code and code > 1 and code ~= 124 then
    -- It is no repository.
    grep[5] = '--no-index'
    text, problem, code = git(cwd, vim.list_extend(grep, { '--exclude-standard' }))
  end
  if not text then
    return nil, code == 1 and 'no line contains it' or problem
  end
  return { name = '@search:' .. wanted, text = text }
end

return M
