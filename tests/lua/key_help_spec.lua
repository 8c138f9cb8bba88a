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
end)
