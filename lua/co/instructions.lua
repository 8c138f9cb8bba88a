--- What a workspace asks of the agent: its `AGENTS.md` or `CO.md`, if the person trusts it.
local M = {}

local notify = require('co.notify')

local NAMES = { 'CO.md', 'AGENTS.md' }
local LARGEST = 1024 * 1024

--- Asked about once a Neovim and file: a question at every prompt would be answered without reading.
---@type table<string, string|false>
local known = {}

---@param path string
---@return string|false
local function read(path)
  local stat = vim.uv.fs_stat(path)
  if not stat then
    return false
  end
  local size = vim.fn.getfsize(path)
  -- A FIFO would hold Neovim until somebody writes to it; a device may have no end.
  local problem = stat.type ~= 'file' and 'it is not a regular file'
    or (size < 0 or size > LARGEST) and 'it is larger than 1 MiB'
  if problem then
    local name = vim.fn.fnamemodify(path, ':~:.')
    notify.warn(('%s is left out: %s'):format(name, problem))
    return false
  end
  local ok, text = pcall(vim.secure.read, path)
  return ok and type(text) == 'string' and text or false
end

--- The instructions of the workspace that `cwd` is in; nil where there are none or they are not trusted.
---@param cwd string
---@return string?
function M.of(cwd)
  local root = vim.fs.root(cwd, '.git') or cwd
  for _, name in ipairs(NAMES) do
    local path = vim.fs.joinpath(root, name)
    if known[path] == nil then
      known[path] = read(path)
    end
    if known[path] then
      return known[path] --[[@as string]]
    end
  end
end

return M
