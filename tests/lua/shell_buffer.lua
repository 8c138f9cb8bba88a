--- The common steps of the specs of the shell buffer.
local M = {}

local neovim = require('neovim')

--- A Neovim where a command was run.
function M.started(command, opts)
  local nvim = neovim.start(opts)
  nvim:lua('vim.cmd("Co! " .. ...)', command)
  return nvim
end

--- Puts the cursor into the shell buffer.
function M.enter(nvim)
  nvim:lua("vim.api.nvim_set_current_win(vim.fn.win_findbuf(vim.fn.bufnr('^co://shell$'))[1])")
end

--- Waits until the shell buffer has a line.
function M.wait_line(nvim, text)
  nvim:wait(
    "return vim.tbl_contains(vim.api.nvim_buf_get_lines(vim.fn.bufnr('^co://shell$'), 0, -1, false), ...)",
    text
  )
end

return M
