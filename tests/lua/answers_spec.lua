-- Answers that the model no longer sees, since its person asked again.

local messages = require('messages')
local neovim = require('neovim')

local CHAT = 'co://chat/1'

local append = messages.append
local BEGINS = { type = 'answer_begins', chat = 1 }
local FOLD = { type = 'fold_answer', chat = 1 }

local function chat()
  local nvim = neovim.chat()
  nvim:keys('<C-w>k')
  nvim:wait("return vim.bo.filetype == 'co-chat'")
  return nvim
end

--- The first and the last line of the closed fold that `line` is in.
local function fold(nvim, line)
  return nvim:lua(('return { vim.fn.foldclosed(%d), vim.fn.foldclosedend(%d) }'):format(line, line))
end

describe('an answer that was asked for again', function()
  it('is folded, with what was said about it', function()
    local nvim = chat()
    nvim:receive(
      append('## You\n\nhi\n\n## Co\n\n'),
      BEGINS,
      append('One'),
      append(' line.\n\nMore.'),
      append('\n\n> it broke off\n\n'),
      FOLD,
      append('> asked again\n\n'),
      BEGINS,
      append('Two.')
    )
    nvim:wait_line(CHAT, 'Two')
    same({ 7, 11 }, fold(nvim, 8))
    same({ -1, -1 }, fold(nvim, 13))
    same({ -1, -1 }, fold(nvim, 15))
    -- So it is in a window that shows the chat later.
    nvim:keys('q')
    nvim:wait("return vim.bo.filetype ~= 'co-chat'")
    nvim:lua("vim.cmd('Co')")
    nvim:wait("return vim.bo.filetype == 'co-prompt'")
    nvim:keys('<C-w>k')
    nvim:wait("return vim.bo.filetype == 'co-chat'")
    same({ 7, 11 }, fold(nvim, 8))
    -- The second one as well.
    nvim:receive(append('\n\n'), FOLD, append('> asked again\n\n'))
    nvim:wait('return vim.fn.foldclosed(15) == 15 and vim.fn.foldclosedend(15) == 15')
  end)

  it('is folded in a conversation that is taken up again', function()
    local nvim = chat()
    nvim:receive({
      type = 'replace',
      chat = 1,
      text = 'hi\n\nOne\nline.\n\n> asked again\n\nTwo.',
      folds = { { 2, 4 } },
      answer = 7,
    })
    nvim:wait_line(CHAT, 'Two')
    same({ 3, 5 }, fold(nvim, 3))
    nvim:receive(append('\nLines.\n\n'), FOLD, append('> asked again\n\n'))
    nvim:wait('return vim.fn.foldclosed(8) > 0')
    same({ 8, 9 }, fold(nvim, 8))
  end)

  it('changes nothing where there is none', function()
    local nvim = chat()
    nvim:receive(append('## You\n\nhi\n\n'), FOLD, append('> asked again\n\n'))
    nvim:wait_line(CHAT, 'again')
    same({ -1, -1 }, fold(nvim, 3))
  end)
end)
