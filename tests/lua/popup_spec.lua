local neovim = require('neovim')
local questions = require('questions')
local ask = require('messages').ask

describe('the list of the questions that wait', function()
  it('counts the rows for which the question on the screen leaves no room', function()
    local nvim = questions.editor({ columns = 60, lines = 15 })
    local asked = {}
    for id = 1, 9 do
      asked[id] = ask(id)
    end
    nvim:receive(unpack(asked))
    nvim:wait_screen('co 1/9')
    nvim:keys(':Co /pending<CR>')
    nvim:wait_screen('waiting: :Co /approve', 'chat 1  touch file1')
    local shown = {}
    for number = 1, 9 do
      shown[#shown + 1] = nvim:shows(('%d  chat 1'):format(number)) and number or nil
    end
    yes(#shown > 1 and #shown < 9)
    nvim:wait_screen(('%d more rows: :Co /log'):format(9 - #shown))
    nvim:keys(':Co /log<CR>')
    nvim:wait('return vim.bo.filetype == "co-log"')
    local log = table.concat(nvim:request('nvim_buf_get_lines', 0, 0, -1, false), '\n')
    yes(log:find('9  chat 1  touch file9', 1, true), log)
  end)

  it('shows a row above a question as high as the screen', function()
    local nvim = questions.editor({ columns = 60, lines = 12 })
    nvim:receive(ask(1, { command = table.concat(neovim.numbered('echo ', 60), '\n') }), ask(2))
    nvim:wait_screen('co 1/2')
    nvim:keys(':Co /pending<CR>')
    nvim:wait_screen('1 more row: :Co /log', '1  chat 1  echo 1')
  end)
end)
