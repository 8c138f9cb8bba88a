--- Copies of the shell buffer's text and marks: they outlive its unloading by `:edit`, `:bdelete` or `:bwipeout`.
local M = {}

local api = vim.api

---@class (exact) co.shell_copy.Mark
---@field namespace integer
---@field id integer
---@field row integer
---@field column integer
---@field details vim.api.keyset.set_extmark

---@class (exact) co.ShellCopy
---@field lines string[]
---@field marks co.shell_copy.Mark[]

--- Returns a copy of the text of a buffer and of the extmarks of co in it.
---@param buf integer
---@return co.ShellCopy
function M.take(buf)
  ---@type co.shell_copy.Mark[]
  local marks = {}
  for name, namespace in pairs(api.nvim_get_namespaces()) do
    local own = vim.startswith(name, 'co.')
    local found = own and api.nvim_buf_get_extmarks(buf, namespace, 0, -1, { details = true }) or {}
    for _, mark in ipairs(found) do
      local details = mark[4] or {}
      details.ns_id = nil
      marks[#marks + 1] =
        { namespace = namespace, id = mark[1], row = mark[2], column = mark[3], details = details }
    end
  end
  return { lines = api.nvim_buf_get_lines(buf, 0, -1, false), marks = marks }
end

--- Writes a copy into an empty buffer. The extmarks keep their ids.
---@param buf integer
---@param copy co.ShellCopy
function M.restore(buf, copy)
  api.nvim_buf_set_lines(buf, 0, -1, false, copy.lines)
  for _, mark in ipairs(copy.marks) do
    mark.details.id = mark.id
    api.nvim_buf_set_extmark(buf, mark.namespace, mark.row, mark.column, mark.details)
  end
end

return M
