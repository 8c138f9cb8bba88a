local messages = require('messages')
local neovim = require('neovim')

--- A Neovim whose <F3> waits for a key: in an expression, where text is locked, or not. It calls delayed functions
--- early, and counts these calls.
local function waiting(expr)
  local nvim = neovim.start({ screen = true })
  nvim:lua(
    [[
      local defer_fn = vim.defer_fn
      _G.delayed = 0
      vim.defer_fn = function(act, delay)
        return defer_fn(function()
          act()
          _G.delayed = _G.delayed + 1
        end, math.min(delay, 20))
      end
      vim.keymap.set('n', '<F3>', function()
        _G.waits = true
        local ok, key = pcall(vim.fn.getcharstr)
        _G.waits, _G.key = false, ok and key or 'error: ' .. key
        return ''
      end, { expr = ... })
    ]],
    expr
  )
  return nvim
end

local function wait_for_key(nvim)
  nvim:keys('<F3>')
  nvim:wait('return _G.waits')
end

--- Waits until a delayed function has been called.
local function wait_delayed(nvim)
  nvim:wait('return _G.delayed > ...', nvim:lua('return _G.delayed'))
end

local function give_key(nvim)
  nvim:keys('x')
  nvim:wait('return not _G.waits')
  same('x', nvim:lua('return _G.key'))
end

describe('what comes while text is locked', function()
  it('is shown when it no longer is, all of it and in order', function()
    local nvim = waiting(true)
    nvim:enter_chat()
    wait_for_key(nvim)
    for word in vim.gsplit('## You|\n\nhello|\n\n## Co\n\n|one |two |three', '|') do
      nvim:receive(messages.append(word))
    end
    nvim:receive(messages.append('\n'), messages.call(1, 'ls', { block = 1 }))
    nvim:receive(messages.block(1, messages.patch(0, { 'a', 'b' }), false))
    nvim:receive(messages.block(1, messages.patch(1, { 'c' }), true))
    nvim:receive(messages.ask(1))
    give_key(nvim)
    nvim:wait_screen('touch file1')
    same(
      { '## You', '', 'hello', '', '## Co', '', 'one two three', '  ~ ls', '    a', '    c' },
      vim.list_slice(nvim:lines('co://chat/1'), 1, 10)
    )
    same({}, nvim:lua('return _G.notices'))
  end)

  it('of a flood is its last state alone', function()
    local nvim = waiting(true)
    nvim:keys(':Co! yes<CR>')
    nvim:wait('return #_G.sent == 1')
    wait_for_key(nvim)
    for count = 1, 5 do
      nvim:receive(messages.output(1, messages.patch(0, { 'y' .. count }, { skipped = count })))
    end
    nvim:receive(messages.ended(1, 0))
    give_key(nvim)
    nvim:wait("return require('co.run').running() == 0")
    yes(vim.list_contains(nvim:lines('co://shell'), 'y5'))
    yes(vim.list_contains(nvim:lines('co://shell'), '… 5 earlier lines'))
  end)

  it('such as the end of the backend, ends what it ended', function()
    local nvim = waiting(true)
    nvim:enter_chat()
    nvim:receive(messages.state('streaming'), messages.append('## Co\n\nhalf'), messages.ask(1))
    nvim:wait_screen('touch file1')
    wait_for_key(nvim)
    nvim:request('nvim_exec_lua', "require('co.backend').handle_exit('it ended')", {})
    give_key(nvim)
    nvim:wait_gone('touch file1')
    nvim:wait_screen('it ended')
    same({}, nvim:lua("return require('co.question').pending()"))
  end)

  it('such as another size, moves the question', function()
    local nvim = waiting(true)
    nvim:receive(messages.ask(1))
    nvim:wait_screen('touch file1')
    wait_for_key(nvim)
    nvim:lua("vim.api.nvim_exec_autocmds('VimResized', {})")
    wait_delayed(nvim)
    give_key(nvim)
    same(
      {},
      nvim:lua(
        "return vim.tbl_filter(function(ask) return ask.hidden end, require('co.question').pending())"
      )
    )
    nvim:wait_screen('touch file1')
    same({}, nvim:lua('return _G.notices'))
  end)

  it('is no second of the list of jobs', function()
    local nvim = waiting(true)
    nvim:keys(':Co! one<CR>:Co /jobs<CR>')
    nvim:wait("return vim.bo.filetype == 'co-jobs'")
    wait_for_key(nvim)
    wait_delayed(nvim)
    give_key(nvim)
    same('', nvim:lua('return vim.v.errmsg'))
  end)
end)

describe('what is told while something waits for a key', function()
  for name, expr in pairs({ ['in a mapping'] = false, ['in an expression'] = true }) do
    it(name .. ' is no error of it, and shown after that', function()
      local nvim = waiting(expr)
      wait_for_key(nvim)
      nvim:lua("require('co.ui.notify').error('the backend ended')")
      wait_delayed(nvim)
      same({}, nvim:lua('return _G.notices'))
      yes(nvim:lua('return _G.waits'))
      give_key(nvim)
      nvim:wait_screen('co: the backend ended')
    end)
  end
end)
