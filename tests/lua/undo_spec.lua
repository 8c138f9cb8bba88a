local messages = require('messages')
local questions = require('questions')
local editor = questions.editor
local asked, reach = questions.asked, questions.reach
local wait_answers = questions.wait_answers

--- The question of `/undo` about two files.
local function ask_undo(id)
  return messages.ask(id, {
    command = '/undo',
    confinement = '',
    reasons = { 'of the turn “fix it”', 'b stays: it was changed later, in the same place' },
    change = messages.change({
      undo = true,
      whole = true,
      files = {
        messages.file('one', '@\n-co\n+mine\n'),
        messages.file('two', '@\n!deleted\n-co\n', { whole = true }),
      },
      facts = { { kind = 'deleted', text = 'gone two: deleted' } },
      excerpt = '#── 2 files\n#── one  +1 -1\n-co\n+mine\n#── two  +0 -1\n-co\n',
    }),
  })
end

describe('a question of /undo', function()
  it('names all files and what stays', function()
    local nvim = editor()
    nvim:receive(ask_undo(1))
    nvim:wait_screen(
      '/undo  +1 -1',
      'why  of the turn “fix it”',
      'b stays: it was changed later',
      '── one  +1 -1',
      '+ mine',
      '── two  +0 -1'
    )
  end)

  it('shows all files in a review, where it takes no answer', function()
    local nvim = asked(ask_undo(1))
    nvim:wait_screen('gone two: deleted')
    nvim:press('d')
    nvim:wait_screen('file 1 of 2 · one  +1 -1', '- co', '+ mine')
    nvim:keys('y')
    nvim:wait_screen('answered as a whole')
    nvim:keys(']f')
    nvim:wait_screen('file 2 of 2 · two', '! deleted', '- co')
    nvim:keys('q')
    nvim:wait_screen('/undo  +1 -1')
    reach(nvim, 'y')
    wait_answers(nvim, { { 1, 'once' } })
  end)

  it('takes y and n only', function()
    local nvim = asked(ask_undo(1), ask_undo(2))
    nvim:wait_screen('y yes · n no')
    nvim:keys('aNecE')
    nvim:keys('y')
    nvim:wait_screen('co 1/1')
    nvim:press('n')
    wait_answers(nvim, { { 1, 'once' }, { 2, 'deny' } })
  end)
end)

describe('the files that a chat changed', function()
  it('are in the quickfix list, which opens', function()
    local nvim = editor()
    local file = vim.fn.tempname()
    vim.fn.writefile({ 'one', 'two' }, file)
    nvim:receive({
      type = 'quickfix',
      title = 'Co /changes',
      entries = {
        { file = file, line = 2, text = '+1 -1 · edit_file a · approved' },
        { file = '', line = 0, text = 'changes not known' },
      },
    })
    nvim:wait_screen('|2| +1 -1 · edit_file a · approved', 'changes not known')
    same('Co /changes', nvim:lua('return vim.fn.getqflist({ title = 0 }).title'))
    nvim:keys(':cfirst<CR>')
    nvim:wait('return vim.fn.expand("%:p") == ... and vim.fn.line(".") == 2', file)
  end)
end)
