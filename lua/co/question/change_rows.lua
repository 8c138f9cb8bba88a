--- The rows that show a change, in the approval float and in a review: their marks, and the length of a row.
local M = {}

-- The largest number of bytes of a row. A longer line takes several rows, because Neovim draws a row of a few MB for
-- seconds.
M.LONGEST_ROW = 10000

---@class (exact) co.RowKind
---@field group? string the highlight group of its mark
---@field line_group? string the highlight group of the row in a review
---@field sign? string

--- The kinds of rows, by their marks: the first characters of lines in the text of a change.
---@type table<string, co.RowKind>
M.kinds = {
  [' '] = {},
  ['+'] = { group = 'CoDiffAdded', line_group = 'CoReviewAdded', sign = '+' },
  ['-'] = { group = 'CoDiffRemoved', line_group = 'CoReviewRemoved', sign = '-' },
  -- A line that stays, which the person wrote since they accepted the file.
  ['~'] = { group = 'CoApprovalLabel', sign = '~' },
  ['!'] = { group = 'CoApprovalReason', line_group = 'CoApprovalReason', sign = '!' },
  ['@'] = { group = 'CoApprovalLabel' },
  ['#'] = { group = 'CoApprovalLabel', line_group = 'CoApprovalLabel' },
  ['\\'] = { group = 'CoApprovalLabel', line_group = 'CoApprovalLabel' },
}

--- The mark of a row that continues the line above.
---@type vim.api.keyset.set_extmark
M.CONTINUED = { sign_text = '…', sign_hl_group = 'CoApprovalLabel', priority = 5000 }

--- Returns the index of the byte after the row that begins at the byte `from`.
---@param text string
---@param from integer
---@return integer
function M.row_end(text, from)
  local stop = from + M.LONGEST_ROW
  -- Not within a character.
  return stop + vim.str_utf_start(text, stop)
end

--- Returns the rows of a line.
---@param line string
---@return string[]
function M.rows_of(line)
  local rows, from = {}, 1
  while #line - from + 1 > M.LONGEST_ROW do
    local stop = M.row_end(line, from)
    rows[#rows + 1], from = line:sub(from, stop - 1), stop
  end
  rows[#rows + 1] = line:sub(from)
  return rows
end

--- Returns the numbers of lines that a change adds and removes. If no lines differ, returns a description of the
--- change.
---@param change co.Change|co.FileChange
---@return string
function M.counts(change)
  return change.without_lines or ('+%d -%d'):format(change.added, change.removed)
end

--- Returns the mark of rows of a kind.
---@param name string
---@return vim.api.keyset.set_extmark
function M.mark(name)
  local kind = M.kinds[name] or {}
  return { sign_text = kind.sign, sign_hl_group = kind.group, line_hl_group = kind.line_group }
end

--- Returns the options of a window that shows rows. The window wraps long lines and shows blanks at the end of a line.
---@return table<string, any>
function M.window_options()
  -- A character of two cells is no value of 'listchars'.
  local blank = vim.fn.strdisplaywidth('·') == 1 and '·' or '-'
  return {
    wrap = true,
    linebreak = false,
    -- A line may be higher than the window.
    smoothscroll = true,
    list = true,
    listchars = ('tab:> ,trail:%s,nbsp:+'):format(blank),
    conceallevel = 0,
    foldenable = false,
    spell = false,
  }
end

return M
