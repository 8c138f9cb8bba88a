-- The list of `/chats`.

local messages = require('messages')
local neovim = require('neovim')

local function at(number)
  return ("return vim.api.nvim_buf_get_name(0) == 'co://chat/%d/prompt'"):format(number)
end

--- A Neovim with one chat, in which `vim.ui.select` keeps the labels and chooses the entry `_G.choose`.
local function editor()
  local nvim = neovim.start()
  nvim:lua([[
    vim.ui.select = function(items, opts, done)
      _G.title = opts.prompt
      _G.labels = vim.tbl_map(opts.format_item, items)
      done(items[_G.choose])
    end
    vim.cmd('Co')
  ]])
  nvim:wait(at(1))
  return nvim
end

--- Answers `/chats` of a chat, chooses an entry, and returns the list.
---@param nvim co.test.Neovim
---@param chat integer
---@param earlier { label: string, value: string }[]
---@param choose? integer
---@return string[]
local function list(nvim, chat, earlier, choose)
  nvim:lua('_G.choose, _G.labels = ...', choose)
  nvim:asks()
  nvim:receive({
    type = 'choose',
    chat = chat,
    name = 'chats',
    title = 'Chats',
    choices = earlier,
  })
  nvim:wait('return _G.labels ~= nil')
  return nvim:lua('return _G.labels')
end

describe('the list of chats', function()
  it('shows open chats and earlier ones, with what waits', function()
    local nvim = editor()
    nvim:receive(messages.state('running', {
      title = 'mend it',
      transcript = 'a',
      detail = 'cargo test',
    }))
    nvim:keys(':Co /new<CR>')
    nvim:wait(at(2))
    nvim:receive(messages.state('idle', { chat = 2, title = 'explain it', transcript = 'b' }))
    nvim:keys('ia draft<Esc>')
    -- Nothing has happened in this one.
    nvim:keys(':Co /new<CR>')
    nvim:wait(at(3))
    local earlier = {
      { label = 'mend it · 2 min ago', value = 'a' },
      { label = 'an old one · 3 days ago', value = 'c' },
    }
    same({
      'ready · explain it · a draft',
      'running · mend it · 2 min ago · cargo test',
      'earlier · an old one · 3 days ago',
    }, list(nvim, 3, earlier))
    same('Chats', nvim:lua('return _G.title'))
    nvim:receive(messages.ask(1), messages.ask(2))
    nvim:wait("return #require('co.question').pending() == 2")
    same(
      'waits for an answer · mend it · 2 min ago · touch file1 and 1 more',
      list(nvim, 3, earlier)[2]
    )
    same('ready · explain it · a draft · this chat', list(nvim, 2, {}, 2)[1])
    -- It is shown in the window of the chat.
    nvim:wait(at(1))
    same(1, nvim:lua('return #vim.fn.win_findbuf(vim.fn.bufnr([[^co://chat/1{,/co: *}$]]))'))
    same(0, nvim:lua('return #vim.fn.win_findbuf(vim.fn.bufnr([[^co://chat/3{,/co: *}$]]))'))
  end)

  it('is on the screen of another picker, which chooses later', function()
    local nvim = neovim.start({ screen = true, columns = 140 })
    -- As snacks.nvim does: a window of its own, that is closed before the choice.
    nvim:lua([[
      vim.ui.select = function(items, opts, done)
        local buf = vim.api.nvim_create_buf(false, true)
        vim.api.nvim_buf_set_lines(buf, 0, -1, false, vim.tbl_map(opts.format_item, items))
        local place = { relative = 'editor', row = 3, col = 3, width = 100, height = 5 }
        vim.api.nvim_open_win(buf, true, vim.tbl_extend('force', place, { title = opts.prompt, border = 'single' }))
        vim.keymap.set('n', '<CR>', function()
          local index = vim.fn.line('.')
          vim.api.nvim_win_close(0, true)
          vim.schedule(function() done(items[index], index) end)
        end, { buffer = buf })
      end
    ]])
    nvim:keys(':Co<CR>')
    nvim:wait(at(1))
    local first = { title = 'mend it', transcript = 'a' }
    nvim:receive(messages.state('idle', first), messages.append('the first answer'))
    nvim:keys(':Co /new<CR>')
    nvim:wait(at(2))
    nvim:wait_gone('the first answer')
    local running = { title = 'explain it', transcript = 'b', chat = 2, detail = 'cargo test' }
    nvim:receive(messages.state('running', running), messages.ask(1))
    nvim:asks()
    nvim:receive({
      type = 'choose',
      chat = 2,
      name = 'chats',
      title = 'Chats',
      choices = {
        { label = 'mend it · 2 min ago', value = 'a' },
        { label = 'older · 3 days ago', value = 'c' },
      },
    })
    nvim:wait_screen(
      'Chats',
      'running · explain it · cargo test · this chat',
      'waits for an answer · mend it · 2 min ago · touch file1',
      'earlier · older · 3 days ago'
    )
    nvim:press('/mend<CR><CR>')
    nvim:wait(at(1))
    nvim:wait_screen('ready · mend it', 'the first answer')
    yes(not nvim:shows('explain it'), 'the chat has the window of the other')
  end)

  it('resumes an earlier one in an unused chat, or else in a new one', function()
    local nvim = editor()
    local earlier = { { label = 'an old one · 3 days ago', value = 'c' } }
    list(nvim, 1, earlier, 1)
    local sent = nvim:wait_sent(1, 'command')
    same({ 1, 'resume', 'c' }, { sent.chat, sent.name, sent.args })
    nvim:receive(messages.state('idle', { title = 'an old one', transcript = 'c' }))
    table.insert(earlier, { label = 'older · 4 days ago', value = 'd' })
    same('ready · an old one · 3 days ago · this chat', list(nvim, 1, earlier, 2)[1])
    nvim:wait(at(2))
    nvim:wait('return #_G.sent == 2')
    sent = nvim:sent('command')[2]
    same({ 2, 'resume', 'd' }, { sent.chat, sent.name, sent.args })
  end)

  it('is asked for without a chat, and may be empty', function()
    local nvim = neovim.start({ screen = true, columns = 140 })
    nvim:keys(':Co /chats<CR>')
    same('chats', nvim:wait_sent(1, 'command').name)
    nvim:asks()
    nvim:receive({ type = 'choose', chat = 1, name = 'chats', title = 'Chats', choices = {} })
    nvim:wait_screen('none of this workspace is kept yet')
  end)
end)
