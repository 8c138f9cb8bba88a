--- The common steps of the specs of the approval float.
local M = {}

local neovim = require('neovim')

--- A Neovim with a screen, some text in a buffer, and a map that reaches the float.
function M.editor(opts)
  local nvim = neovim.start(vim.tbl_extend('force', { screen = true }, opts or {}))
  nvim:lua([[
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'one', 'two', 'three' })
    vim.keymap.set({ 'n', 'i', 'x', 'o', 'c', 't' }, '<F5>', '<Plug>(co-approve)')
    _G.home = vim.api.nvim_get_current_win()
  ]])
  return nvim
end

M.FOCUSED = "return vim.bo.filetype == 'co-approval'"
M.HOME = 'return vim.api.nvim_get_current_win() == _G.home'
M.FLOATS = [[return #vim.tbl_filter(function(win)
  return vim.bo[vim.api.nvim_win_get_buf(win)].filetype == 'co-approval'
end, vim.api.nvim_tabpage_list_wins(0))]]

--- The answers sent so far.
function M.answers(nvim)
  return vim.tbl_map(function(answer)
    return { answer.id, answer.decision }
  end, nvim:sent('answer'))
end

function M.wait_answers(nvim, expected)
  neovim.wait(function()
    return vim.inspect(M.answers(nvim))
  end, function()
    return #M.answers(nvim) >= #expected
  end)
  same(expected, M.answers(nvim))
end

--- Waits until the last key counts as long ago.
function M.wait_idle(nvim)
  nvim:wait("return require('co.ui.focus').is_idle()")
end

--- Reaches the float by key, and types keys once they count.
function M.reach(nvim, keys)
  nvim:keys('<F5>')
  nvim:wait(M.FOCUSED)
  nvim:press(keys or '')
end

--- An editor that was asked these questions, with the focus where it was.
function M.shown(...)
  local nvim = M.editor()
  nvim:receive(...)
  nvim:wait_screen('co 1/' .. select('#', ...))
  return nvim
end

--- An editor that was asked these questions, with the focus on the first.
function M.asked(...)
  local nvim = M.shown(...)
  M.reach(nvim)
  return nvim
end

return M
