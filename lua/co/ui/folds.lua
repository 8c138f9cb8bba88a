--- Folds over output that is complete.
local M = {}

local api = vim.api

--- The most lines of a block that stays open.
M.LONG = 20

--- Folds rows in a window, unless they are folded or 'foldmethod' is not manual.
---@param win integer
---@param first integer row
---@param last integer row
function M.close(win, first, last)
  api.nvim_win_call(win, function()
    if vim.wo.foldmethod ~= 'manual' or vim.fn.foldlevel(first + 1) > 0 then
      return
    end
    vim.cmd(('silent keepjumps %d,%dfold'):format(first + 1, last + 1))
  end)
end

--- Deletes the folds that begin at a row in each window that shows `buf`, and opens those around it.
---@param buf integer
---@param first integer
function M.delete(buf, first)
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    api.nvim_win_call(win, function()
      if vim.wo.foldmethod == 'manual' and vim.fn.foldlevel(first + 1) > 0 then
        local view = vim.fn.winsaveview()
        api.nvim_win_set_cursor(win, { first + 1, 0 })
        vim.cmd('silent! normal! zd')
        vim.fn.winrestview(view)
      end
    end)
  end
end

--- Scrolls back so that no empty rows stay below the last line. Of a line that is too high, with 'smoothscroll', the
--- last rows are then visible.
---@param win integer
function M.scroll_back(win)
  -- Without the winbar.
  local info = vim.fn.getwininfo(win)[1]
  local room = info.height
  local columns = api.nvim_win_get_width(win) - info.textoff
  api.nvim_win_call(win, function()
    local last = vim.fn.line('$')
    ---@type integer, integer, number
    local top, height, skipped = last + 1, 0, 0
    while top > 1 and height < room do
      local closed = vim.fn.foldclosed(top - 1)
      local above = closed > 0 and closed or top - 1
      height = api.nvim_win_text_height(win, { start_row = above - 1, end_row = last - 1 }).all
      local hidden = height > room and height - room or 0
      if hidden > 0 and (closed > 0 or not vim.wo.smoothscroll) then
        break
      end
      top, skipped = above, hidden * columns
    end
    vim.fn.winrestview({
      topline = math.min(top, last),
      skipcol = skipped --[[@as integer]],
    })
  end)
end

--- Folds the rows in each window that shows `buf`, unless the cursor is in them.
---@param buf integer
---@param first integer
---@param last integer
function M.everywhere(buf, first, last)
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    local cursor = api.nvim_win_get_cursor(win)[1] - 1
    if cursor < first or cursor > last then
      local visible = last + 1 >= vim.fn.line('w0', win)
      M.close(win, first, last)
      if visible and cursor + 1 == api.nvim_buf_line_count(buf) then
        M.scroll_back(win)
      end
    end
  end
end

return M
