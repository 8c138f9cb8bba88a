-- A choice that the backend asks for, such as the model or the chat to resume.

local messages = require('messages')
local neovim = require('neovim')

local chat = neovim.chat

local function choose(name, title, choices, chat_id)
  return { type = 'choose', chat = chat_id or 1, name = name, title = title, choices = choices }
end

describe('a choice', function()
  it('is asked for and sent', function()
    local nvim = chat()
    nvim:lua(
      'vim.ui.select = function(items, opts, done) _G.title = opts.prompt done(items[2]) end'
    )
    local models = { { label = 'one', value = 'm1' }, { label = 'two', value = 'm2' } }
    nvim:asks()
    nvim:receive(choose('model', 'Which model', models))
    same({ 'model', 'm2' }, { nvim:wait_sent(1).name, nvim:sent()[1].args })
    same('Which model', nvim:lua('return _G.title'))
  end)

  it('that is to be confirmed is sent after that', function()
    local nvim = chat()
    nvim:lua([[
      _G.asked = {}
      vim.ui.select = function(items, opts, done)
        table.insert(_G.asked, opts.prompt)
        done(items[#_G.asked == 4 and 2 or 1])
      end
    ]])
    for count = 1, 2 do
      local rule = { label = 'allow ls', value = 'chat:ls', confirm = 'Remove `allow ls`?' }
      nvim:asks()
      nvim:receive(choose('rules', 'Rules', { rule }))
      nvim:wait('return #_G.asked == ...', 2 * count)
    end
    nvim:wait('return #_G.sent == 1')
    same({ 'Rules', 'Remove `allow ls`?' }, nvim:lua('return { _G.asked[3], _G.asked[4] }'))
    same('chat:ls', nvim:sent('command')[1].args)
  end)

  it('of a chat that is open goes to it', function()
    local nvim = chat({ screen = true, columns = 140 })
    nvim:receive(messages.state('idle', { transcript = 'abc' }))
    nvim:keys(':tabnew<CR>:Co /new<CR>')
    nvim:wait("return vim.api.nvim_buf_get_name(0) == 'co://chat/2/prompt'")
    local choices = { { label = 'hello · 1 min ago', value = 'abc' } }
    local function answer(name, key)
      nvim:asks()
      nvim:receive(choose(name, name .. ' which', choices, 2))
      nvim:wait_screen(name .. ' which')
      nvim:wait_screen('hello · 1 min ago · open: chat 1')
      nvim:press(key .. '<CR>')
    end
    answer('resume', '1')
    nvim:wait("return vim.api.nvim_buf_get_name(0) == 'co://chat/1/prompt'")
    same(1, nvim:lua('return vim.fn.tabpagenr()'))
    nvim:keys('gt')
    nvim:wait("return vim.api.nvim_buf_get_name(0) == 'co://chat/2/prompt'")
    answer('delete', '1')
    nvim:wait_screen('not deleted: chat 1 has it open')
    nvim:keys('i/resume abc<C-s>')
    nvim:wait("return vim.api.nvim_buf_get_name(0) == 'co://chat/1/prompt'")
    same({}, nvim:sent('command'))
  end)
end)
