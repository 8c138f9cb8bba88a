local neovim = require('neovim')

describe('settings', function()
  it('of the keys give each key of a buffer to one action', function()
    local nvim = neovim.start()
    nvim:lua('vim.o.columns = 300')
    ---@param keys table
    ---@param problem string?
    local function check(keys, problem)
      nvim:lua('vim.g.co = { keys = ... }', keys)
      local expected = problem
        and 'vim.g.co: the setting "keys" must be a table with another key for each action; '
          .. problem
      same({ expected }, nvim:lua("return require('co.config').problems()"))
      local used = nvim:lua("return require('co.config').get().keys")
      local defaults = nvim:lua("return require('co.settings').keys")
      for place, given in pairs(keys) do
        local wanted = problem and defaults[place]
          or vim.tbl_extend('force', defaults[place], given)
        same(wanted, used[place])
      end
    end
    check({ question = { yes = 'n' } }, 'question has "n" for "no" and "yes"')
    check({ question = { yes = 'q' } }, 'question has "q" for "hide" and "yes"')
    check({ question = { yes = '<c-[>' } }, 'question has "<c-[>" for "hide" and "yes"')
    check({ question = { yes = { 'x', 'p' } } }, 'question has "p" for "prefix" and "yes"')
    check({ question = { yes = 'x', no = { 'n', 'x' } } }, 'question has "x" for "no" and "yes"')
    check({ jobs = { hide = 'd' } }, 'jobs has "d" for "delete" and "hide"')
    check({ shell = { hide = 'r' } }, 'shell has "r" for "again" and "hide"')
    check({ question = { yes = 'n', no = 'y' } })
    check({ question = { yes = 'n', no = false } })
    check({ question = { yes = { 'y', '<CR>', 'y' } } })
    check({ chat = { submit = '<C-s>', target = '<CR>', output = 'gd' } })
  end)
end)
