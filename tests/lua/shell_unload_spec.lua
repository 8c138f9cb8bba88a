-- The shell buffer when the person unloads it, and loads it again.

local messages = require('messages')
local shell_buffer = require('shell_buffer')
local enter, started, wait_line = shell_buffer.enter, shell_buffer.started, shell_buffer.wait_line
local ended, output, patch = messages.ended, messages.output, messages.patch

local SHELL = 'co://shell'

--- Returns the highlights of the shell buffer: row, column and group.
local function highlights(nvim)
  return nvim:lua([[
    local marks = vim.api.nvim_buf_get_extmarks(
      vim.fn.bufnr('^co://shell$'), -1, 0, -1, { details = true, type = 'highlight' })
    return vim.tbl_map(function(mark)
      return { mark[2], mark[3], mark[4].hl_group }
    end, marks)
  ]])
end

describe('the shell buffer, unloaded', function()
  for _, command in ipairs({ 'bdelete!', 'bwipeout!', 'bunload!' }) do
    it(('is there again after :%s while a run goes on'):format(command), function()
      local nvim = started('zero')
      nvim:receive(output(1, patch(0, { 'z' })), ended(1, 0))
      nvim:lua("vim.cmd('Co! one')")
      nvim:receive(output(2, patch(0, { 'a' })))
      wait_line(nvim, 'a')
      local before = highlights(nvim)
      nvim:lua("vim.cmd(... .. vim.fn.bufnr('^co://shell$'))", command)
      same(1, nvim:lua('return #vim.api.nvim_list_wins()'))
      same(before, highlights(nvim))
      nvim:receive(output(2, patch(1, { 'b' })), ended(2, 0))
      nvim:lua("vim.cmd('Co! two')")
      wait_line(nvim, '$ two')
      same({
        '$ zero',
        'z',
        'exit 0 · 0.1 s · 1 line',
        '',
        '$ one',
        'a',
        'b',
        'exit 0 · 0.1 s · 1 line',
        '',
        '$ two',
        '… running',
      }, nvim:lines(SHELL))
      enter(nvim)
      nvim:keys('G<C-c>')
      same(3, nvim:wait_sent(4).run)
      same({}, nvim:lua("return require('co.ui.log').lines()"))
    end)
  end

  it('misses no output that comes before it is there again', function()
    local nvim = started('one')
    nvim:receive(output(1, patch(0, { 'a' })))
    wait_line(nvim, 'a')
    nvim:lua(
      "vim.cmd('bwipeout! ' .. vim.fn.bufnr('^co://shell$')) require('co.run').output(...)",
      output(1, patch(1, { 'b' }))
    )
    same({ '$ one', 'a', 'b', '… running' }, nvim:lines(SHELL))
  end)

  it('is gone after :bdelete! if no run goes on', function()
    local nvim = started('one')
    nvim:receive(ended(1, 0))
    wait_line(nvim, 'exit 0 · 0.1 s · 1 line')
    nvim:lua("vim.cmd('bdelete! ' .. vim.fn.bufnr('^co://shell$'))")
    nvim:wait("return vim.fn.bufnr('^co://shell$') == -1")
    nvim:lua("vim.cmd('Co! two')")
    wait_line(nvim, '$ two')
    same({ '$ two', '… running' }, nvim:lines(SHELL))
  end)

  it('has its text, its place and its keys after :edit', function()
    local nvim = started('zero')
    nvim:receive(output(1, patch(0, { 'z' })), ended(1, 0))
    nvim:lua("vim.cmd('Co! one')")
    nvim:receive(output(2, patch(0, { 'a', 'b' })))
    wait_line(nvim, 'b')
    enter(nvim)
    local before, marks = nvim:lines(SHELL), highlights(nvim)
    nvim:keys('5G:edit<CR>:edit!<CR>:edit<CR>:let g:done = 1<CR>')
    nvim:wait('return vim.g.done == 1')
    enter(nvim)
    same(before, nvim:lines(SHELL))
    same(marks, highlights(nvim))
    same(
      { 5, false, false },
      nvim:lua("return { vim.fn.line('.'), vim.bo.modifiable, vim.bo.modified }")
    )
    nvim:keys('<C-c>')
    same(2, nvim:wait_sent(3).run)
    nvim:receive(output(2, patch(2, { 'c' })), ended(2, 0))
    wait_line(nvim, 'c')
    same({ 'a', 'b', 'c', 'exit 0 · 0.1 s · 1 line' }, vim.list_slice(nvim:lines(SHELL), 6))
    same({}, nvim:lua('return _G.notices'))
    same({}, nvim:lua("return require('co.ui.log').lines()"))
  end)
end)
