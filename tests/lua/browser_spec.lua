local neovim = require('neovim')

describe('the browser of the person', function()
  it('opens the address', function()
    local nvim = neovim.start({ screen = true })
    nvim:lua([[
      vim.ui.open = function(address)
        vim.g.opened = address
        return {}
      end
      require('co.ui.browser').open('http://127.0.0.1/a')
    ]])
    same('http://127.0.0.1/a', nvim:lua('return vim.g.opened'))
  end)

  it('is missing, which a notice says', function()
    for _, open in ipairs({ "return nil, 'there is none'", "error('there is none')" }) do
      local nvim = neovim.start({ screen = true })
      nvim:lua(('vim.ui.open = function() %s end'):format(open))
      nvim:lua("require('co.ui.browser').open('http://127.0.0.1/a')")
      nvim:wait_screen('no browser was opened')
    end
  end)
end)
