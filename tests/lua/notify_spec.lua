local messages = require('messages')
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

  it('is shown whole where it answers a typed command', function()
    local nvim = neovim.start({ screen = true })
    nvim:lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'one', 'two' })")
    local answer = ('some words '):rep(20) .. 'and the end'
    nvim:receive({ type = 'notice', level = 'info', message = answer, answer = true })
    nvim:wait_screen('and the end')
    same('n', nvim:mode())
    nvim:keys('j')
    nvim:wait_gone('and the end')
    nvim:receive({ type = 'notice', level = 'info', message = answer, answer = true })
    nvim:wait_screen('and the end')
    nvim:keys(':<Esc>')
    nvim:wait_gone('and the end')
    nvim:receive({ type = 'notice', level = 'info', message = 'a short one', answer = true })
    nvim:wait_screen('co: a short one')
    same(1, nvim:lua('return #vim.api.nvim_list_wins()'))
  end)

  it('takes no time that the person notices, however long it is, and the log has it', function()
    local nvim = neovim.start({ screen = true, columns = 120, lines = 40 })
    local texts = {
      ('\n'):rep(300000),
      ('\n '):rep(150000),
      (' '):rep(300000),
      ('é'):rep(150000),
      ('x\n'):rep(150000),
    }
    for _, text in ipairs(texts) do
      for _, answer in ipairs({ true, false }) do
        nvim:assert_quick(vim.inspect(text:sub(1, 9)), function()
          nvim:lua('_G.notices = {}')
          local message =
            { type = 'notice', level = 'info', message = text .. 'x', answer = answer }
          nvim:receive(message)
          local shown = answer and '#vim.api.nvim_list_wins() == 2' or '#_G.notices > 0'
          nvim:wait('return ' .. shown)
          nvim:keys(':<Esc>')
          nvim:wait('return #vim.api.nvim_list_wins() == 1')
        end)
      end
    end
    local lines = neovim.numbered('line ', 300)
    lines[301] = ('long '):rep(2000) .. 'and the end'
    nvim:receive({
      type = 'notice',
      level = 'info',
      message = table.concat(lines, '\n'),
      answer = true,
    })
    nvim:wait_screen('line 30', 'more rows: :Co /log')
    nvim:keys(':Co /log<CR>')
    nvim:wait('return vim.bo.filetype == "co-log"')
    local shown = table.concat(nvim:request('nvim_buf_get_lines', 0, 0, -1, false), '\n')
    for _, text in ipairs({ 'notice: line 1\n', 'notice: line 300\n', 'and the end' }) do
      yes(shown:find(text, 1, true) ~= nil, text)
    end
  end)

  it('is harmless for plugins that take it for markdown', function()
    local nvim = neovim.chat({ screen = true, columns = 200 })
    nvim:lua([[
      vim.notify = function(text) _G.told = text end
      vim.ui.select = function(items, opts) _G.offered = opts.prompt .. opts.format_item(items[1]) end
    ]])
    nvim:receive({ type = 'notice', level = 'info', message = ('![*'):rep(99) })
    nvim:wait('return _G.told')
    same(nil, nvim:lua('return _G.told'):find('![', 1, true))
    nvim:lua(
      "require('co.ui.select').show({ ... }, { prompt = '![' }, function() end)",
      ('> '):rep(260) .. '\n!['
    )
    local offered = nvim:lua('return _G.offered')
    same(nil, offered:find('![', 1, true))
    yes(#offered:match('^[^>]*([> ]*)\\') <= 160)
  end)

  it('hides no question, however long it is, and whatever comes first', function()
    local answer = ('some words '):rep(100) .. 'and the end'
    local notice = { type = 'notice', level = 'info', message = answer, answer = true }
    for _, received in ipairs({ { notice, messages.ask(1) }, { messages.ask(1), notice } }) do
      local nvim = neovim.start({ screen = true })
      nvim:receive(received[1])
      nvim:wait_screen(received[1] == notice and 'and the end' or 'touch file1')
      nvim:receive(received[2])
      nvim:wait_screen('some words some words', 'touch file1')
    end
  end)

  it('is above a question, so that both can be read', function()
    local nvim = neovim.start({ screen = true })
    nvim:receive(messages.ask(1))
    nvim:wait_screen('touch file1')
    nvim:keys(':Co /pending<CR>')
    nvim:wait_screen(' 1  chat 1  touch file1', 'why  it writes')
  end)

  it('is above a question in a small Neovim too', function()
    local nvim = neovim.start({ screen = true, columns = 40, lines = 12 })
    nvim:receive(messages.ask(1))
    nvim:wait_screen('touch file1')
    nvim:keys(':Co /pending<CR>')
    nvim:wait_screen(' 1  chat 1  touch file1', '/approve to ans')
  end)

  it('is visible in insert mode too, until the next key', function()
    local nvim = neovim.start({ screen = true })
    nvim:keys_to('i', 'i')
    nvim:wait_screen('-- INSERT --')
    nvim:lua("require('co.ui.notify').info('look')")
    nvim:wait_screen('co: look')
    nvim:settle()
    yes(nvim:shows('co: look'))
    nvim:keys('x<Esc>i')
    nvim:wait_screen('-- INSERT --')
    yes(nvim:lua('return vim.o.showmode'))
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
