-- The lists of keys that `g?` opens.

local neovim = require('neovim')

--- The ways to a buffer with keys, and its filetype.
local PLACES = {
  { ':Co<CR>', 'co-prompt' },
  { ':Co<CR><C-w>k', 'co-chat' },
  { ':Co! ls<CR><C-w>j', 'co-shell' },
  { ':Co /jobs<CR>', 'co-jobs' },
}

describe('the list of keys', function()
  it('is closed by q, <Esc> and g?, and nothing else is', function()
    for _, place in ipairs(PLACES) do
      local nvim = neovim.start({ screen = true })
      nvim:keys(place[1])
      nvim:wait('return vim.bo.filetype == ...', place[2])
      local wins = nvim:lua('return #vim.api.nvim_list_wins()')
      for _, key in ipairs({ 'q', '<Esc>', 'g?' }) do
        nvim:keys('g?')
        nvim:wait_screen('q closes')
        nvim:keys(key)
        nvim:wait_gone('q closes')
        same(place[2], nvim:lua('return vim.bo.filetype'), key)
        same(wins, nvim:lua('return #vim.api.nvim_list_wins()'), key)
      end
      nvim:keys('g?')
      nvim:wait_screen('q closes')
      nvim:keys('<C-w>w')
      nvim:wait_gone('q closes')
      nvim:keys(place[1] .. 'g?')
      nvim:wait_screen('q closes')
      nvim:keys(':let g:filetype = &filetype<CR>')
      nvim:wait('return vim.g.filetype == ...', place[2])
      nvim:wait_gone('q closes')
      same('', nvim:lua('return vim.v.errmsg'))
    end
  end)

  it('names the keys of the person, which work', function()
    local nvim = neovim.start({ screen = true })
    nvim:lua([[vim.g.co = { keys = {
      chat = { hide = '<F2>', yank = false },
      shell = { hide = { '<F3>', 'Q' } },
    } }]])
    nvim:keys(':Co<CR>g?')
    nvim:wait_screen('<F2>       hide the chat')
    yes(not nvim:shows('yank the code block'))
    nvim:keys('<Esc><C-w>k<F2>')
    nvim:wait_gone('g? keys')
    nvim:keys(':Co! ls<CR><C-w>jg?')
    nvim:wait_screen('<F3> Q     hide the window')
    nvim:keys('<Esc><F3>')
    nvim:wait_gone('$ ls')
  end)
end)
