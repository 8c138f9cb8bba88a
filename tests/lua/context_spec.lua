local gather = require('gather')
local messages = require('messages')
local neovim = require('neovim')

describe('context', function()
  --- Returns the sentences that co showed the person.
  local function told(nvim)
    return nvim:lua([[
      return vim.tbl_map(function(line)
        return line:match('notice: (.*)')
      end, require('co.ui.log').lines())
    ]])
  end

  it('is an image if the file or the clipboard is one', function()
    local nvim = neovim.start()
    local dir = neovim.dir()
    local bytes = '\137PNG\r\n\26\n\0\1\255'
    local function write(name, text)
      local file = assert(io.open(dir .. '/' .. name, 'wb'))
      file:write(text)
      file:close()
    end
    write('shot.png', bytes)
    write('xclip', '#!/bin/sh\ncase "$*" in *image/png*) cat shot.png ;; *) exit 1 ;; esac\n')
    vim.fn.setfperm(dir .. '/xclip', 'rwxr-xr-x')
    local image = { media_type = 'image/png', data = vim.base64.encode(bytes) }
    nvim:lua(
      [[
        local dir, image = ...
        vim.cmd('cd ' .. dir)
        vim.env.PATH = dir .. ':' .. vim.env.PATH
        vim.env.WAYLAND_DISPLAY = nil
        vim.env.DISPLAY = ':0'
        _G.read_context = function() return { image = image } end
      ]],
      dir,
      image
    )
    same({
      { name = '@file:shot.png', text = '', image = image },
      { name = '@clipboard', text = '', image = image },
    }, gather(nvim, 'what is on @file:shot.png and @clipboard?'))
  end)

  it('leaves out images that do not fit', function()
    local nvim = neovim.start()
    local names = nvim:lua([[
      local pieces = {}
      for number = 1, 30 do
        local data = ('x'):rep(4 * 1024 * 1024)
        pieces[number] = { name = '@file:' .. number, text = '', image = { media_type = 'image/png', data = data } }
      end
      return vim.tbl_map(function(piece)
        return piece.name
      end, require('co.chat.context_limit').fit(pieces))
    ]])
    same({ '@file:1', '@file:2' }, names)
    local notice = told(nvim)[1]
    yes(notice:find('^too much to send at once, left out: @file:3; @file:4; '), notice)
  end)

  it('is read from the editor for what a prompt names', function()
    local nvim = neovim.start()
    local dir = neovim.dir()
    vim.fn.writefile({ 'in a file' }, dir .. '/f.txt')
    nvim:lua(
      [[
        vim.cmd('cd ' .. ...) vim.cmd('edit b.lua')
        vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'one', 'two', 'three' })
        vim.fn.setpos("'<", { 0, 2, 1, 0 }) vim.fn.setpos("'>", { 0, 3, 1, 0 })
        vim.diagnostic.set(vim.api.nvim_create_namespace('x'), 0, {
          { lnum = 1, col = 0, message = 'bad\nword', severity = 1 } })
        vim.fn.setqflist({ { bufnr = vim.api.nvim_get_current_buf(), lnum = 3, col = 1, text = 'here' } })
      ]],
      dir
    )
    local found = gather(
      nvim,
      '@buffer (@selection) fix @diagnostics, @quickfix @unsaved and @file:f.txt. me@buffer'
    )
    same({
      { name = '@buffer b.lua', text = 'one\ntwo\nthree\n' },
      { name = '@selection b.lua:2-3', text = 'two\nthree\n' },
      { name = '@diagnostics b.lua', text = 'b.lua:2:1: error: bad word' },
      { name = '@quickfix', text = 'b.lua:3:1: here' },
      {
        name = '@unsaved b.lua',
        text = '--- b.lua (saved)\n+++ b.lua (in the editor)\n@@ -0,0 +1,3 @@\n+one\n+two\n+three\n',
      },
      { name = '@file:f.txt', text = 'in a file\n' },
    }, found)
    same({}, gather(nvim, 'mail me@example.com, @nobody'))
    same({}, gather(nvim, '@file:missing.txt'))
    same({ 'left out: @file:missing.txt (there is no such file)' }, told(nvim))
    nvim:lua("vim.uv.fs_symlink('loop', 'loop') vim.uv.fs_symlink('ring', 'ring')")
    nvim:lua("vim.fn.bufload(vim.fn.bufadd('ring'))")
    same(
      { { name = '@file:f.txt', text = 'in a file\n' } },
      gather(nvim, '@file:loop @file:nul\0byte @file:f.txt')
    )
    local last = told(nvim)
    last = last[#last]
    yes(last:find('left out: @file:loop (', 1, true) and last:find('nul\0byte (', 1, true), last)
  end)

  it('is what the backend reads of files and git, with its remarks', function()
    local nvim = neovim.start()
    nvim:lua([[
      _G.queries = {}
      _G.read_context = function(query)
        table.insert(_G.queries, query)
        if query.kind == 'search' then
          return { problem = 'no line contains it' }
        end
        return { text = query.kind .. '\n', note = query.kind == 'diff' and 'without .env' or nil }
      end
    ]])
    same({
      { name = '@diff (without .env)', text = 'diff\n' },
      { name = '@git:HEAD~1', text = 'commit\n' },
    }, gather(nvim, 'see @diff, @git:HEAD~1 and @search:a\\ word.'))
    same({
      { kind = 'diff' },
      { kind = 'commit', revision = 'HEAD~1' },
      { kind = 'search', text = 'a word' },
    }, nvim:lua('return _G.queries'))
    same({ 'left out: @search:a word (no line contains it)' }, told(nvim))
  end)

  it(
    'of a file that the model may not be sent is left out, also if it is open or a range',
    function()
      local nvim = neovim.start()
      local dir = neovim.dir()
      vim.fn.writefile({ 'a', 'b' }, dir .. '/open.txt')
      nvim:lua(
        [[
        vim.cmd('cd ' .. ...) vim.cmd('edit open.txt')
        _G.queries = {}
        _G.read_context = function(query)
          table.insert(_G.queries, { query.kind, vim.fn.fnamemodify(query.paths[1], ':t'), query.text })
          return { problem = 'you refused it' }
        end
        vim.cmd('2Co explain @buffer and @file:open.txt')
      ]],
        dir
      )
      same({}, nvim:sent('prompt')[1].context)
      same({
        { 'text', 'open.txt', 'a\nb\n' },
        { 'text', 'open.txt', 'a\nb' },
        { 'text', 'open.txt', 'b\n' },
      }, nvim:lua('return _G.queries'))
    end
  )

  it('is the last run of the person', function()
    local nvim = neovim.start()
    same({}, gather(nvim, '@output'))
    nvim:lua([[vim.cmd('Co! first') vim.cmd('Co! make test')]])
    local patch = messages.patch(0, { 'one', 'two' })
    nvim:receive(
      { type = 'run_started', run = 2, command = 'make test', cwd = '/tmp' },
      messages.output(2, patch),
      messages.ended(2, 3),
      messages.job(9, 1, 'sleep 9')
    )
    nvim:wait("return #require('co.run').all() == 3")
    same(
      { { name = '@output', text = '$ make test\none\ntwo\nexit 3 · 0.1 s · 1 line' } },
      gather(nvim, 'why @output?')
    )
  end)

  it('of a range is what /edit asks to change', function()
    local nvim = neovim.start({ screen = true, columns = 160 })
    nvim:lua([[
      vim.cmd('edit b.lua')
      vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'one', 'two', 'three' })
    ]])
    nvim:keys(':2,3Co /edit make it async<CR>')
    nvim:wait('return #_G.sent > 0')
    local prompt = nvim:sent('prompt')[1]
    same('Change lines 2 to 3 of b.lua, and nothing else: make it async', prompt.text)
    same({ { name = '@selection b.lua:2-3', text = 'two\nthree\n' } }, prompt.context)
    local file = nvim:lua("return vim.fn.resolve(vim.fn.expand('%:p'))")
    same({ file = file, first = 2, last = 3 }, prompt.range)
    nvim:keys(':Co /edit make it async<CR>')
    nvim:wait_screen('/edit takes the lines of a file and a wish')
  end)

  it('with nothing in it is left out, and co says so', function()
    local nvim = neovim.chat({ screen = true, columns = 160 })
    nvim:keys('isee @diagnostics @quickfix @unsaved @selection<C-s>')
    nvim:wait('return #_G.sent == 1')
    same({}, nvim:sent('prompt')[1].context)
    nvim:wait_screen(
      'left out: @diagnostics ([buffer 1] has none), @quickfix (the quickfix list is empty), '
    )
    local last = told(nvim)[1]
    yes(last:find('@unsaved ([buffer 1] has no unsaved changes)', 1, true), last)
    yes(last:find('@selection (nothing was selected in [buffer 1])', 1, true), last)
  end)

  it('of what is not saved has no line that is, however the file is written', function()
    local nvim = neovim.start()
    local dir = neovim.dir()
    nvim:lua('vim.cmd.cd(...)', dir)
    for name, bytes in pairs({
      ['dos'] = 'a\r\nb\r\n',
      ['no end'] = 'a\nb',
      ['mark'] = '\239\187\191a\nb\n',
      ['latin1'] = 'se\241or\nb\n',
      ['none'] = '',
    }) do
      local handle = assert(io.open(dir .. '/f', 'wb'))
      handle:write(bytes)
      handle:close()
      nvim:lua("vim.cmd('edit! f')")
      same({}, gather(nvim, '@unsaved'), name)
      if name ~= 'none' then
        nvim:lua("vim.fn.setline(2, 'c')")
        local diff = gather(nvim, '@unsaved')[1].text
        yes(diff:find('\n-b\n', 1, true) and diff:find('\n+c\n', 1, true), diff)
        yes(not diff:match('\n@.*'):find('\n[-+][^bc]'), diff)
      end
    end
  end)

  it('of a file is what the editor has of it, whatever it is called and by', function()
    local nvim = neovim.start()
    local dir = neovim.dir()
    for _, name in ipairs({ '[id].ts', '$id.ts', 'a b.ts', 'plain.ts' }) do
      vim.fn.writefile({ 'saved' }, dir .. '/' .. name)
      nvim:lua(
        "local dir, name = ... vim.cmd.cd(dir) vim.cmd('edit! ' .. vim.fn.fnameescape(name)) vim.fn.setline(1, 'edited')",
        dir,
        name
      )
      local found = gather(nvim, 'see @file:' .. name:gsub(' ', '\\ '))
      same({ { name = '@file:' .. name, text = 'edited' } }, found)
    end
    vim.fn.system({ 'ln', '-s', dir .. '/plain.ts', dir .. '/link.ts' })
    same('edited', gather(nvim, '@file:link.ts')[1].text)
  end)

  it('of a file has the longest path that exists', function()
    local nvim = neovim.start()
    local dir = neovim.dir()
    nvim:lua('vim.cmd.cd(...)', dir)
    vim.fn.mkdir(dir .. '/app/(auth)/a b', 'p')
    local page, odd = 'app/(auth)/page.tsx', 'app/(auth)/a b/x,y;(z).ts'
    for _, name in ipairs({ page, odd, 'plain', 'a', 'a.' }) do
      vim.fn.writefile({ name }, dir .. '/' .. name)
    end
    for text, name in pairs({
      ['see @file:%s'] = page,
      ['(see @file:%s)'] = page,
      ['see (@file:%s), please'] = page,
      ['(see @file:%s).'] = odd,
      ['is it @file:%s?'] = odd,
      ['@file:%s; and'] = 'plain',
      ['(@file:%s),'] = 'a.',
    }) do
      local found = gather(nvim, text:format((name:gsub(' ', '\\ '))))
      same({ { name = '@file:' .. name, text = name .. '\n' } }, found, text)
    end
    same(2, #gather(nvim, '(@file:plain),(@file:a)'))
    same({}, gather(nvim, 'see (@file:app/(none)/page.tsx).'))
    same({ 'left out: @file:app/(none (there is no such file)' }, told(nvim))
  end)

  it('of an empty file or buffer is left out, and co says so', function()
    local nvim = neovim.start()
    local dir = neovim.dir()
    vim.fn.writefile({}, dir .. '/empty.txt')
    vim.fn.writefile({}, dir .. '/open.txt')
    nvim:lua("vim.cmd('cd ' .. ...) vim.cmd('edit open.txt')", dir)
    same({}, gather(nvim, 'see @file:empty.txt, @file:open.txt and @buffer'))
    same({
      'left out: @file:empty.txt (it is empty), @file:open.txt (it is empty), @buffer (it is empty)',
    }, told(nvim))
  end)

  it('that is too long is cut at the end of a line, so that no secret is cut', function()
    local nvim = neovim.start()
    nvim:lua([[
      local lines = vim.fn['repeat']({ ('ä'):rep(100) }, 3000)
      vim.api.nvim_buf_set_lines(0, 0, -1, false, lines)
    ]])
    local piece = gather(nvim, '@buffer')[1]
    local last = piece.text:sub(-300)
    yes(
      last:find('\n' .. ('ä'):rep(100) .. '\n… cut after 524208 of 603000 bytes', 1, true),
      last
    )
    same('@buffer [buffer 1], first 511.9 KiB of 588.9 KiB', piece.name)
    same({ 'too long to send in full, name fewer lines: ' .. piece.name }, told(nvim))
    nvim:lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { ('x'):rep(600000) })")
    piece = gather(nvim, '@buffer')[1]
    same('@buffer [buffer 1], first 512 KiB of 585.9 KiB', piece.name)
    same(('x'):rep(524288) .. '\n… cut after 524288 of 600001 bytes', piece.text)
    same('too long to send in full, name fewer lines: ' .. piece.name, told(nvim)[2])
  end)

  it('that is one long line is cut between characters and before the last word', function()
    local nvim = neovim.start()
    local dir = neovim.dir()
    nvim:lua('vim.cmd.cd(...)', dir)
    for text, kept in pairs({
      [('y'):rep(700000)] = 524288,
      ['x' .. ('ä'):rep(300000)] = 524287,
      [('x'):rep(524280) .. '"' .. ('k'):rep(100)] = 524281,
    }) do
      local file = assert(io.open(dir .. '/long', 'wb'))
      file:write(text)
      file:close()
      local piece = gather(nvim, '@file:long')[1]
      local cut = ('\n… cut after %d of %d bytes'):format(kept, #text)
      yes(piece.text == text:sub(1, kept) .. cut, piece.text:sub(-100))
    end
  end)

  it('that is too long is not read to its end', function()
    local nvim = neovim.start()
    local read = nvim:lua([[
      vim.api.nvim_buf_set_lines(0, 0, -1, false, vim.fn['repeat']({ ('x'):rep(99) }, 100000))
      local read, get_lines = 0, vim.api.nvim_buf_get_lines
      vim.api.nvim_buf_get_lines = function(...)
        local lines = get_lines(...)
        read = read + #lines
        return lines
      end
      local pieces
      local context = require('co.chat.context')
      local wanted = { text = '@buffer', extra = { context.range(2, 90000) }, read = function() end }
      require('co.ui.async').run(function()
        pieces = context.gather(wanted)
      end)
      return { read = read, names = { pieces[1].name, pieces[2].name } }
    ]])
    same({
      '@buffer [buffer 1], first 511.9 KiB of 9.5 MiB',
      '@selection [buffer 1]:2-90000, first 511.9 KiB of 8.6 MiB',
    }, read.names)
    same(2 * 5243, read.read)
  end)

  it('of many files stays within what can be sent', function()
    local nvim = neovim.start()
    local dir = neovim.dir()
    local names = {}
    for index = 1, 10 do
      names[index] = '@file:' .. index
      vim.fn.writefile(vim.fn['repeat']({ ('x'):rep(1023) }, 600), dir .. '/' .. index)
    end
    nvim:lua('vim.cmd.cd(...)', dir)
    local found = gather(nvim, table.concat(names, ' '))
    same(8, #found)
    local size = #vim.mpack.encode(found)
    yes(size < 4.1 * 1024 * 1024, tostring(size))
    same('@file:8, first 512 KiB of 600 KiB', found[8].name)
    same('too much to send at once, left out: @file:9; @file:10', told(nvim)[2])
  end)

  it('of a selection has its characters, or the columns of its block', function()
    local cases = {
      { 'ggwvj', '1:5-2:5', 'two three\nfive ' },
      { 'jwviw', '2:6-2:8', 'six' },
      { 'ggwv$', '1:5-1:14', 'two three' },
      { 'gg<C-v>j2l', '1:1-2:3 (a block)', 'one\nfiv' },
      { 'wv5lo', '1:5-1:10', 'two th' },
      { 'ggVj', '1-2', 'one two three\nfive six seven\n' },
      { '2GV', '2', 'five six seven\n' },
      { '2Glv', '2:2-2:2', 'é', 'née six' },
    }
    for _, case in ipairs(cases) do
      local nvim = neovim.start()
      nvim:lua(
        "vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'one two three', ..., 'eight' }) vim.cmd('normal! gg0')",
        case[4] or 'five six seven'
      )
      local expected = { '@selection [buffer 1]:' .. case[2], case[3] }
      nvim:keys(case[1] .. ':Co explain @selection<CR>')
      local sent = nvim:wait_sent(1, 'prompt')
      same({ expected }, {
        vim.tbl_map(function(name)
          return sent.context[1][name]
        end, { 'name', 'text' }),
      })
      -- Also without a range.
      local found = gather(nvim, '@selection')
      same(expected, { found[1].name, found[1].text })
      -- A range that the person chose is one of lines.
      nvim:keys('<Esc>:1,2Co see @selection<CR>')
      same('@selection [buffer 1]:1-2', nvim:wait_sent(2, 'prompt').context[1].name)
    end
  end)

  it('of a selection whose columns are gone has its lines', function()
    local nvim = neovim.start()
    nvim:lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'one two three' })")
    nvim:keys('wve<Esc>')
    nvim:lua('vim.api.nvim_buf_set_text(0, 0, 2, 0, 13, {})')
    yes(vim.startswith(gather(nvim, '@selection')[1].text, 'on'))
  end)

  it('of a range goes along', function()
    local nvim = neovim.start()
    nvim:lua(
      "vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'a', 'b', 'c' }) vim.cmd('2,3Co explain')"
    )
    local sent = nvim:sent('prompt')[1]
    same({ 'explain', '@selection [buffer 1]:2-3' }, { sent.text, sent.context[1].name })
    yes(sent.context[1].text:find('b\nc', 1, true))
  end)

  it('of a range is what @selection means in its prompt, also in one typed later', function()
    local nvim = neovim.start()
    nvim:lua([[
      vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'a', 'b', 'c' })
      vim.cmd('1,2Co explain @selection')
    ]])
    nvim:lua("vim.cmd('2,3Co')")
    nvim:keys('imend @selection<C-s>')
    nvim:wait('return #_G.sent == 2')
    nvim:keys('<Esc>isee @buffer<C-s>')
    nvim:wait('return #_G.sent == 3')
    local found = {}
    for _, prompt in ipairs(nvim:sent('prompt')) do
      same(1, #prompt.context)
      found[#found + 1] = prompt.context[1].name
    end
    same({
      '@selection [buffer 1]:1-2',
      '@selection [buffer 1]:2-3',
      '@buffer [buffer 1]',
    }, found)
    yes(not nvim:lua('return table.concat(_G.notices)'):find('left out', 1, true))
  end)
end)
