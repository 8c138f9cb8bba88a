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

--- Answers the last request whether the person trusts a file.
---@param nvim table
---@param answer table
---@return table request
local function check(nvim, answer)
  local requests = nvim:sent('check_prompt_file')
  local request = requests[#requests]
  answer.type, answer.request = 'prompt_file_checked', request.request
  nvim:receive(answer)
  return request
end

--- Carries out a command and lets the backend answer that the person trusts the file.
---@param nvim table
---@param command string
---@return table message the last prompt
local function sent_by(nvim, command)
  nvim:lua('vim.cmd(...)', command)
  check(nvim, { trusted = true })
  nvim:wait('return sent[#sent].type == "prompt"')
  return sent(nvim)
end

--- Returns the text of the draft.
---@param nvim table
---@return string
local function draft(nvim)
  local lines = nvim:lua(
    "return vim.api.nvim_buf_get_lines(require('co.chat.registry').get(1).prompt.buf, 0, -1, false)"
  )
  return table.concat(lines, '|')
end

describe('prompt files', function()
  it('of the workspace are sent with their text, so that the backend can ask', function()
    local lines = { '---', 'description: Fix it', '---', '', 'Fix $1 in `$2`: $ARGUMENTS. $100 $' }
    local nvim, work = editor({ [WORK .. 'fix.md'] = lines })
    local message = sent_by(nvim, 'Co /fix "the test" a.rb $1')
    same('/fix "the test" a.rb $1', message.text)
    same({
      path = work .. '/.co/prompts/fix.md',
      text = table.concat(lines, '\n') .. '\n',
      prompt = 'Fix the test in `a.rb`: "the test" a.rb $1. $100 $',
    }, message.file)
    same('/fix', sent_by(nvim, 'Co /fix').text)
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
    same('Theirs.', sent_by(nvim, 'Co /both').file.prompt)
  end)

  it('are read for completion again only after a change', function()
    local nvim = editor({ [OWN .. 'mine.md'] = { 'Mine.' }, [OWN .. 'other.md'] = { 'Other.' } })
    local found = nvim:lua([[
      local dir = vim.env.XDG_CONFIG_HOME .. '/co-nvim/prompts'
      local disk, complete = require('co.ui.file_text'), require('co.chat.prompt_files')
      local reads, read, list = 0, disk.read, vim.fs.dir
      function disk.read(...) reads = reads + 1 return read(...) end
      function vim.fs.dir(...) reads = reads + 1 return list(...) end
      local cwd, found = vim.fn.getcwd(), {}
      local function look(about)
        for _ = 1, 5 do complete.names(cwd) end
        for _ = 1, 5 do about = complete.about('mine', cwd) end
        table.insert(found, ('%d %d %s'):format(reads, #complete.names(cwd), about))
      end
      local function age(path) vim.uv.fs_utime(path, 1000, 1000) end
      for _, path in ipairs({ dir .. '/mine.md', dir }) do age(path) end
      look()
      vim.fn.writefile({ 'Changed.' }, dir .. '/mine.md')
      age(dir .. '/mine.md')
      look()
      vim.fn.writefile({ 'New.' }, dir .. '/new.md')
      vim.uv.fs_utime(dir, 2000, 2000)
      look()
      return found
    ]])
    same({ '2 2 Mine.', '3 2 Changed.', '4 3 Changed.' }, found)
  end)

  --- An editor with a file of the workspace that names contexts. It counts the contexts that the backend is asked for.
  local function curious()
    local nvim, work = editor({
      [WORK .. 'see.md'] = { 'See @diff and @selection.' },
      ['work/notes.txt'] = { 'one', 'two', 'three' },
    })
    nvim:lua([[
      vim.cmd('edit notes.txt')
      _G.ran = 0
      _G.read_context = function(query)
        _G.ran = _G.ran + 1
        return { text = query.kind == 'diff' and 'changed\n' or nil }
      end
    ]])
    return nvim, work
  end

  local function names(nvim)
    return vim.tbl_map(function(context)
      return { context.name, context.text }
    end, sent(nvim).context)
  end

  it('of the workspace are trusted before their contexts are read, and keep their range', function()
    local nvim, work = curious()
    nvim:lua("vim.cmd('2Co /see it') vim.cmd('3Co /see it')")
    local request = check(nvim, { question = 7 })
    same({ 'see', work .. '/.co/prompts/see.md', 'See @diff and @selection.\n' }, {
      request.name,
      request.path,
      request.text,
    })
    same(2, check(nvim, { question = 7 }).request)
    same({}, nvim:lua("return require('co.chat.registry').get(1).waiting_prompts"))
    same(0, nvim:lua('return _G.ran'))
    nvim:receive({ type = 'settled', id = 6, decision = 'approved' })
    same(nil, sent(nvim))
    nvim:receive({ type = 'settled', id = 7, decision = 'approved' })
    nvim:wait("return #vim.tbl_filter(function(m) return m.type == 'prompt' end, sent) == 2")
    same({ { '@diff', 'changed\n' }, { '@selection notes.txt:3', 'three\n' } }, names(nvim))
    local first = nvim:sent('prompt')[1]
    same({ '/see it', 'two\n' }, { first.text, first.context[2].text })
    same('', draft(nvim))
  end)

  it('that the person refuses leave the draft as it was', function()
    local nvim = curious()
    nvim:lua("vim.cmd('Co')")
    nvim:keys('ia draft<Esc>')
    for _, answer in ipairs({ { trusted = false }, { question = 7 } }) do
      nvim:lua("vim.cmd('Co /see it')")
      check(nvim, answer)
    end
    nvim:receive({ type = 'settled', id = 7, decision = 'denied' })
    same('a draft', draft(nvim))
    for id, decision in ipairs({ 'denied', 'withdrawn' }) do
      nvim:keys('cc/see  it<Esc><C-s>')
      nvim:wait("return #sent > 0 and sent[#sent].type == 'check_prompt_file'")
      same('', draft(nvim))
      check(nvim, { question = id })
      nvim:receive({ type = 'settled', id = id, decision = decision })
      same('/see it', draft(nvim))
    end
    same(nil, sent(nvim))
    same(0, nvim:lua('return _G.ran'))
  end)

  it('that the person refuses do not pile up in the draft', function()
    local nvim = curious()
    nvim:lua("vim.cmd('Co')")
    for id = 1, 3 do
      nvim:keys('cc/see it ' .. id .. '<Esc><C-s>')
      nvim:wait(('return #sent == %d'):format(id))
      check(nvim, { question = id })
    end
    for id = 1, 3 do
      nvim:receive({ type = 'settled', id = id, decision = 'denied' })
    end
    same('/see it 1', draft(nvim))
  end)

  it('that still wait when the backend ends come back if they were typed', function()
    local nvim = curious()
    nvim:lua("vim.cmd('Co /see this') vim.cmd('Co')")
    check(nvim, { question = 7 })
    nvim:keys('i/see that<C-s>')
    nvim:wait('return #sent == 2')
    check(nvim, { question = 7 })
    nvim:lua("require('co.backend').handle_exit('gone')")
    same('/see that', draft(nvim))
    nvim:lua("vim.cmd('Co more')")
    same('more', sent(nvim).text)
  end)

  it('attach the contexts that they name, and the lines of a range', function()
    local nvim = editor({
      [OWN .. 'see.md'] = { 'See @file:$1 and @selection.' },
      ['work/notes.txt'] = { 'one', 'two' },
    })
    nvim:lua("vim.cmd('edit notes.txt') vim.cmd('2Co /see notes.txt')")
    same({
      { '@file:notes.txt', 'one\ntwo' },
      { '@selection notes.txt:2', 'two\n' },
    }, names(nvim))
  end)

  it('are found from a directory below, and in the prompt of a chat', function()
    local nvim, work = editor({ [WORK .. 'fix.md'] = { 'Fix $1.' }, ['work/lib/a'] = { '' } })
    nvim:lua("vim.cmd('cd lib') vim.cmd('Co') vim.cmd('cd /')")
    nvim:keys('i/fi<C-x><C-o>')
    nvim:wait("return vim.api.nvim_get_current_line() == '/fix'")
    nvim:keys(' it<C-s>')
    nvim:wait(
      "return vim.tbl_contains(vim.tbl_map(function(m) return m.type end, sent), 'check_prompt_file')"
    )
    check(nvim, { trusted = true })
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
