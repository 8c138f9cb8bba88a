--- `/worktree`: makes a worktree of git beside the workspace, and opens a chat in it.
local M = {}

local api = vim.api
local directory = require('co.ui.directory')
local notify = require('co.ui.notify')
local printable = require('co.ui.printable')
local select = require('co.ui.select')

--- Returns the directory of a new worktree: beside the top of the work tree that `cwd` is in.
---@param name string
---@param cwd string
---@return string?
local function place(name, cwd)
  local root = vim.fs.root(cwd, '.git')
  return root and ('%s-%s'):format(vim.fs.normalize(root), name)
end

--- Opens a chat in a worktree when the run that makes it has ended well.
---@param run integer
---@param dir string
local function open_at_end(run, dir)
  api.nvim_create_autocmd('User', {
    pattern = 'CoJobDone',
    callback = function(event)
      if event.data.run ~= run then
        return
      end
      if event.data.exit == 0 then
        local chat = require('co.chat').new(dir)
        if chat then
          require('co.chat.window').show(chat, true)
        end
      end
      -- The autocommand is no longer needed.
      return true
    end,
  })
end

--- Makes a worktree with a branch of that name, after a question. The command is one of the person, as of `:Co!`.
---@param name string
---@param cwd string
---@return boolean taken
function M.make(name, cwd)
  if not name:match('^%w[%w._-]*$') then
    notify.error('/worktree takes a name of letters, digits, "-", "_" and ".", such as fix-login')
    return false
  elseif not directory.existing(cwd) then
    return false
  end
  local dir = place(name, cwd)
  if not dir then
    notify.error(('/worktree needs a repository of git, and %s is in none'):format(cwd))
    return false
  elseif vim.uv.fs_stat(dir) then
    notify.error(('%s is there already: /new and /cd %s work in it'):format(dir, dir))
    return false
  end
  local prompt = ('Make the worktree %s with the new branch %s?'):format(printable.path(dir), name)
  select.show({ 'no', 'yes' }, { prompt = prompt }, function(answer)
    if answer ~= 'yes' then
      return
    end
    local command = ('git worktree add -b %s %s'):format(name, vim.fn.shellescape(dir))
    local run = require('co.run').run(command, cwd)
    if run then
      open_at_end(run, dir)
    end
  end)
  return true
end

return M
