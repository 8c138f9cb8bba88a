local messages = require('messages')
local neovim = require('neovim')
local shell_buffer = require('shell_buffer')
local enter = shell_buffer.enter
local started = shell_buffer.started
local wait_line = shell_buffer.wait_line
local ended, output, patch = messages.ended, messages.output, messages.patch

local SHELL = 'co://shell'

describe('the shell buffer', function()
  it('is one unfocused split, used again', function()
    local nvim = neovim.start({ screen = true })
    nvim:keys(':Co! echo one<CR>')
    nvim:wait_screen('$ echo one', 'running')
    same('', nvim:lua('return vim.bo.filetype'))
    nvim:keys(':Co! echo two<CR>')
    nvim:wait_screen('$ echo two')
    same(2, nvim:lua('return #vim.api.nvim_list_wins()'))
    same('nofile', nvim:lua("return vim.bo[vim.fn.bufnr('^co://shell$')].buftype"))
    same({ '$ echo one', '… running', '', '$ echo two', '… running' }, nvim:lines(SHELL))
  end)

  it('draws what it shows already a moment later, and before anything that looks for it', function()
    local nvim = started('one')
    local seen = nvim:lua([[
      local lines = function() return vim.api.nvim_buf_line_count(vim.fn.bufnr('^co://shell$')) end
      local before = lines()
      vim.cmd('Co! two')
      local at_once = lines()
      require('co.run.shell_buffer').run_at(0)
      return { before, at_once, lines() }
    ]])
    same({ 2, 2, 5 }, seen)
    nvim:lua("vim.cmd('Co! three')")
    nvim:receive(ended(2, 0))
    same({
      '$ one',
      '… running',
      '',
      '$ two',
      'exit 0 · 0.1 s · 1 line',
      '',
      '$ three',
      '… running',
    }, nvim:lines(SHELL))
    nvim:lua("vim.cmd('Co! four')")
    wait_line(nvim, '$ four')
  end)

  it('draws each block in its own moment', function()
    local nvim = started('one')
    local seen = nvim:lua([[
      local lines = function() return vim.api.nvim_buf_line_count(vim.fn.bufnr('^co://shell$')) end
      local moments, defer = {}, vim.defer_fn
      vim.defer_fn = function(moment) moments[#moments + 1] = moment end
      vim.cmd('Co! two')
      require('co.run.shell_buffer').run_at(0)
      vim.cmd('Co! three')
      vim.defer_fn = defer
      moments[1]()
      local early = lines()
      moments[2]()
      return { early, lines() }
    ]])
    same({ 5, 8 }, seen)
  end)

  it('draws the block of a quiet command while the command line is open', function()
    local nvim = neovim.start({ screen = true })
    nvim:keys(':Co! one<CR>')
    nvim:wait_screen('$ one')
    nvim:lua([[vim.keymap.set('n', '<F3>', ':Co! two<CR>:')]])
    nvim:keys('<F3>')
    nvim:wait_screen('$ two')
    same('c', nvim:lua('return vim.api.nvim_get_mode().mode'))
  end)

  it('sends command, directory and a new number', function()
    local nvim = neovim.start()
    local dir = neovim.dir()
    nvim:lua("vim.cmd('lcd ' .. ...) vim.cmd('Co! ls -la | wc -l') vim.cmd('Co! pwd')", dir)
    local sent = nvim:sent('run')
    same({ 1, 'ls -la | wc -l', dir }, { sent[1].run, sent[1].command, sent[1].cwd })
    same(2, sent[2].run)
    yes(sent[1].stdin == nil)
  end)

  it('says so where the directory is gone', function()
    local nvim = neovim.start()
    local dir = neovim.dir()
    nvim:lua("vim.cmd('cd ' .. ...)", dir)
    vim.fn.delete(dir, 'd')
    nvim:lua("vim.cmd('Co! ls')")
    nvim:wait_notice('does not exist any more')
    same({}, nvim:sent())
    nvim:lua("vim.cmd('cd /') vim.cmd('Co! ls')")
    same('/', nvim:sent('run')[1].cwd)
  end)

  it('shows runs side by side, each in its block', function()
    local nvim = started('one')
    nvim:lua("vim.cmd('Co! two')")
    nvim:receive(output(1, patch(0, { 'a', 'b' })), output(2, patch(0, { 'x' })))
    nvim:receive(
      output(1, patch(1, { 'B', 'c' })),
      ended(2, 0),
      output(1, patch(3, { 'd' })),
      ended(1, 1)
    )
    wait_line(nvim, 'exit 1 · 0.1 s · 1 line')
    same({
      '$ one',
      'a',
      'B',
      'c',
      'd',
      'exit 1 · 0.1 s · 1 line',
      '',
      '$ two',
      'x',
      'exit 0 · 0.1 s · 1 line',
    }, nvim:lines(SHELL))
  end)

  it('shows in one line how a run ended, whatever that names', function()
    local nvim = started('make')
    local over = ended(1, 1)
    over.status = 'not run: there is no /a\nb: choose another'
    nvim:receive(over)
    wait_line(nvim, 'not run: there is no /a\\nb: choose another')
    nvim:lua("vim.cmd('Co /jobs')")
    same(1, #nvim:lines('co://jobs'))
    same({}, nvim:lua('return _G.notices'))
  end)

  it('shows the start of a very long command, and blocks nothing', function()
    local nvim = neovim.start({ screen = true })
    nvim:keys(':Co! true<CR>')
    nvim:wait_sent(1, 'run')
    local id = 1
    for _, command in ipairs({ ('\n'):rep(300000), ('é'):rep(150000), ('\n \0'):rep(9000) }) do
      nvim:assert_quick(command:sub(1, 4), function()
        id = id + 1
        nvim:receive(
          messages.job(id, id, 'x' .. command),
          output(id, patch(0, { 'a line' })),
          ended(id, 0)
        )
        nvim:wait_notice(('job %d of chat 1: exit 0'):format(id))
      end)
      local _, tail = unpack(vim.list_slice(nvim:lines(SHELL), #nvim:lines(SHELL) - 1))
      same('exit 0 · 0.1 s · 1 line', tail)
    end
    yes(#nvim:lines(SHELL) < 900)
    enter(nvim)
    nvim:keys('gg]]')
    nvim:wait("return vim.fn.line('.') == 4")
    nvim:keys('G[[')
    nvim:wait("return vim.startswith(vim.fn.getline('.'), '$ x')")
  end)

  it('shows a command of several lines', function()
    local nvim = started('x')
    nvim:lua("require('co').run('for i in 1 2; do\\necho $i\\ndone')")
    nvim:receive(output(2, patch(0, { '1', '2' })), ended(2, 0))
    wait_line(nvim, 'exit 0 · 0.1 s · 1 line')
    same(
      { '$ for i in 1 2; do', '> echo $i', '> done', '1', '2', 'exit 0 · 0.1 s · 1 line' },
      vim.list_slice(nvim:lines(SHELL), 4)
    )
  end)

  it('says how many lines came before, as a flood moves on and ends', function()
    local nvim = started('seq')
    nvim:receive(
      output(1, patch(0, { '1', '2' })),
      output(1, patch(0, { '8', '9' }, { skipped = 7 }))
    )
    nvim:receive(output(1, patch(2, { '10' }, { skipped = 7 })))
    wait_line(nvim, '10')
    same({ '$ seq', '… 7 earlier lines', '8', '9', '10', '… running' }, nvim:lines(SHELL))
    nvim:receive(
      output(1, patch(0, { '4', '5' }, { skipped = 3 })),
      output(1, patch(2, { '6' }, { skipped = 3 }))
    )
    wait_line(nvim, '6')
    same({ '$ seq', '… 3 earlier lines', '4', '5', '6', '… running' }, nvim:lines(SHELL))
    nvim:receive(output(1, patch(0, { '1', '2', '3' })), ended(1, 0))
    wait_line(nvim, 'exit 0 · 0.1 s · 1 line')
    same({ '$ seq', '1', '2', '3', 'exit 0 · 0.1 s · 1 line' }, nvim:lines(SHELL))
  end)

  it('opens the whole stream with gf on that line, and on a line that is cut', function()
    for _, shown in ipairs({
      patch(0, { '9' }, { skipped = 8 }),
      patch(0, { ('x'):rep(70) .. '… 930 more characters' }),
    }) do
      local nvim = started('seq')
      local spill = vim.fn.tempname()
      vim.fn.writefile({ 'whole' }, spill)
      local over = ended(1, 0)
      over.spill = spill
      nvim:receive(output(1, shown), over)
      wait_line(nvim, 'exit 0 · 0.1 s · 1 line')
      enter(nvim)
      nvim:keys('ggjgf')
      nvim:wait('return vim.api.nvim_buf_get_name(0) == ...', spill)
    end
  end)

  it('colours what is coloured, and only that', function()
    local nvim = started('ls')
    nvim:receive(output(
      1,
      patch(0, { 'plain', 'red and 界' }, {
        styles = {
          { line = 1, start = 0, ['end'] = 3, sgr = '1;31' },
          { line = 1, start = 8, ['end'] = 11, sgr = '38;5;208' },
        },
      })
    ))
    wait_line(nvim, 'plain')
    local MARKS = [[
      local ns = vim.api.nvim_get_namespaces()['co.sgr']
      return vim.tbl_map(function(mark)
        return { mark[2], mark[3], mark[4].end_col, mark[4].hl_group }
      end, vim.api.nvim_buf_get_extmarks(vim.fn.bufnr('^co://shell$'), ns, 0, -1, { details = true }))
    ]]
    same({ { 2, 0, 3, 'CoSgr_1_31' }, { 2, 8, 11, 'CoSgr_38_5_208' } }, nvim:lua(MARKS))
    local red = nvim:lua("return vim.api.nvim_get_hl(0, { name = 'CoSgr_1_31' })")
    same({ true, 0xcd0000 }, { red.bold, red.fg })
    nvim:receive(output(1, patch(1, { 'plain now' })))
    wait_line(nvim, 'plain now')
    same({}, nvim:lua(MARKS))
  end)

  it('leaves Neovim room for other highlights, however many colours are printed', function()
    local nvim = started('picture')
    local styles = {}
    for colour = 0, 29999 do
      local red, green, blue =
        math.floor(colour / 65536), math.floor(colour / 256) % 256, colour % 256
      local sgr = ('38;2;%d;%d;%d;48;2;%d;0;0'):format(red, green, blue, colour % 199)
      styles[colour + 1] = { line = 0, start = colour, ['end'] = colour + 1, sgr = sgr }
    end
    nvim:receive(output(1, patch(0, { ('#'):rep(30000) }, { styles = styles })), ended(1, 0))
    wait_line(nvim, 'exit 0 · 0.1 s · 1 line')
    same({}, nvim:lua('return _G.notices'))
    local seen = nvim:lua([[
      local highlight = require('co.ui.highlight')
      local near = vim.api.nvim_get_hl(0, { name = highlight.group('38;2;1;255;0;48;2;97;0;0') })
      for colour = 0, 29999 do
        highlight.group(('38;5;%d;48;5;%d'):format(colour % 256, math.floor(colour / 256)))
      end
      vim.cmd('highlight Mine guifg=red')
      return { near.fg, near.bg, highlight.group('38;5;255;48;5;255') == nil, highlight.group('1;31') }
    ]])
    same({ 0x00ff00, 0x5f0000, true, 'CoSgr_1_31' }, seen)
  end)

  it('follows at the last line only', function()
    local nvim = started('seq', { screen = true })
    local lines = neovim.numbered('line ', 200)
    nvim:receive(output(1, patch(0, lines)))
    nvim:wait_screen('line 200')
    enter(nvim)
    nvim:keys('50G')
    nvim:wait("return vim.fn.line('.') == 50")
    local before = nvim:lua('return vim.fn.winsaveview().topline')
    nvim:receive(output(1, patch(200, { 'line 201' })))
    wait_line(nvim, 'line 201')
    same({ 50, before }, nvim:lua("return { vim.fn.line('.'), vim.fn.winsaveview().topline }"))
  end)

  for name, start in pairs({ [':Co!'] = ':Co! two<CR>', r = 'r' }) do
    it(name .. ' scrolls the new run into view', function()
      local nvim = started('seq', { screen = true })
      local lines = neovim.numbered('line ', 200)
      nvim:receive(output(1, patch(0, lines)), ended(1, 0))
      nvim:wait_screen('line 200')
      enter(nvim)
      nvim:keys('gg')
      nvim:wait("return vim.fn.line('.') == 1")
      nvim:keys(start)
      nvim:wait_screen('running')
      nvim:wait("return vim.fn.line('.') == vim.fn.line('$')")
    end)
  end

  it('is not scrolled by the job of a model', function()
    local nvim = started('seq', { screen = true })
    nvim:receive(ended(1, 0))
    enter(nvim)
    nvim:keys('gg')
    nvim:receive(messages.job(2, 1, 'server'))
    wait_line(nvim, '$ server')
    same(1, nvim:lua("return vim.fn.line('.')"))
  end)

  it('folds a long run when it has ended and another begins, not where the cursor is', function()
    local nvim = started('one')
    nvim:receive(output(1, patch(0, neovim.numbered('line ', 30))), ended(1, 0))
    wait_line(nvim, 'line 30')
    enter(nvim)
    same(-1, nvim:lua('return vim.fn.foldclosed(5)'))
    nvim:keys('G')
    nvim:lua("vim.cmd('Co! two')")
    nvim:receive(output(2, patch(0, { 'x' })), ended(2, 0))
    wait_line(nvim, 'x')
    same(
      { 2, 31, -1 },
      nvim:lua('return { vim.fn.foldclosed(5), vim.fn.foldclosedend(5), vim.fn.foldclosed(34) }')
    )
    nvim:keys('q')
    nvim:wait("return vim.bo.filetype == ''")
    nvim:lua("require('co').shell()")
    enter(nvim)
    same({ 2, 31 }, nvim:lua('return { vim.fn.foldclosed(5), vim.fn.foldclosedend(5) }'))
  end)

  it('drops old runs when it is long, never one that goes on', function()
    local nvim = started('server')
    for run = 2, 8 do
      local lines = vim.fn['repeat']({ 'a line of run ' .. run }, 9000)
      nvim:lua("vim.cmd('Co! run' .. ...)", run)
      nvim:receive(output(run, patch(0, lines)), ended(run, 0))
    end
    nvim:lua("vim.cmd('Co! last')")
    wait_line(nvim, '$ last')
    local lines = nvim:lines(SHELL)
    same({ '$ server', '… running', '' }, vim.list_slice(lines, 1, 3))
    same(true, #lines <= 50010)
    same({ false, true }, {
      vim.tbl_contains(lines, 'a line of run 2'),
      vim.tbl_contains(lines, 'a line of run 8'),
    })
  end)

  it('<C-c> cancels the run under the cursor', function()
    local nvim = started('one')
    nvim:lua("vim.cmd('Co! two')")
    enter(nvim)
    nvim:keys('gg<C-c>')
    same({ type = 'cancel_run', run = 1 }, nvim:wait_sent(3))
    nvim:keys('G<C-c>')
    same(2, nvim:wait_sent(4).run)
    local left = { left = true, status = 'exit 1; still running: sleep 9 (pid 7)' }
    nvim:receive(vim.tbl_extend('force', ended(2, 1), left))
    wait_line(nvim, left.status)
    nvim:keys('<C-c>')
    same({ type = 'cancel_run', run = 2 }, nvim:wait_sent(5))
    nvim:receive({ type = 'left_ended', run = 2, status = 'exit 1; ended: sleep 9' })
    wait_line(nvim, 'exit 1; ended: sleep 9')
    same(5, #nvim:lines(SHELL))
    nvim:keys('<C-c>')
    nvim:wait_notice('run 2 has ended, and nothing of it runs')
    same(3, #nvim:sent('cancel_run'))
  end)

  it('r runs again where it ran, ]] and [[ go from run to run, q hides', function()
    local nvim = started('one')
    nvim:lua("vim.cmd('cd /') vim.cmd('Co! two') vim.cmd('cd /tmp')")
    enter(nvim)
    nvim:keys('gg]]')
    nvim:wait("return vim.api.nvim_get_current_line() == '$ two'")
    nvim:keys('r')
    same({ 'two', '/' }, { nvim:wait_sent(3).command, nvim:sent()[3].cwd })
    nvim:wait("return vim.fn.line('.') == 8")
    nvim:keys('``')
    nvim:wait("return vim.fn.line('.') == 4")
    nvim:keys('[[')
    nvim:wait("return vim.api.nvim_get_current_line() == '$ one'")
    nvim:keys('q')
    nvim:wait("return vim.bo.filetype == ''")
    nvim:lua("vim.cmd('Co!')")
    same('two', nvim:wait_sent(4).command)
  end)

  it('gives a range on stdin', function()
    local nvim = neovim.start()
    nvim:lua([[
      vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'one', 'two', 'three' })
      vim.cmd('2,3Co! sort')
    ]])
    same('two\nthree\n', nvim:sent('run')[1].stdin)
  end)

  it('repeats nothing before the first run', function()
    local nvim = neovim.start()
    nvim:lua("vim.cmd('Co!')")
    nvim:wait_notice('nothing has been run yet')
  end)

  it('raises CoJobDone with the output there and before the end is drawn', function()
    local nvim = neovim.start()
    nvim:lua([[
      vim.api.nvim_create_autocmd('User', { pattern = 'CoJobDone', callback = function(event)
        local buf = vim.fn.bufnr('^co://shell$')
        _G.done = {
          event.data.command, event.data.exit, vim.api.nvim_buf_get_lines(buf, 0, -1, false),
          require('co.run').running(),
        }
      end })
      vim.cmd('Co! make')
    ]])
    nvim:receive(output(1, patch(0, { 'made' })), ended(1, 2))
    nvim:wait('return _G.done')
    same({ 'make', 2, { '$ make', 'made', '… running' }, 0 }, nvim:lua('return _G.done'))
    same({ '$ make', 'made', 'exit 2 · 0.1 s · 1 line' }, nvim:lines(SHELL))
  end)

  it('takes a file that changed under an unmodified buffer, and keeps a modified one', function()
    local nvim = neovim.start({ screen = true })
    local file = vim.fn.tempname()
    vim.fn.writefile({ 'old' }, file)
    nvim:lua("vim.o.autoread = true vim.cmd('edit ' .. ...) vim.cmd('Co! fmt')", file)
    vim.fn.writefile({ 'new and longer' }, file)
    nvim:receive(ended(1, 0))
    nvim:wait_screen('new and longer')
    nvim:lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'mine' }) vim.cmd('Co! fmt')")
    vim.fn.writefile({ 'theirs, and much longer' }, file)
    nvim:receive(ended(2, 0))
    wait_line(nvim, 'exit 0 · 0.1 s · 1 line')
    nvim:wait(
      "return table.concat(_G.notices):find('keeps your changes') ~= nil or table.concat(require('co.ui.log').lines()):find('keeps your changes') ~= nil"
    )
    same({ 'mine' }, nvim:lua('return vim.api.nvim_buf_get_lines(0, 0, -1, false)'))
    nvim:keys('x')
    nvim:wait("return vim.api.nvim_get_current_line() == 'ine'")
  end)

  it('changes only the new lines of 100 pieces of 1,000 lines', function()
    local nvim = started('flood')
    local changed = nvim:lua(
      [[
      local lines = {}
      for index = 1, 1000 do lines[index] = 'line ' .. index end
      local changed = 0
      vim.api.nvim_buf_attach(vim.fn.bufnr(...), false, {
        on_lines = function(_, _, _, first, last, new_last)
          changed = changed + math.max(last, new_last) - first
        end,
      })
      for piece = 0, 99 do
        receive({ { type = 'run_output', run = 1, patch = { skipped = 0, from = piece * 1000, lines = lines, styles = {} } } })
      end
      return changed
    ]],
      SHELL
    )
    yes(changed < 101000, ('%d lines'):format(changed))
    same(100002, #nvim:lines(SHELL))
  end)
end)
