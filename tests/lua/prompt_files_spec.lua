local neovim = require('neovim')

--- Returns an editor in a workspace with prompt files, given by their paths.
---@param files table<string, string[]>
---@return table nvim
---@return string workspace
local function editor(files)
  local dir = vim.fn.tempname()
  vim.fn.mkdir(dir .. '/work/.git/refs', 'p')
  for path, lines in pairs(files) do
    vim.fn.mkdir(vim.fs.dirname(dir .. '/' .. path), 'p')
    vim.fn.writefile(lines, dir .. '/' .. path)
  end
  local nvim = neovim.start({ env = { XDG_CONFIG_HOME = dir .. '/config' } })
  nvim:lua("vim.cmd('cd ' .. ... .. '/work')", dir)
  return nvim, dir .. '/work'
end

local OWN, WORK = 'config/co-nvim/prompts/', 'work/.co/prompts/'

---@param nvim table
---@return table message the last prompt
local function sent(nvim)
  local prompts = nvim:sent('prompt')
  return prompts[#prompts]
end

describe('prompt files', function()
  it('of the workspace are sent with their text, so that the backend can ask', function()
    local lines = { '---', 'description: Fix it', '---', '', 'Fix $1 in `$2`: $ARGUMENTS. $100 $' }
    local nvim, work = editor({ [WORK .. 'fix.md'] = lines })
    nvim:lua([[vim.cmd([==[Co /fix "the test" a.rb $1]==])]])
    local message = sent(nvim)
    same('/fix "the test" a.rb $1', message.text)
    same({
      path = work .. '/.co/prompts/fix.md',
      text = table.concat(lines, '\n') .. '\n',
      prompt = 'Fix the test in `a.rb`: "the test" a.rb $1. $100 $',
    }, message.file)
    nvim:lua("vim.cmd('Co /fix')")
    same('/fix', sent(nvim).text)
    same('Fix  in ``: . $100 $', sent(nvim).file.prompt)
  end)

  it(
    'may have a header without lines, one that ends the file, and blanks after its dashes',
    function()
      local nvim = editor({
        [OWN .. 'bare.md'] = { '---', '---', 'Fix it.' },
        [OWN .. 'blanks.md'] = { '--- ', 'description: x', '---\t', 'Fix it.', '---', 'Well.' },
      })
      vim.fn.writefile(
        { '---', 'description: x', '---' },
        nvim:lua('return vim.env.XDG_CONFIG_HOME') .. '/co-nvim/prompts/end.md',
        'b'
      )
      nvim:lua("vim.cmd('Co /bare')")
      same('Fix it.', sent(nvim).file.prompt)
      nvim:lua("vim.cmd('Co /blanks')")
      same('Fix it.\n---\nWell.', sent(nvim).file.prompt)
      nvim:lua("_G.notices = {} vim.cmd('Co /end')")
      nvim:wait('return _G.notices[1] == ...', 'co: /end was not sent: it has no text')
    end
  )

  it('of the person have no path, and those of the workspace win', function()
    local nvim = editor({
      [OWN .. 'mine.md'] = { 'Mine.' },
      [OWN .. 'both.md'] = { 'Mine.' },
      [WORK .. 'both.md'] = { 'Theirs.' },
    })
    nvim:lua("vim.cmd('Co /mine  and more ')")
    same({ text = 'Mine.\n', prompt = 'Mine.\n\nand more' }, sent(nvim).file)
    nvim:lua("vim.cmd('Co /both')")
    same('Theirs.', sent(nvim).file.prompt)
  end)

  it('attach the contexts that they name, and the lines of a range', function()
    local nvim = editor({
      [OWN .. 'see.md'] = { 'See @file:$1 and @selection.' },
      ['work/notes.txt'] = { 'one', 'two' },
    })
    nvim:lua("vim.cmd('edit notes.txt') vim.cmd('2Co /see notes.txt')")
    local names = vim.tbl_map(function(context)
      return { context.name, context.text }
    end, sent(nvim).context)
    same({
      { '@file:notes.txt', 'one\ntwo' },
      { '@selection notes.txt:2', 'two\n' },
    }, names)
  end)

  it('are found from a directory below, and in the prompt of a chat', function()
    local nvim, work = editor({ [WORK .. 'fix.md'] = { 'Fix $1.' }, ['work/lib/a'] = { '' } })
    nvim:lua("vim.cmd('cd lib') vim.cmd('Co') vim.cmd('cd /')")
    nvim:keys('i/fi<C-x><C-o>')
    nvim:wait("return vim.api.nvim_get_current_line() == '/fix'")
    nvim:keys(' it<C-s>')
    nvim:wait("return vim.tbl_contains(vim.tbl_map(function(m) return m.type end, sent), 'prompt')")
    same('Fix it.', sent(nvim).file.prompt)
    same(work .. '/lib', sent(nvim).cwd)
  end)

  it('are completed, and have no effect with the name of a command of co', function()
    local nvim = editor({
      [WORK .. 'new.md'] = { 'Hostile.' },
      [WORK .. 'near.md'] = { 'x' },
      [WORK .. 'a b.md'] = { 'x' },
      [WORK .. 'notes.txt'] = { 'x' },
      [OWN .. 'next.md'] = { 'x' },
    })
    same({ '/near', '/new', '/next' }, nvim:lua("return vim.fn.getcompletion('Co /ne', 'cmdline')"))
    nvim:lua("vim.cmd('Co /new') vim.cmd('Co /new')")
    same(nil, sent(nvim))
    nvim:wait(
      "return table.concat(_G.notices) == 'co: .co/prompts/new.md is not used: /new is a command of co'"
    )
  end)

  it('that cannot be sent say why', function()
    local nvim, work = editor({
      [WORK .. 'empty.md'] = { '---', 'description: x', '---' },
      [WORK .. 'large.md'] = { ('x'):rep(64 * 1024) },
      [WORK .. 'bytes.md'] = { 'a\255b' },
    })
    vim.fn.system({ 'ln', '-s', '/dev/zero', work .. '/.co/prompts/zero.md' })
    for name, problem in pairs({
      empty = '/empty was not sent: it has no text',
      large = '/large was not sent: it is larger than 64 KiB',
      bytes = '/bytes was not sent: it is not all UTF-8',
      zero = 'unknown command /zero: :Co /<Tab> lists them',
    }) do
      nvim:lua("_G.notices = {} vim.cmd('Co /' .. ...)", name)
      nvim:wait('return _G.notices[1] == ...', 'co: ' .. problem)
    end
    same(nil, sent(nvim))
  end)
end)
