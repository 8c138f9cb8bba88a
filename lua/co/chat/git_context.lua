--- The contexts that git reads: `@diff`, `@git:HEAD~1` and `@search:text`.
local M = {}

local git = require('co.ui.git')

--- Gives the changes that are staged and those that are not.
---@param cwd string
---@param done fun(context?: co.Context, missing?: string)
function M.diff(cwd, done)
  local diff = vim.list_extend({ 'diff', 'HEAD' }, git.PLAIN_DIFF)
  git.run(cwd, diff, function(text, problem)
    if not text then
      done(nil, problem:find("'HEAD'", 1, true) and 'there is no commit yet' or problem)
    elseif text == '' then
      done(nil, 'git has no changes')
    else
      done({ name = '@diff', text = text })
    end
  end)
end

--- Gives a commit with its changes, or another object of git.
---@param revision string
---@param cwd string
---@param done fun(context?: co.Context, missing?: string)
function M.show(revision, cwd, done)
  local show = vim.list_extend({ 'show' }, git.PLAIN_DIFF)
  git.run(cwd, vim.list_extend(show, { '--end-of-options', revision }), function(text, problem)
    done(text and { name = '@git:' .. revision, text = text }, problem)
  end)
end

--- Gives the lines of files below a directory that contain a text. Ignored files are left out.
---
--- A NUL is after the name and after the number of each line: the backend leaves out the lines of secret files.
---@param wanted string
---@param cwd string
---@param done fun(context?: co.Context, missing?: string)
function M.search(wanted, cwd, done)
  ---@param text? string
  ---@param problem string
  ---@param code? integer
  local function found(text, problem, code)
    if text then
      done({ name = '@search:' .. wanted, text = text })
    else
      done(nil, code == 1 and 'no line contains it' or problem)
    end
  end
  local grep = { 'grep', '-nz', '-I', '-F', '--untracked', '-e', wanted }
  git.run(cwd, grep, function(text, problem, code)
    if text or not code or code <= 1 or code == 124 then
      return found(text, problem, code)
    end
    -- It is no repository.
    local anywhere = vim.list_extend(vim.deepcopy(grep), { '--exclude-standard' })
    anywhere[5] = '--no-index'
    git.run(cwd, anywhere, found)
  end)
end

return M
