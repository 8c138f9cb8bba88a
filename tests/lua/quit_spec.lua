local neovim = require('neovim')
local messages = require('messages')
local ended = messages.ended

--- Returns the name of the buffer that refuses to quit; none if there is none.
local REFUSING = [[
  vim.api.nvim_exec_autocmds('ExitPre', {})
  return vim.tbl_map(vim.api.nvim_buf_get_name, vim.tbl_filter(function(buf)
    return vim.bo[buf].modified
  end, vim.api.nvim_list_bufs()))
]]

describe('quitting', function()
  it('is refused by what runs, named by its first line', function()
    local nvim = neovim.start()
    same({}, nvim:lua(REFUSING))
    nvim:lua("require('co').run('for i in 1 2\\ndo echo [$i] | tee \"%\"; done')")
    nvim:lua("require('co').run(('x'):rep(100))")
    local long = ('x'):rep(59) .. '…'
    same({ 'co://running: for i in 1 2, ' .. long }, nvim:lua(REFUSING))
    nvim:wait_notice('2 commands still run')
    same(1, nvim:lua('return #vim.api.nvim_list_wins() - 1'), 'the shell buffer alone')
    nvim:receive(ended(1, 0))
    nvim:wait("return require('co.run').running() == 1")
    same({ 'co://running: ' .. long }, nvim:lua(REFUSING))
    nvim:receive(ended(2, 0))
    nvim:wait("return require('co.run').running() == 0")
    same({}, nvim:lua(REFUSING))
  end)

  it('is refused by questions about commands, also by a hidden one', function()
    local nvim = neovim.start()
    nvim:lua("require('co').run('server')")
    nvim:receive(
      messages.trust(1),
      messages.ask(2),
      messages.ask(3, { command = 'rm -rf src\nls' })
    )
    nvim:wait("return #require('co.question').pending() == 3")
    nvim:lua("require('co.question').put_away(1)")
    local both = 'co://running: server; unanswered: touch file2, rm -rf src'
    same({ both }, nvim:lua(REFUSING))
    local told = '1 command still runs, 2 questions wait: :qa! quits anyway'
    nvim:wait(('return table.concat(_G.notices):find(%q, 1, true) ~= nil'):format(told))
    nvim:receive(messages.ended(1, 0), { type = 'settled', id = 3, decision = 'withdrawn' })
    nvim:wait("return #require('co.question').pending() == 2")
    same({ 'co://unanswered: touch file2' }, nvim:lua(REFUSING))
    nvim:receive({ type = 'settled', id = 2, decision = 'withdrawn' })
    nvim:wait("return #require('co.question').pending() == 1")
    same({}, nvim:lua(REFUSING), 'a question about a file')
  end)

  it('leaves nothing behind, also where nothing may be modified', function()
    local nvim = neovim.start()
    nvim:lua("vim.cmd('Co! server') vim.o.modifiable = false")
    for _ = 1, 3 do
      same({ 'co://running: server' }, nvim:lua(REFUSING))
      nvim:wait(
        "return not vim.iter(vim.api.nvim_list_bufs()):any(function(buf) return vim.bo[buf].buftype == 'acwrite' end)"
      )
    end
    local told = nvim:lua("return table.concat(require('co.ui.log').lines(), '\\n')")
    yes(not told:find('E%d+:'), told)
  end)

  it('is refused by as many commands as there may be, in a name that is not too long', function()
    local nvim = neovim.start()
    for index = 1, 40 do
      nvim:lua("vim.cmd('Co! sleep 1000' .. ...)", index)
    end
    local name = nvim:lua(REFUSING)[1]
    yes(vim.startswith(name, 'co://running: sleep 10001, sleep 10002, '), name)
    same(300, vim.fn.strchars(name))
  end)
end)
