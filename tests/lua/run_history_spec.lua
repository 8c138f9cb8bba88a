local neovim = require('neovim')

--- Adds lines to the history of the command line, types `/history`, chooses the offer of an index, and returns the offers.
local function offered(nvim, lines, index)
  nvim:lua(
    [[
      local index = ...
      vim.ui.select = function(items, _, done)
        _G.offered = items
        done(items[index])
      end
    ]],
    index
  )
  for _, line in ipairs(lines) do
    nvim:lua("vim.fn.histadd(':', ...)", line)
  end
  nvim:keys(':Co /history<CR>')
  nvim:wait('return _G.offered ~= nil')
  return nvim:lua('return _G.offered')
end

describe('the history of runs', function()
  it('/history puts an earlier command on the command line', function()
    local nvim = neovim.start()
    nvim:keys(':Co! make one<CR>:Co! ls %<CR>:Co! make one<CR>:Co! ++timeout=3 cat<CR>')
    same({ '++timeout=3 cat', 'make one', 'ls %' }, offered(nvim, {}, 2))
    nvim:wait("return vim.fn.getcmdline() == 'Co! make one'")
  end)

  it('has commands with a range or a modifier, and no other commands', function()
    local nvim = neovim.start()
    local lines = {
      '2,3Co! wc',
      "'<,'>Co!  sort  -u ",
      ':silent Co! echo a',
      'sil! tab /a b/,$-1Co! Co! b',
      '%Co! wc',
      'echo Co! x',
      'Co fix Co! x',
      '2,3Co!',
    }
    local expected = {
      '%Co! wc',
      'sil! tab /a b/,$-1Co! Co! b',
      'silent Co! echo a',
      "'<,'>Co! sort  -u",
      '2,3Co! wc',
    }
    same(expected, offered(nvim, lines, 5))
    nvim:wait("return vim.fn.getcmdline() == '2,3Co! wc'")
  end)
end)
