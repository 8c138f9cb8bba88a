local SOURCES = require('completion_sources')
local neovim = require('neovim')

--- Returns an editor in the prompt of a chat, in a workspace.
---@param opts? table
---@return co.test.Neovim
---@return string workspace
local function editor(opts)
  local dir = vim.fn.tempname()
  vim.fn.mkdir(dir .. '/.git/refs', 'p')
  vim.fn.mkdir(dir .. '/.co/prompts', 'p')
  vim.fn.mkdir(dir .. '/src', 'p')
  local prompt = { '---', 'argument-hint: {n}', '---', '# Fix it', 'Fix $1.' }
  vim.fn.writefile(prompt, dir .. '/.co/prompts/fix.md')
  vim.fn.writefile({ 'local a = 1', 'return a' }, dir .. '/src/a b.lua')
  -- A line break in a line is a NUL.
  vim.fn.writefile({ 'a', 'b\n' }, dir .. '/src/binary')
  local nvim = neovim.start(opts)
  nvim:lua("vim.cmd('cd ' .. ...) vim.cmd('Co')", dir)
  nvim:lua(SOURCES)
  return nvim, dir
end

describe('the completion of a prompt', function()
  for _, adapter in ipairs({ 'blink', 'cmp' }) do
    ---@param nvim co.test.Neovim
    ---@param line string
    local function items(nvim, line)
      return nvim:lua('return items(...)', adapter, line)
    end

    it('gives ' .. adapter .. ' commands with their help, and prompt files', function()
      local nvim = editor()
      same({ { '/fix', 1, '{n} · Fix it', '# Fix it\nFix $1.' } }, items(nvim, ' /fi'))
      local fork = items(nvim, '/fork')[1]
      local help = table.remove(fork) --[[@as string]]
      same({ '/fork', 0, 'continue in a copy of the chat' }, fork)
      yes(help:find('/fork  Continue in a copy', 1, true), help)
      yes(not help:find('/usage', 1, true), help)
      same({ { 'docker', 9, '', '' } }, items(nvim, '/sandbox do'))
      same({}, items(nvim, 'a /fork'))
    end)

    it('gives ' .. adapter .. ' contexts and files, with their first lines', function()
      local nvim = editor()
      same({
        { '@diagnostics', 4, 'the diagnostics of that file', '' },
        { '@diff', 4, 'the changes that git knows', '' },
      }, items(nvim, 'see @di'))
      local lua = '~~~~lua\nlocal a = 1\nreturn a\n\n~~~~'
      same({ { '@file:src/a\\ b.lua', 5, '', lua } }, items(nvim, 'née @file:src/a\\ '))
      same({ { 'src/binary', 4, '', '' } }, items(nvim, 'see src/bin'))
      same({ { '@file:src/', 0, '', '~~~~\na b.lua\nbinary\n~~~~' } }, items(nvim, '@file:s'))
      same({}, items(nvim, 'a word s'), 'nobody asked for files')
    end)

    it('gives ' .. adapter .. ' no preview that crashes or blocks a parser of markdown', function()
      local nvim, dir = editor()
      local nested = ('> '):rep(300)
      for _, text in ipairs({ nested, '~~~~~\n' .. nested, ('![*'):rep(200), (' '):rep(3e5) }) do
        vim.fn.writefile(vim.split(text, '\n'), dir .. '/.co/prompts/wild.md')
        vim.fn.writefile(vim.split(text, '\n'), dir .. '/src/wild.md')
        for _, line in ipairs({ '/wild', 'see @file:src/wild.md' }) do
          nvim:assert_quick(text:sub(1, 9), function()
            for _, item in ipairs(items(nvim, line)) do
              nvim:lua(
                "vim.treesitter.get_string_parser(..., 'markdown'):parse(true)",
                item[3] .. '\n\n' .. item[4]
              )
            end
          end)
        end
      end
    end)

    it('is on the screen with ' .. adapter .. ', while the person types', function()
      local nvim = editor({ screen = true, columns = 160 })
      nvim:lua('complete_with(...)', adapter)
      nvim:keys('i/for')
      nvim:wait_screen(
        'continue in a copy of the chat',
        'Continue in a copy of the chat: its title'
      )
      nvim:keys('<C-n><C-y> x<Esc>ccsee @dif')
      nvim:wait_screen('the changes that git knows')
      nvim:keys('<Esc>ccsee @file:src/')
      nvim:wait_screen('@file:src/a\\ b.lua', 'return a')
      nvim:keys('<C-y>')
      nvim:wait("return vim.api.nvim_get_current_line() == 'see @file:src/a\\\\ b.lua'")
    end)
  end

  it('gives the words of the last buffer as names', function()
    local nvim, dir = editor()
    nvim:lua("vim.cmd('wincmd p') vim.cmd('edit src/a\\\\ b.lua') vim.cmd('Co')")
    nvim:lua('vim.fn.bufload(...)', dir .. '/src/a b.lua')
    same({ { '@lsp:local', 4, '', '' } }, nvim:lua("return items('cmp', 'see @lsp:lo')"))
    same(3, #nvim:lua("return items('blink', 'see @lsp:')"))
  end)

  it('shows the same in the menu of Neovim', function()
    local nvim = editor({ screen = true, columns = 160 })
    nvim:lua("vim.o.completeopt = 'menuone,popup'")
    nvim:keys('i/fo<C-x><C-o>')
    nvim:wait_screen('continue in a copy of the chat', 'Continue in a copy of the chat: its title')
    nvim:keys('<Esc>ccsee @file:src/<C-x><C-o>')
    nvim:wait_screen('@file:src/a\\ b.lua', 'return a')
    nvim:keys('<Esc>ccsee s<C-x><C-o>')
    nvim:wait("return vim.api.nvim_get_current_line() == 'see src/'")
  end)

  it('replaces the hint of an empty prompt', function()
    local nvim = neovim.chat({ screen = true })
    nvim:wait_screen('g? keys')
    nvim:keys('i<C-x><C-o>')
    nvim:wait('return vim.fn.pumvisible() == 1')
    nvim:wait_gone('g? keys')
  end)
end)
