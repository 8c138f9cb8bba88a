-- `%`, `#` and `##` in commands: `:Co!` and the `!` of a chat follow one rule.

local neovim = require('neovim')

--- A Neovim in a directory of its own, with `first.txt` behind `second.txt`.
local function start()
  local nvim = neovim.start()
  local dir = vim.fn.resolve(vim.fn.tempname())
  vim.fn.mkdir(dir .. '/below', 'p')
  nvim:lua(
    [[
      vim.cmd('cd ' .. ...)
      vim.cmd('edit first.txt') vim.cmd('write') vim.cmd('edit second.txt') vim.cmd('write')
    ]],
    dir
  )
  return nvim, dir
end

--- Types the command for `:Co!` and for the `!` of a chat, and returns both as they were sent.
local function typed(nvim, command)
  local keys = command:gsub('<', '<lt>')
  nvim:keys((':Co! %s<CR>:Co<CR>'):format(keys))
  nvim:wait("return vim.bo.filetype == 'co-prompt'")
  nvim:keys(('i!%s<C-s>'):format(keys))
  nvim:wait('return #_G.sent == 2')
  local run, sent = nvim:sent('run'), nvim:sent('command')
  return run[#run].command, sent[#sent].args
end

local function check(command, expected)
  local nvim = start()
  local run, line = typed(nvim, command)
  same(expected, run, ':Co!')
  same(expected, line, 'the ! of a chat')
end

--- Types a command that both refuse.
local function refused(nvim, command, why)
  nvim:keys((':Co! %s<CR>'):format(command))
  nvim:wait('return table.concat(_G.notices):find(..., 1, true) ~= nil', why)
  nvim:lua('_G.notices = {}')
  nvim:keys((':Co<CR>i!%s<C-s><Esc>'):format(command))
  nvim:wait('return table.concat(_G.notices):find(..., 1, true) ~= nil', why)
  same({}, nvim:sent('run'))
  same({}, nvim:sent('command'))
end

describe('the names of files in commands', function()
  it('stand for whole words', function()
    check('cat % #', 'cat second.txt first.txt')
    check('wc <%;cat<%|sort;(cat %)', 'wc <second.txt;cat<second.txt|sort;(cat second.txt)')
    check('cp % below/ && diff % #', 'cp second.txt below/ && diff second.txt first.txt')
  end)

  it('may have modifiers', function()
    check('cp % below/%:t.%:e', 'cp second.txt below/second.txt.txt')
    check('echo %:r %:s?sec?SEC?:r %:gs/t/T/ %:s?x', 'echo second SECond second.TxT %:s?x')
    check('cc % -o %< #<', 'cc second.txt -o second first')
    check('echo "%:r %" "$(cat %:r)"', 'echo "second %" "$(cat second)"')
  end)

  it('leave other words of the shell alone', function()
    check('date +%F', 'date +%F')
    check('date "+%H:%M:%S %d" 100%', 'date "+%H:%M:%S %d" 100%')
    check("printf '%s%%' $# ${#x} fg %1", "printf '%s%%' $# ${#x} fg %1")
    check(
      "awk 'NR % 2' f; x=$((10 % 3)); (( 10 % 3 ))",
      "awk 'NR % 2' f; x=$((10 % 3)); (( 10 % 3 ))"
    )
    check('echo "$((10 % 3)) ${x:- % }" $[ 7 % 2 ]', 'echo "$((10 % 3)) ${x:- % }" $[ 7 % 2 ]')
    check("printf %s\\\\n it\\'s '%:r' \"'\" a#b", "printf %s\\\\n it\\'s '%:r' \"'\" a#b")
  end)

  it('leave comments alone', function()
    check('echo x # a comment about % and %:r', 'echo x # a comment about % and %:r')
    check('echo x #% is left', 'echo x #% is left')
    check('wc # # or not', 'wc # # or not')
  end)

  it('do not stand for what a backslash protects', function()
    check('echo \\% \\%:r 100\\%', 'echo \\% \\%:r 100\\%')
  end)

  it('get the quotes that the shell needs', function()
    local nvim = start()
    nvim:lua([[vim.cmd.edit("it's $a.txt")]])
    local run, line = typed(nvim, 'cat % "%:r" > %<')
    local expected = [[cat 'it'\''s $a.txt' "it's \$a" > 'it'\''s $a']]
    same(expected, run)
    same(expected, line)
  end)

  it('may be words at the cursor', function()
    local nvim = start()
    nvim:lua([[vim.api.nvim_buf_set_lines(0, 0, -1, true, { "see src/a.rs:3 it's" })]])
    nvim:keys('0w')
    local run, line = typed(nvim, 'rg <cword> <cfile> <cWORD> <in >out')
    same('rg src src/a.rs src/a.rs:3 <in >out', run)
    same('rg src src/a.rs src/a.rs:3 <in >out', line)
  end)

  it('stand for the argument list', function()
    local nvim = start()
    nvim:lua("vim.cmd('args first.txt second.txt')")
    local run, line = typed(nvim, 'wc ##')
    same('wc first.txt second.txt', run)
    same('wc first.txt second.txt', line)
  end)

  it('are whole paths where the chat is in another directory', function()
    local nvim, dir = start()
    nvim:keys(':Co<CR>:lcd below<CR>')
    nvim:keys('i!cat %<C-s>')
    same(('cat %s/second.txt'):format(dir), nvim:wait_sent(1, 'command').args)
  end)

  it('are missing in a buffer without one', function()
    local nvim = start()
    nvim:lua("vim.cmd('enew!')")
    refused(nvim, 'cat %', 'current file, and there is none')
    nvim = start()
    refused(nvim, 'cat ##', 'argument list, and there is none')
    nvim = start()
    refused(nvim, 'rg <lt>cword>', 'text at the cursor, and there is none')
  end)
end)
