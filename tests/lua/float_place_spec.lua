-- The question float covers neither a prompt nor the last lines of a chat.

local messages = require('messages')
local neovim = require('neovim')
local append, ask = messages.append, messages.ask

local LONG = ('a line of the answer\n\n'):rep(40)

--- A Neovim with a chat, a draft and a question.
---@param size integer[]
---@param layout string
---@param text string of the chat
local function asked(size, layout, text)
  local nvim = neovim.start({ screen = true, columns = size[1], lines = size[2] })
  nvim:lua('require("co").setup({ layout = ... })', layout)
  nvim:keys(':Co<CR>')
  nvim:wait("return vim.bo.filetype == 'co-prompt'")
  nvim:keys('imy draft')
  nvim:wait_screen('my draft')
  nvim:receive(append(text .. 'THE LAST LINE\n'), ask(1))
  nvim:wait_screen('co 1/1')
  return nvim
end

--- Waits for a screen with the question, the draft and the last line.
local function wait_all(nvim, about)
  for _, text in ipairs({ 'touch file1', 'my draft', 'THE LAST LINE' }) do
    neovim.wait(function()
      return ('%s: "%s" on\n%s'):format(about, text, table.concat(nvim:screen(), '\n'))
    end, function()
      return nvim:shows(text)
    end)
  end
end

describe('the place of a question', function()
  it('leaves the prompt and the end of the chat visible', function()
    for _, size in ipairs({ { 160, 45 }, { 60, 15 } }) do
      for _, layout in ipairs({ 'vertical', 'horizontal', 'tab', 'float' }) do
        for name, text in pairs({ short = 'one line\n', long = LONG }) do
          local nvim = asked(size, layout, text)
          wait_all(nvim, ('%dx%d, %s, %s'):format(size[1], size[2], layout, name))
        end
      end
    end
  end)

  it('changes with the text of the chat', function()
    local nvim = asked({ 60, 30 }, 'tab', 'one line\n')
    for count = 1, 20 do
      nvim:receive(append(('\nline %d of it'):format(count)))
      nvim:wait_screen(('line %d of it'):format(count))
    end
    nvim:wait_screen('touch file1')
  end)

  it('changes with the height of the prompt', function()
    local nvim = asked({ 60, 30 }, 'tab', LONG)
    for count = 1, 6 do
      nvim:keys(('<CR>draft %d'):format(count))
    end
    nvim:wait_screen('draft 6')
    wait_all(nvim, 'a longer draft')
  end)

  it('changes with the size of the screen', function()
    local nvim = asked({ 160, 45 }, 'vertical', LONG)
    for _, size in ipairs({ { 60, 15 }, { 160, 45 } }) do
      vim.o.columns, vim.o.lines = size[1], size[2] + 1
      nvim:wait('return vim.o.columns == ...', size[1])
      wait_all(nvim, ('%d columns'):format(size[1]))
    end
  end)
end)
