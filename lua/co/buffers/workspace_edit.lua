--- Reads the workspace edits of language servers. Changes nothing.
local M = {}

local api = vim.api
local disk = require('co.ui.file_text')
local server_places = require('co.buffers.server_places')
local utf8 = require('co.ui.utf8')

--- Returns the 'changedtick' of each loaded buffer.
---@return table<integer, integer>
function M.ticks()
  local found = {}
  for _, buf in ipairs(api.nvim_list_bufs()) do
    if api.nvim_buf_is_loaded(buf) then
      found[buf] = api.nvim_buf_get_changedtick(buf)
    end
  end
  return found
end

--- Returns an edit as the backend knows it.
---@param edit lsp.TextEdit
---@return co.PlacedEdit
local function placed(edit)
  assert(type(edit.newText) == 'string')
  local from, to = edit.range.start, edit.range['end']
  return {
    start = { server_places.whole(from.line, from.character) },
    ['end'] = { server_places.whole(to.line, to.character) },
    text = edit.newText,
  }
end

--- Returns the edits of each file that a language server would change. Raises an error if its answer has another form.
---@param result lsp.WorkspaceEdit
---@param before table<integer, integer> the ticks of the buffers that the language server knows
---@return co.FileEdits[]? files
---@return string? problem
function M.file_edits(result, before)
  ---@type table<string, lsp.TextEdit[]>
  local by_uri = {}
  for _, change in ipairs(result.documentChanges or {}) do
    if change.kind then
      return nil, 'its language server also makes, moves or deletes files, which co does not do'
    end
    local edits = by_uri[change.textDocument.uri] or {}
    by_uri[change.textDocument.uri] = vim.list_extend(edits, change.edits)
  end
  if not result.documentChanges then
    by_uri = result.changes or {}
  end
  local files = {}
  for uri, edits in pairs(by_uri) do
    if not vim.startswith(uri, 'file:') then
      return nil, ('its language server also changes %s, which is no file'):format(uri)
    end
    assert(vim.islist(edits))
    local name = vim.uri_to_fname(uri)
    local file = vim.uv.fs_realpath(name) or name
    if not utf8.valid(name) or not utf8.valid(file) then
      return nil, 'its language server also changes a file whose name is not UTF-8'
    end
    local buf = disk.buffer(name)
    local tick = buf and api.nvim_buf_get_changedtick(buf)
    if buf and tick ~= before[buf] then
      return nil, ('%s changed while its language server answered'):format(name)
    end
    files[#files + 1] = {
      file = file,
      tick = tick,
      edits = vim.tbl_map(placed, edits),
    }
  end
  table.sort(files, function(one, other)
    return one.file < other.file
  end)
  return files
end

return M
