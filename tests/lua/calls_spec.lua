-- A call in the text of a chat: its line, its output, and what is folded when it has ended.
local messages = require('messages')
local neovim = require('neovim')
local append, block, call, patch = messages.append, messages.block, messages.call, messages.patch

local CHAT = 'co://chat/1'

--- Returns the fields of a call that has ended.
---@param fields? table
---@return table
local function ended(fields)
  return vim.tbl_extend('force', { state = 'done', kept = 3 }, fields or {})
end

--- Returns a Neovim with a chat, and the cursor in its text.
---@return co.test.Neovim
local function chat()
  local nvim = neovim.chat({ screen = true })
  nvim:keys('<C-w>k')
  return nvim
end

--- Returns the first and last lines of the closed fold at a line.
---@param nvim co.test.Neovim
---@param line integer
---@return integer[]
local function fold(nvim, line)
  return nvim:lua('return { vim.fn.foldclosed(...), vim.fn.foldclosedend(...) }', line)
end

--- Returns the lines that a window shows.
---@param nvim co.test.Neovim
---@return string[]
local function visible(nvim)
  return nvim:lua([[
    local lines, row = {}, 1
    while row <= vim.fn.line('$') do
      lines[#lines + 1] = vim.fn.getline(row)
      row = math.max(vim.fn.foldclosedend(row), row) + 1
    end
    return lines
  ]])
end

describe('a call in a chat', function()
  it('is a line that changes until it has ended, with its output below', function()
    local nvim = chat()
    nvim:receive(append('I look.\n'), call(1, 'ls', { state = 'waits' }))
    same({ 'I look.', '  ? ls', '' }, nvim:lines(CHAT))
    nvim:receive(call(1, 'ls', { block = 9 }), block(9, patch(0, { 'a', 'b' }), false))
    nvim:receive(block(9, patch(1, { 'bb', '', 'c' }), true))
    same({ 'I look.', '  ~ ls', '    a', '    bb', '    ', '    c', '' }, nvim:lines(CHAT))
    nvim:receive(
      call(1, 'ls  exit 2', ended({ state = 'failed', details = '2 s', remarks = { 'a note' } })),
      append('So.')
    )
    same({
      'I look.',
      '  ✗ ls  exit 2',
      '    a',
      '    bb',
      '    ',
      '    c',
      '    a note',
      'So.',
    }, nvim:lines(CHAT))
  end)

  it('keeps the end of its output visible, and folds the rest', function()
    local nvim = chat()
    nvim:receive(call(1, 'make', { block = 1, lead = { 'more', 'of it' } }))
    nvim:receive(block(1, patch(0, neovim.numbered('line', 30)), true))
    nvim:receive(call(1, 'make', ended({ block = 1, lead = { 'more', 'of it' } })))
    local shown = { '  ✓ make', '    … 29 lines', '    line28', '    line29', '    line30', '' }
    same(shown, visible(nvim))
    nvim:keys('ggjzo')
    same(35, #visible(nvim))
    nvim:keys('zc')
    same(shown, visible(nvim))
  end)

  it('folds nothing that is as short as a fold', function()
    local nvim = chat()
    nvim:receive(call(1, 'ls', { block = 1 }), block(1, patch(0, { '1', '2', '3', '4' }), true))
    nvim:receive(call(1, 'ls', ended({ block = 1 })))
    same({ '  ✓ ls', '    1', '    2', '    3', '    4', '' }, nvim:lines(CHAT))
    same({ -1, -1 }, fold(nvim, 2))
  end)

  it('folds a difference into its line', function()
    local nvim = chat()
    nvim:receive(call(1, 'edit a', { block = 1, diff = true, whole = true }))
    nvim:receive(block(1, patch(0, { '@@', ' one', '-two', '+2' }), true))
    nvim:receive(call(1, 'a  +1 -1', ended({ block = 1, diff = true, whole = true })))
    same({ '  ✓ a  +1 -1', '' }, visible(nvim))
    same({ 1, 5 }, fold(nvim, 1))
    nvim:keys('ggzo')
    nvim:wait_screen('-two')
  end)

  it('shows the output of its last run', function()
    local nvim = chat()
    nvim:receive(call(1, 'make', { block = 1 }), block(1, patch(0, { 'tried' }), true))
    nvim:receive(call(1, 'make', { block = 2 }), block(2, patch(0, { 'real' }), true))
    nvim:receive(call(1, 'make', ended({ block = 2 })))
    same({ '  ✓ make', '    real', '' }, nvim:lines(CHAT))
  end)

  it('may get lines after it has ended', function()
    local nvim = chat()
    nvim:receive(call(1, 'read a', ended({ state = 'looks' })))
    local lead = { 'read a', 'read b' }
    nvim:receive(call(1, 'read 2 files', ended({ state = 'looks', lead = lead, whole = true })))
    same({ '  · read 2 files', '' }, visible(nvim))
    lead = { 'read a', 'read b', 'read c' }
    nvim:receive(call(1, 'read 3 files', ended({ state = 'looks', lead = lead, whole = true })))
    same({ '  · read 3 files', '' }, visible(nvim))
    same({ '  · read 3 files', '    read a', '    read b', '    read c', '' }, nvim:lines(CHAT))
  end)

  it('looks the same live and resumed, whatever it printed', function()
    local marks = ('*_`[a](b) ~~'):rep(30)
    local lines = neovim.numbered('line', 12)
    for _, case in ipairs({
      { output = {}, fields = ended() },
      { output = { 'one' }, fields = ended({ details = 'tried', remarks = { 'a', 'b' } }) },
      { output = lines, fields = ended({ state = 'failed', lead = { 'x' } }) },
      { output = lines, fields = ended({ kept = 100 }) },
      { output = { '+ a', '', '- b' }, fields = ended({ whole = true, diff = true }) },
      { output = { marks }, fields = ended() },
      {
        output = vim.list_extend({ marks, '```` ', '' }, lines),
        fields = ended({ lead = { 'x' } }),
      },
      {
        output = vim.list_extend({ unpack(lines) }, { marks }),
        fields = ended({ lead = { 'x' } }),
      },
      { output = vim.list_extend({ marks }, lines), fields = ended({ whole = true }) },
    }) do
      local live = chat()
      local fields = vim.tbl_extend('force', case.fields, { block = 1 })
      local runs = { block = 1, lead = fields.lead, whole = fields.whole, diff = fields.diff }
      live:receive(append('Before.\n'), call(1, 'make', runs))
      live:receive(block(1, patch(0, case.output), true), call(1, 'make', fields))
      live:receive(append('After.'))
      local resumed = chat()
      local rows = call(1, 'make', case.fields)
      rows.type, rows.chat, rows.call = nil, nil, nil
      rows.row, rows.output, rows.skipped = 1, #case.output, 0
      local text = vim.list_extend({ 'Before.', '' }, case.output)
      text[#text + 1] = 'After.'
      resumed:receive({
        type = 'replace',
        chat = 1,
        text = table.concat(text, '\n'),
        above = 0,
        calls = { rows },
      })
      same(live:lines(CHAT), resumed:lines(CHAT), vim.inspect(case))
      same(visible(live), visible(resumed), vim.inspect(case))
    end
  end)

  it('is folded in a window that opens later', function()
    local nvim = neovim.chat({ screen = true })
    nvim:keys('<C-w>kq')
    nvim:receive(call(1, 'make', { block = 1 }))
    nvim:receive(block(1, patch(0, neovim.numbered('line', 30)), true))
    nvim:receive(call(1, 'make', ended({ block = 1 })))
    nvim:enter_chat()
    nvim:keys('<C-w>k')
    same({ 2, 29 }, fold(nvim, 5))
  end)
end)
