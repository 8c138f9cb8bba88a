local neovim = require('neovim')

-- A command that says something, and something else when that has been shown.
local SAYS_TWO_THINGS = [[
  vim.api.nvim_create_user_command('Say', function()
    local notify = require('co.ui.notify')
    notify.error('the first')
    vim.schedule(function()
      notify.error('the second')
    end)
  end, {})
]]

describe('what the person is told', function()
  it('waits for no key, however soon one thing follows the other', function()
    local nvim = neovim.start({ screen = true })
    nvim:lua(SAYS_TWO_THINGS)
    nvim:keys(':Say<CR>')
    nvim:wait_screen('co: the second')
    same('n', nvim:mode())
  end)

  it('is one line, of the worst and how much more there is', function()
    local nvim = neovim.start({ screen = true })
    nvim:lua([[
      local notify = require('co.ui.notify')
      notify.info('well')
      notify.error('not\nwell')
      notify.warn(('long '):rep(100))
    ]])
    nvim:wait_screen('co: not · well (and 2 more: :Co /log)')
    nvim:lua("require('co.ui.notify').warn(('long '):rep(100))")
    nvim:wait_screen(' … :Co /log')
    same('n', nvim:mode())
  end)

  it('is cut at once, however long it is', function()
    local nvim = neovim.start({ screen = true })
    nvim:lua("require('co.ui.notify').info(('漢'):rep(500000))")
    nvim:wait_screen('漢 … :Co /log')
  end)

  it('waits for no key in a narrow Neovim, nor where there is no line for it', function()
    for _, case in ipairs({ { 20, 1, 'co: it …' }, { 100, 0, 'co: it ended; the next' } }) do
      local nvim = neovim.start({ screen = true, columns = case[1], lines = 8 })
      nvim:lua('vim.o.cmdheight = ...', case[2])
      nvim:lua("require('co.ui.notify').error('it ended; the next :Co starts it again')")
      nvim:wait_screen(case[3])
      same('n', nvim:mode())
    end
  end)

  it('waits while a command is typed', function()
    local nvim = neovim.start({ screen = true })
    nvim:keys_to(':echo 1', 'c')
    nvim:lua("require('co.ui.notify').info('later')")
    nvim:settle()
    yes(not nvim:shows('co: later'))
    nvim:keys('<Esc>')
    nvim:wait_screen('co: later')
  end)
end)
