-- The message of a commit, by `/commit`.

local neovim = require('neovim')

--- Returns a Neovim that edits the message of a commit, and the directory of the work tree.
local function editing()
  local dir = vim.fn.resolve(neovim.dir())
  vim.fn.mkdir(dir .. '/.git')
  vim.fn.writefile({ '', '# Please enter the commit message' }, dir .. '/.git/COMMIT_EDITMSG')
  local nvim = neovim.start()
  nvim:lua("vim.cmd('edit ' .. ...) vim.bo.filetype = 'gitcommit'", dir .. '/.git/COMMIT_EDITMSG')
  return nvim, dir
end

local function told(nvim, text)
  nvim:wait("return table.concat(_G.notices, '|'):find(..., 1, true) ~= nil", text)
end

describe('/commit', function()
  it('names the place of the commit and puts the message above the text', function()
    local nvim, dir = editing()
    nvim:lua("vim.env.GIT_INDEX_FILE = '.git/next-index-7.lock' vim.cmd('Co /commit')")
    local message = nvim:wait_sent(1, 'write_commit')
    same({ dir, { { 'GIT_INDEX_FILE', '.git/next-index-7.lock' } } }, {
      message.directory,
      message.variables,
    })
    nvim:receive({ type = 'commit_message', chat = 1, text = 'Add two\n\nWhy.' })
    nvim:wait('return vim.api.nvim_buf_line_count(0) == 5')
    same(
      { 'Add two', '', 'Why.', '', '# Please enter the commit message' },
      nvim:lua('return vim.api.nvim_buf_get_lines(0, 0, -1, false)')
    )
    nvim:keys('u')
    nvim:wait('return vim.api.nvim_buf_line_count(0) == 2')
  end)

  it('is refused while the model still writes one, and goes on after a failure', function()
    local nvim = editing()
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

  it('says so where it cannot ask or the model fails', function()
    local nvim = editing()
    nvim:lua("vim.env.GIT_DIR = '/a\\255' vim.cmd('Co /commit')")
    told(nvim, 'no commit message: the name of its directory is not all UTF-8')
    nvim:lua("vim.env.GIT_DIR = nil vim.cmd('Co /commit')")
    nvim:receive({ type = 'commit_message', chat = 1, text = ('x'):rep(2 ^ 20) })
    told(nvim, 'no commit message: the model wrote 1 MiB')
    nvim:lua("vim.cmd('Co /commit')")
    nvim:receive({ type = 'commit_message', chat = 1, problem = 'no key' })
    told(nvim, 'no commit message: no key')
    nvim:receive({ type = 'commit_message', chat = 1, text = 'Add' })
    told(nvim, 'no commit message: its buffer was closed')
    same(2, #nvim:sent())
  end)

  it('asks the backend for a commit where none is edited', function()
    local nvim = neovim.start()
    nvim:lua("vim.cmd('Co /commit')")
    local message = nvim:wait_sent(1, 'command')
    same({ 'commit', '' }, { message.name, message.args })
    yes(#message.options.host.variables > 0)
  end)
end)
