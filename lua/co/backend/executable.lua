--- The path of the backend's executable.
local M = {}

local config = require('co.config')
local install = require('co.install')
local version = require('co.version')

--- Returns the paths at which the backend may be, the preferred one first.
---@return string[]
function M.candidates()
  local set = config.get().bin
  if set then
    return { vim.fs.normalize(set) }
  end
  local found = {
    install.path(version.version),
    install.root() .. '/target/release/co-nvim',
  }
  local on_path = vim.fn.exepath('co-nvim')
  if on_path ~= '' then
    found[#found + 1] = on_path
  end
  return found
end

--- Returns the first path that is executable, or the reason why there is none.
---@return string? path
---@return string? problem
function M.find()
  for _, path in ipairs(M.candidates()) do
    if vim.fn.executable(path) == 1 then
      return path
    end
  end
  if config.get().bin then
    return nil, ('the setting "bin" names %s, which cannot be executed'):format(config.get().bin)
  end
  return nil, install.unsupported() or 'no co-nvim found: run :Co /install'
end

return M
