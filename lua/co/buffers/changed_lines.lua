--- Signs at the lines that the model changed in its last turn, until the next turn or `/seen`, and at those of changes that the
--- person has not answered yet (`/review`).
---
--- A file that no buffer has gets its signs when it is opened.
local M = {}

local api = vim.api
local config = require('co.config')
local disk = require('co.ui.file_text')
local notify = require('co.ui.notify')
local windows = require('co.ui.windows')

local marks = api.nvim_create_namespace('co.changed')
-- Above the signs of git, below those of diagnostics.
local PRIORITY = 8
-- The signs of the last turn are above those of changes without an answer.
local OPEN_PRIORITY = 7
-- The most lines that get a sign by one change.
local MOST = 10000

--- The lines that a change replaced.
---@class (exact) co.ChangedLines
---@field first integer from 1, in the text before the change
---@field removed integer
---@field added integer

-- The new lines of files that no buffer has, by their real paths.
---@type table<string, co.NewLines[]>
local unopened = {}

--- The lines of changes without an answer, of one chat.
---@class (exact) co.OpenSigns
---@field marks integer their namespace
---@field files table<string, co.NewLines[]> by the paths of the files

---@type table<integer, co.OpenSigns>
local open = {}

--- Adds the lines of changes to those of earlier ones.
---@param lines co.NewLines[]
---@param changes co.ChangedLines[] from top to bottom, each in the text before all of them
---@return co.NewLines[]
local function advance(lines, changes)
  local moved = 0
  for _, change in ipairs(changes) do
    local first, grown = change.first + moved, change.added - change.removed
    for _, earlier in ipairs(lines) do
      if earlier.first >= first + change.removed then
        earlier.first = earlier.first + grown
      end
    end
    lines[#lines + 1] = { first = first, count = change.added }
    moved = moved + grown
  end
  return lines
end

--- Sets signs at lines.
---@param buf integer
---@param lines co.NewLines[]
---@param namespace? integer of changes without an answer; nil: those of the last turn
local function set(buf, lines, namespace)
  local last = api.nvim_buf_line_count(buf)
  local signs = config.get().ascii and { new = '|', gone = '_' } or { new = '▎', gone = '▁' }
  if namespace then
    signs.new = config.get().ascii and ':' or '┊'
  end
  local own = namespace or marks
  for _, new in ipairs(lines) do
    local removed = new.count == 0
    -- Removed lines are marked at the line above them.
    local first = math.max(removed and new.first - 1 or new.first, 1)
    local count = math.min(math.max(new.count, 1), MOST)
    for line = first, math.min(first + count - 1, last) do
      api.nvim_buf_clear_namespace(buf, own, line - 1, line)
      api.nvim_buf_set_extmark(buf, own, line - 1, 0, {
        sign_text = removed and signs.gone or signs.new,
        sign_hl_group = removed and 'CoLineRemoved' or 'CoLineChanged',
        priority = namespace and OPEN_PRIORITY or PRIORITY,
      })
    end
  end
end

--- Sets the signs of changes that a buffer has.
---@param buf integer
---@param changes co.ChangedLines[] from top to bottom, each in the text before all of them
function M.add(buf, changes)
  set(buf, advance({}, changes))
end

--- Sets the signs of the lines in which two texts of a buffer differ.
---@param buf integer
---@param before string
---@param after string
function M.compare(buf, before, after)
  local hunks = vim.diff(before, after, { result_type = 'indices' }) --[[@as integer[][] ]]
  M.add(
    buf,
    vim.tbl_map(function(hunk)
      -- Without removed lines, the first number is that of the line above.
      return { first = hunk[1] + (hunk[2] == 0 and 1 or 0), removed = hunk[2], added = hunk[4] }
    end, hunks)
  )
end

--- Takes in the event about changed files. Buffers have the signs of their own changes.
---@param event { changes?: { file: string, first: integer, removed: integer, added: integer }[] }
local function on_edited(event)
  ---@type table<string, co.ChangedLines[]>
  local by_file = {}
  for _, change in ipairs(event.changes or {}) do
    by_file[change.file] = by_file[change.file] or {}
    table.insert(by_file[change.file], change)
  end
  for file, changes in pairs(by_file) do
    local buf = disk.buffer(file)
    if not buf or not api.nvim_buf_is_loaded(buf) then
      unopened[file] = advance(unopened[file] or {}, changes)
    end
  end
end

--- Removes all signs.
function M.clear()
  unopened = {}
  for _, buf in ipairs(api.nvim_list_bufs()) do
    if api.nvim_buf_is_loaded(buf) then
      api.nvim_buf_clear_namespace(buf, marks, 0, -1)
    end
  end
end

--- Sets the signs of the changes of a chat that the person has not answered yet, in the place of those that it had.
---@param message co.OpenChanges
function M.show_open(message)
  local signs = open[message.chat]
    or { marks = api.nvim_create_namespace('co.open.' .. message.chat), files = {} }
  for _, buf in ipairs(api.nvim_list_bufs()) do
    if api.nvim_buf_is_loaded(buf) then
      api.nvim_buf_clear_namespace(buf, signs.marks, 0, -1)
    end
  end
  signs.files = {}
  open[message.chat] = signs
  for _, file in ipairs(message.files) do
    signs.files[file.file] = file.lines
    local buf = disk.buffer(file.file)
    if buf and api.nvim_buf_is_loaded(buf) then
      set(buf, file.lines, signs.marks)
    end
  end
end

--- Goes to the next or the previous change of the current buffer.
---@param step 1|-1
function M.jump(step)
  ---@type table<integer, true>
  local marked = {}
  local namespaces = { marks }
  for _, signs in pairs(open) do
    namespaces[#namespaces + 1] = signs.marks
  end
  for _, namespace in ipairs(namespaces) do
    for _, mark in ipairs(api.nvim_buf_get_extmarks(0, namespace, 0, -1, {})) do
      marked[mark[2]] = true
    end
  end
  local rows = vim.tbl_filter(function(row)
    return not marked[row - 1]
  end, vim.tbl_keys(marked))
  table.sort(rows)
  for _ = 1, vim.v.count1 do
    if not windows.jump(rows, step) then
      notify.info(('no change of the model %s the cursor'):format(step == 1 and 'below' or 'above'))
      return
    end
  end
end

local group = api.nvim_create_augroup('co.changed', {})
api.nvim_create_autocmd('User', {
  group = group,
  pattern = 'CoEdited',
  callback = function(event)
    on_edited(event.data)
  end,
})
api.nvim_create_autocmd('BufReadPost', {
  group = group,
  callback = function(event)
    local file = vim.uv.fs_realpath(api.nvim_buf_get_name(event.buf)) or ''
    local lines = unopened[file]
    unopened[file] = nil
    if lines then
      set(event.buf, lines)
    end
    for _, signs in pairs(open) do
      if signs.files[file] then
        set(event.buf, signs.files[file], signs.marks)
      end
    end
  end,
})

return M
