-- The message of a commit, by `/commit`.

local neovim = require('neovim')

--- Returns a Neovim that edits the message of a commit in a new repository.
---@param staged? string[] the new lines of its file
local function editing(staged)
  local dir = neovim.dir()
  local function git(...)
    vim.system({ 'git', '-C', dir, '-c', 'user.name=a', '-c', 'user.email=a', ... }):wait()
  end
  git('init', '-q')
  vim.fn.writefile({ 'one' }, dir .. '/a.txt')
  git('add', '.')
  git('commit', '-qm', 'Begin')
  if staged then
    vim.fn.writefile(staged, dir .. '/a.txt')
    git('add', '.')
  end
  vim.fn.writefile({ '', '# Please enter the commit message' }, dir .. '/.git/COMMIT_EDITMSG')
  local nvim = neovim.start()
  nvim:lua("vim.cmd('edit ' .. ...) vim.bo.filetype = 'gitcommit'", dir .. '/.git/COMMIT_EDITMSG')
  return nvim
end

local function told(nvim, text)
  nvim:wait("return table.concat(_G.notices, '|'):find(..., 1, true) ~= nil", text)
end

describe('/commit', function()
  it('asks with the staged changes and puts the message above the text', function()
    local nvim = editing({ 'one', 'two \233' })
    nvim:lua("vim.cmd('Co /commit')")
    local message = nvim:wait_sent(1, 'write_commit')
    for _, text in ipairs({ 'Begin\n', 'a.txt | 1 +', '+two' }) do
      yes(message.changes:find(text, 1, true), message.changes)
    end
    nvim:receive({ type = 'commit_message', chat = 1, text = 'Add two\n\nWhy.' })
    nvim:wait('return vim.api.nvim_buf_line_count(0) == 5')
    same(
      { 'Add two', '', 'Why.', '', '# Please enter the commit message' },
      nvim:lua('return vim.api.nvim_buf_get_lines(0, 0, -1, false)')
    )
    nvim:keys('u')
    nvim:wait('return vim.api.nvim_buf_line_count(0) == 2')
  end)

  it('gets whole lines of changes that are too long', function()
    local lines = {}
    for number = 10001, 19999 do
      lines[#lines + 1] = ('key=%d'):format(number)
    end
    local nvim = editing(lines)
    nvim:lua("vim.cmd('Co /commit')")
    local changes = nvim:wait_sent(1, 'write_commit').changes
    yes(changes:find('\n%+key=%d%d%d%d%d\n… cut$'), changes:sub(-40))
    told(nvim, 'the model gets the first 64 KiB of the changes')
  end)

  it('is refused while the model still writes one, and goes on after a failure', function()
    local nvim = editing({ 'one', 'two \233' })
    nvim:lua("vim.cmd('Co /commit') vim.cmd('Co /commit')")
    told(nvim, 'no commit message: the model still writes one (<C-c> cancels it)')
    nvim:wait('return #_G.sent == 1')
    nvim:receive({ type = 'commit_message', chat = 1, problem = 'it was cancelled' })
    told(nvim, 'no commit message: it was cancelled')
    nvim:lua("vim.cmd('Co /commit')")
    nvim:wait('return #_G.sent == 2')
    nvim:receive({ type = 'commit_message', chat = 1, text = 'Add two' })
    nvim:wait("return vim.fn.getline(1) == 'Add two'")
  end)

  it('says so where nothing is staged, no commit is edited or the model fails', function()
    local nvim = editing()
    nvim:lua("vim.cmd('Co /commit')")
    told(nvim, 'no commit message: nothing is staged')
    nvim:receive({ type = 'commit_message', chat = 1, problem = 'no key' })
    told(nvim, 'no commit message: no key')
    nvim:receive({ type = 'commit_message', chat = 1, text = 'Add' })
    told(nvim, 'no commit message: its buffer was closed')
    nvim:lua("vim.cmd('enew') vim.cmd('Co /commit')")
    told(nvim, 'no commit is being edited here')
    same({}, nvim:sent())
  end)
end)
