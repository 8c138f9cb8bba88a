-- A call in the text of a chat: its line, its output, and what is folded when it has ended.
local messages = require('messages')
local neovim = require('neovim')
local append, block, call, patch = messages.append, messages.block, messages.call, messages.patch

local CHAT = 'co://chat/1'

--- Returns the fields of a call that has ended.
---@param fields? table
---@return table
local function ended(fields)
  local kept = fields and fields.whole and 0 or 3
  return vim.tbl_extend('force', { state = 'done', kept = kept }, fields or {})
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

  it('folds the output of what only looked into its line if it has many lines', function()
    local nvim = chat()
    for id, count in ipairs({ 3, 4 }) do
      nvim:receive(call(id, 'ls', { block = id }))
      nvim:receive(block(id, patch(0, neovim.numbered('line', count)), true))
      local fields = { state = 'looks', block = id, whole = true, kept = 3 }
      nvim:receive(call(id, 'ls', ended(fields)))
    end
    same({ '  · ls', '    line1', '    line2', '    line3', '  · ls', '' }, visible(nvim))
    same({ 5, 9 }, fold(nvim, 5))
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

  it('has output that is never markup, in whatever text it is', function()
    local nvim = chat()
    local lines = { '*a* `b`', '# c' }
    nvim:receive(append('First.\n'), call(1, 'make *x*', { block = 1 }))
    nvim:receive(block(1, patch(0, lines), true))
    nvim:receive(call(1, 'make *x*', ended({ block = 1, remarks = { '__d__' } })))
    nvim:receive(append('The *second*.\n'), call(2, 'ls', ended()), append('\n- third'))
    nvim:wait_screen('The second.', '*a* `b`', '# c', '__d__', 'make *x*')
    nvim:lua('vim.wait(300)')
    for _, text in ipairs({ '*a* `b`', '# c', '__d__', 'make *x*' }) do
      yes(nvim:shows(text), text)
    end
  end)

  it('has a sign that turns while it runs, and no timer after that', function()
    local function timers(nvim)
      return nvim:lua([[
        local count = 0
        vim.uv.walk(function(handle)
          count = count + (handle:get_type() == 'timer' and handle:is_active() and 1 or 0)
        end)
        return count
      ]])
    end
    for _, finish in ipairs({
      function(nvim)
        nvim:receive(call(1, 'make', ended()))
      end,
      function(nvim)
        nvim:lua("require('co.backend').handle_exit('the backend ended')")
      end,
      function(nvim)
        nvim:lua("vim.api.nvim_buf_delete(vim.fn.bufnr('^co://chat/1$'), { force = true })")
      end,
    }) do
      local nvim = chat()
      nvim:receive(call(1, 'make', { state = 'waits' }))
      nvim:wait_screen('? make')
      nvim:receive(call(1, 'make'))
      nvim:wait_screen('⠋ make', '⠙ make')
      same('  ~ make', nvim:lines(CHAT)[1])
      finish(nvim)
      nvim:wait_gone('⠙ make')
      neovim.wait('no timer', function()
        return timers(nvim) == 0
      end)
    end
  end)

  it('has no fence for a line that was printed anew', function()
    local marks = ('*_`[a](b) ~~'):rep(30)
    local nvim = chat()
    nvim:receive(call(1, 'make', { block = 1 }))
    for _, line in ipairs({ '10%', '20%', marks, '90%' }) do
      nvim:receive(block(1, patch(0, { line, 'more' }), false))
    end
    nvim:receive(block(1, nil, true), call(1, 'make', ended({ block = 1 })))
    same({ '  ✓ make', '    90%', '    more', '' }, nvim:lines(CHAT))
  end)
end)

describe('the keys of calls', function()
  local DIFF = {
    '--- a/src/b.lua',
    '+++ b/src/b.lua',
    '@@ -2,4 +2,4 @@',
    ' 2',
    ' 3',
    '-4',
    '+four',
    ' 5',
  }

  --- Returns a chat in a directory with two files, after three calls.
  ---@return co.test.Neovim
  local function calls()
    local nvim = chat()
    local dir = neovim.dir()
    vim.fn.mkdir(dir .. '/src')
    for _, name in ipairs({ 'a file.lua', 'src/b.lua' }) do
      vim.fn.writefile(neovim.numbered('', 9), dir .. '/' .. name)
    end
    nvim:receive(messages.state('idle', { cwd = dir }))
    nvim:receive(
      append('## Co\nI look.\n'),
      call(1, 'read a file.lua', ended({ state = 'looks', details = '3-9' })),
      append('So.\n'),
      call(2, 'src/b.lua  +1 -1', { block = 2, diff = true, whole = true }),
      block(2, patch(0, DIFF), true),
      call(2, 'src/b.lua  +1 -1', ended({ block = 2, diff = true, whole = true })),
      call(3, 'make', { block = 3, lead = { 'more' } }),
      block(3, patch(0, neovim.numbered('line', 30)), true),
      call(3, 'make', ended({ block = 3, lead = { 'more' } }))
    )
    nvim:wait_line(CHAT, '✓ make')
    nvim:keys('gg')
    return nvim
  end

  --- Waits until the cursor is at a line of a file.
  local function wait_place(nvim, name, line)
    nvim:wait(
      "local name, line = ... return vim.fn.expand('%:t') == name and vim.fn.line('.') == line",
      name,
      line
    )
  end

  it('go from call to call', function()
    local nvim = calls()
    for keys, what in pairs({ ['gg]c'] = 'read', ['gg2]c'] = '✓ src', ['G[c'] = 'make' }) do
      nvim:keys(keys)
      nvim:wait('return vim.api.nvim_get_current_line():find(..., 1, true)', what)
    end
  end)

  it('go to changes in diff mode', function()
    local nvim = calls()
    nvim:lua('vim.wo.diff = true')
    nvim:keys('gg]c')
    nvim:settle()
    same(1, nvim:lua("return vim.fn.line('.')"))
  end)

  it('open the file of a call at its lines', function()
    for keys, place in pairs({
      ['gg]cgd'] = { 'a file.lua', 3 },
      ['gg2]cgd'] = { 'b.lua', 4 },
      ['gg2]czo8jgd'] = { 'b.lua', 5 },
    }) do
      local nvim = calls()
      nvim:keys(keys)
      wait_place(nvim, unpack(place))
    end
  end)

  it('open the place that an agent names apart from the title of its call', function()
    for details, place in pairs({
      ['src/b.lua:7'] = { 'b.lua', 7 },
      ['src/b.lua:7 and 2 more · 2 s'] = { 'b.lua', 7 },
      ['a file.lua:2'] = { 'a file.lua', 2 },
    }) do
      local nvim = calls()
      local title = details:find('^a') and 'Read a file.lua' or 'Look at the code'
      nvim:receive(call(4, title, ended({ state = 'looks', details = details })))
      nvim:wait_line(CHAT, '· ' .. title)
      nvim:keys(place[2] == 7 and 'G[cgf' or 'G[cgd')
      wait_place(nvim, unpack(place))
    end
  end)

  it('open the whole output of a call in a buffer', function()
    for _, keys in ipairs({ 'G[c<CR>', 'G[cgd' }) do
      local nvim = calls()
      nvim:keys(keys)
      nvim:wait("return vim.fn.getline(2) == 'line1' and vim.fn.getline('$') == 'line30'")
      nvim:keys('q')
      nvim:wait("return vim.fn.bufname():find('co://output', 1, true) == nil")
    end
  end)

  it('tell how many lines of an output the chat does not have', function()
    local nvim = chat()
    nvim:receive(
      call(1, 'make', { block = 1 }),
      block(1, patch(0, { 'last' }, { skipped = 7 }), true),
      call(1, 'make', ended({ block = 1 }))
    )
    nvim:wait_line(CHAT, '✓ make')
    nvim:keys('gg')
    nvim:keys('<CR>')
    nvim:wait("return vim.fn.getline(1) == '… 7 earlier lines' and vim.fn.getline('$') == 'last'")
  end)

  it('open the file with an output of which the chat has a part', function()
    local file = vim.fn.tempname()
    vim.fn.writefile(neovim.numbered('line', 30), file)
    local nvim = chat()
    nvim:receive(
      call(1, 'make', { block = 1 }),
      block(1, patch(0, { 'line30' }, { skipped = 29 }), true),
      call(1, 'make', ended({ block = 1, spill = file }))
    )
    nvim:wait_line(CHAT, '✓ make')
    nvim:keys('gg<CR>')
    nvim:wait('return vim.api.nvim_buf_get_name(0) == ...', vim.uv.fs_realpath(file))
  end)

  it('know a changed line from the head of a file', function()
    local nvim = calls()
    nvim:receive(
      call(4, 'src/b.lua  +2 -1', { block = 4, diff = true, whole = true }),
      block(
        4,
        patch(0, {
          '--- a/src/b.lua',
          '+++ b/src/b.lua',
          '@@ -3,3 +3,4 @@',
          ' 3',
          '--- a/x',
          '+++ b/x',
          '+@@ -1 +1 @@',
          '\\ No newline at end of file',
          ' 5',
        }),
        true
      ),
      call(4, 'src/b.lua  +2 -1', ended({ block = 4, diff = true, whole = true }))
    )
    nvim:wait_line(CHAT, 'src/b.lua  +2 -1')
    nvim:keys('Gzo$?No newline<CR>jgd')
    wait_place(nvim, 'b.lua', 6)
  end)
end)
