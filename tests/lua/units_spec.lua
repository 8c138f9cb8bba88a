local messages = require('messages')
local neovim = require('neovim')

describe('SGR parameters', function()
  local definition = require('co.ui.highlight').definition
  local function check(sgr, expected)
    it('become a highlight: ' .. sgr, function()
      local hl = definition(sgr)
      hl.cterm = nil
      same(expected, hl)
    end)
  end
  check('', {})
  check('1', { bold = true })
  check('3;4;7;9', { italic = true, underline = true, reverse = true, strikethrough = true })
  check('31', { fg = '#cd0000', ctermfg = 1 })
  check('91', { fg = '#ff0000', ctermfg = 9 })
  check('44', { bg = '#3b78ff', ctermbg = 4 })
  check('104', { bg = '#5c5cff', ctermbg = 12 })
  check('38;5;208', { fg = '#ff8700', ctermfg = 208 })
  check('48;5;240', { bg = '#585858', ctermbg = 240 })
  check('38;2;1;2;3;1', { fg = '#010203', bold = true })
  check('38;5', {})
  check('38;9;1', {})
  check('39', {})

  it('take the colours of the colour scheme', function()
    vim.g.terminal_color_1 = '#123456'
    defer(function()
      vim.g.terminal_color_1 = nil
    end)
    same('#123456', definition('31').fg)
  end)
end)

describe('the winbar', function()
  --- Returns the text of the winbar of a chat in the directory of its window.
  local function text(fields, width, isolation)
    local state = messages.state('idle', vim.tbl_extend('force', { cwd = '/x' }, fields))
    return require('co.chat.winbar').text(state, isolation, width or 200, '/x')
  end

  it('says counts in few characters', function()
    same(' ready · 999 in 2.5M out%<', text({ input = 999, output = 2500000 }))
  end)

  it('says what it cost where that is known', function()
    local fields = { input = 5, output = 6, cost = 0.126 }
    same(' ready · 5 in 6 out $0.13%<', text(fields))
    fields.window_used = 38
    same(' ready · 5 in 6 out $0.13 · window 38%%%<', text(fields))
    fields.at_least = true
    same(' ready · 5 in 6 out ≥ $0.13 · window 38%%%<', text(fields))
  end)

  it('says what differs from what is usual, and nothing else', function()
    same(' ready%<', text({ model = 'm' }, nil, 'unasked: read-only'))
    same(' ready · m · /y%<', text({ model = 'm', chosen = true, cwd = '/y' }))
    same(
      ' ready · ASKS NOTHING · approved: container · no sandbox · mend it · 5 in 6 out%<',
      text({
        unusual = { 'ASKS NOTHING' },
        confinement = 'container',
        title = 'mend it',
        input = 5,
        output = 6,
      }, nil, 'no sandbox')
    )
  end)

  it('counts the changes without an answer', function()
    local now = os.time()
    local since = ' since ' .. os.date('%H:%M', now)
    for expected, open in pairs({
      [' ready · 1 change in 1 file%<'] = { changes = 1, files = 1 },
      [' ready · 9 changes in 2 files' .. since .. '%<'] = { changes = 9, files = 2, since = now },
      [' ready · 2 changes in 1 file since ' .. os.date('%d %b', 0) .. '%<'] = {
        changes = 2,
        files = 1,
        since = 0,
      },
    }) do
      same(expected, text({ open = open }))
    end
    local open = { changes = 9, files = 2, since = now }
    same(' ready · 9 changes in 2 files%<', text({ open = open }, 40))
  end)

  it('says how far the plan of the model is', function()
    same(' ready · plan 3/7%<', text({ plan = { done = 3, steps = 7 } }))
  end)

  it('is cut from its end, where the least important parts are', function()
    local fields = {
      unusual = { 'edits allowed' },
      title = 'mend the parser of dates',
      input = 5,
      output = 6,
      window_used = 38,
      cwd = '/srv/work',
    }
    local start = ' ready · edits allowed · mend the '
    for width, expected in pairs({
      [90] = start .. 'parser of dates · 5 in 6 out · window 38%% · /srv/work%<',
      [70] = start .. 'parser of dates · 5 in 6 out%<',
      [50] = start .. 'parser of dates%<',
      [40] = start .. 'parse…%<',
      [30] = ' ready · edits allowed%<',
      [20] = ' ready%<',
      [3] = ' ready%<',
    }) do
      same(expected, text(fields, width), tostring(width))
    end
    fields.title = 'a title of more than thirty characters'
    yes(text(fields):find('a title of more than thirty c… ·', 1, true) ~= nil)
  end)
end)

describe('a location', function()
  local locations = require('co.ui.locations')
  local dir = vim.fn.resolve(vim.fn.tempname())
  vim.fn.mkdir(dir .. '/src', 'p')
  vim.fn.writefile({ 'x' }, dir .. '/src/a.rs')
  vim.fn.writefile({ 'x' }, dir .. '/Makefile')
  local odd = {
    'src/[id]/page.tsx',
    'app/(login)/x.tsx',
    'my notes/a b.txt',
    'a&b,c=d.txt',
    "it's {x}*.md",
    'C:x.c',
    'ä ö.txt',
  }
  for _, name in ipairs(odd) do
    vim.fn.mkdir(vim.fs.dirname(dir .. '/' .. name), 'p')
    vim.fn.writefile({ 'x' }, dir .. '/' .. name)
  end
  local function check(text, at, line, column)
    it('is found in ' .. text, function()
      local found = locations.find(text, at, dir)
      assert(found, 'nothing found')
      same({ line, column }, { found.line, found.column })
      yes(found.path:find(dir, 1, true) == 1)
    end)
  end
  check('src/a.rs', 1)
  check('src/a.rs:12', 1, 12)
  check('src/a.rs:12:5: error', 1, 12, 5)
  check('  --> src/a.rs:12:5', 1, 12, 5)
  check('src/a.rs(12,5): error', 3, 12, 5)
  check('  File "src/a.rs", line 12, in x', 10, 12)
  check('see `src/a.rs:7`.', 8, 7)
  check('at ' .. dir .. '/src/a.rs:9', 5, 9)
  check('Makefile:3: *** stop', 1, 3)
  check('see [a](src/a.rs#L20), not b.rs', 1, 20)
  check('src/a.rs#L20-L25', 12, 20)
  check('src/a.rs#L20C5-L25C1', 1, 20, 5)
  it('may have any characters in its name', function()
    for _, name in ipairs(odd) do
      for at = 1, #name do
        for text, before in pairs({
          ['%s:3:7: x'] = 0,
          ['in %s.'] = 3,
          ['error at "%s", line 3'] = 10,
          ['see (%s)'] = 5,
        }) do
          local found = locations.find(text:format(name), before + at, dir)
          same(dir .. '/' .. name, found and found.path, text:format(name))
        end
      end
      for text, at in pairs({ [name .. ':3'] = #name + 2, ['x y ' .. name .. ':3'] = 1 }) do
        local found = locations.find(text, at, dir)
        same(3, found and found.line)
      end
    end
  end)
  it('is searched near the cursor of a long line', function()
    local line = ('a.b (c) '):rep(10000) .. ('x'):rep(40000)
    same(nil, locations.find(line, 40000, dir))
  end)
  it('is no directory if a file is meant', function()
    same(nil, locations.find('see lib/app.rs', 5, dir))
    same(nil, locations.find('/src/a.rs', 3, dir))
  end)
  it('is none where no such file is', function()
    same(nil, locations.find('src/b.rs:1', 1, dir))
    same(nil, locations.find('', 1, dir))
  end)
end)

describe('settings', function()
  it('of the wrong kind are named with what is accepted, and the rest holds', function()
    local nvim = neovim.start()
    nvim:lua([[
      vim.o.columns = 300
      vim.g.co = { layout = 'sideways', shell_height = 5, shell_max_timeout = 60, keys = { chat = { hide = false } } }
      require('co').setup({ float_focus = 'yes', keys = { chat = { jump = 'x' } } })
    ]])
    local config = nvim:lua("return require('co.config').get()")
    same({ 'auto', 5, false }, { config.layout, config.shell_height, config.float_focus })
    same({ false, ']]' }, { config.keys.chat.hide, config.keys.chat.next })
    same({ shell_max_timeout = 60 }, nvim:lua("return require('co.config').settings()"))
    local problems = table.concat(nvim:lua("return require('co.config').problems()"), '\n')
    for _, text in ipairs({
      'vim.g.co: the setting "layout" must be auto, vertical, horizontal, float, tab or current',
      'setup: the setting "float_focus" must be true or false',
      'setup: the setting "keys" must be a table of keys for these actions: cancel, ',
      '; there is no action "jump"',
    }) do
      yes(problems:find(text, 1, true), problems)
    end
  end)

  it('of the person move the keys', function()
    local nvim = neovim.start()
    nvim:lua(
      "require('co').setup({ keys = { chat = { hide = '<C-x>', yank = false } } }) vim.cmd('Co')"
    )
    same('', nvim:lua("return vim.fn.maparg('q', 'n')"))
    same('', nvim:lua("return vim.fn.maparg('gy', 'n')"))
    yes(nvim:lua("return vim.fn.maparg('<C-x>', 'n')") ~= '')
  end)

  it('that are not there are an empty map, not a list', function()
    local nvim = neovim.start()
    same('{}', nvim:lua("return vim.json.encode(require('co.config').settings())"))
  end)

  it('that no backend could be told are told as wrong, not as unset', function()
    local nvim = neovim.start()
    nvim:lua([[
      require('co').setup({
        'stray', bin = '', model = 'm', headers = { a = function() end }, extra_body = { 1, b = 2 },
        api_key_file = '/tmp/jos\233',
      })
    ]])
    local wrong = { vim.NIL }
    same(
      { model = 'm', headers = wrong, extra_body = wrong, api_key_file = wrong },
      nvim:lua("return require('co.config').settings()")
    )
    local problems = nvim:lua("return require('co.config').problems()")
    table.sort(problems)
    same({
      'setup: the setting "api_key_file" must be made of UTF-8 texts, finite numbers, true, false, lists and tables with names',
      'setup: the setting "bin" must be the path of the co-nvim executable',
      'setup: the setting "extra_body" must be made of UTF-8 texts, finite numbers, true, false, lists and tables with names',
      'setup: the setting "headers" must be made of UTF-8 texts, finite numbers, true, false, lists and tables with names',
      'setup: there is no setting 1; give each its name, such as { model = "x" }',
    }, problems)
  end)

  it('that are no finite numbers are wrong at any depth', function()
    local nvim = neovim.start()
    nvim:lua([[
      vim.g.co = {
        max_output_tokens = 0 / 0, context_limit = math.huge, unknown = -math.huge,
        extra_body = { temperature = 0 / 0 }, model = 'm', max_steps = 2 ^ 53,
      }
    ]])
    local wrong = { vim.NIL }
    same({
      max_output_tokens = wrong,
      context_limit = wrong,
      unknown = wrong,
      extra_body = wrong,
      model = 'm',
      max_steps = 2 ^ 53,
    }, nvim:lua("return require('co.config').settings()"))
    same(4, #nvim:lua("return require('co.config').problems()"))
  end)

  it('that are no table are told as wrong, not as unset', function()
    local nvim = neovim.start()
    for _, value in ipairs({ '5', 'math.huge', "'deny'" }) do
      nvim:lua('vim.g.co = ' .. value)
      same({ vim.NIL }, nvim:lua("return require('co.config').settings()"))
      same(
        { 'vim.g.co must be a table of settings' },
        nvim:lua("return require('co.config').problems()")
      )
    end
    nvim:lua("vim.g.co = { model = 'm' }")
    same({ model = 'm' }, nvim:lua("return require('co.config').settings()"))
  end)

  it('given late hold at once, those of keys in buffers made from then on', function()
    local nvim = neovim.start()
    nvim:lua("require('co.question') vim.cmd('Co')")
    nvim:lua(
      "require('co').setup({ layout = 'tab', float_focus = true, keys = { chat = { hide = '<C-x>' } } })"
    )
    same('', nvim:lua("return vim.fn.maparg('<C-x>', 'n')"))
    nvim:lua("require('co').toggle() vim.cmd('Co /new')")
    yes(nvim:lua("return vim.fn.maparg('<C-x>', 'n')") ~= '')
    same(2, nvim:lua('return #vim.api.nvim_list_tabpages()'))
    same(true, nvim:lua("return require('co.config').get().float_focus"))
    -- Taken back, the defaults hold again.
    nvim:lua("require('co').setup()")
    same('auto', nvim:lua("return require('co.config').get().layout"))
  end)

  it('that are wrong are said once, however often they are read', function()
    local nvim = neovim.start()
    nvim:lua([[
      _G.notices = {}
      require('co.ui.notify').error = function(message) table.insert(_G.notices, message) end
      vim.g.co = { layout = 'sideways' }
      require('co.config').get()
      vim.g.co = { layout = 'sideways', shell_height = 0 }
      require('co.config').get()
      require('co.config').get()
    ]])
    same({
      'vim.g.co: the setting "layout" must be auto, vertical, horizontal, float, tab or current',
      'vim.g.co: the setting "shell_height" must be a whole number of lines, 1 or more',
    }, nvim:lua('return _G.notices'))
  end)

  it('that are no keys are left out, and the chat opens', function()
    for _, keys in ipairs({ '3', "''", '{ 3 }', "{ '<C-x>', '' }", "('x'):rep(51)" }) do
      local nvim = neovim.start()
      nvim:lua(
        ("require('co').setup({ keys = { chat = { submit = %s } } }) vim.cmd('Co')"):format(keys)
      )
      same({
        'setup: the setting "keys" must be a table with a key, a list of keys or false for "submit"',
      }, nvim:lua("return require('co.config').problems()"))
      yes(nvim:lua("return vim.fn.maparg('<CR>', 'n')") ~= '')
    end
  end)
end)

describe('completion', function()
  local function complete(nvim, line)
    return nvim:lua("return vim.fn.getcompletion(..., 'cmdline')", line)
  end

  it('of the command line knows slash commands, contexts, ids, files and programs', function()
    local nvim = neovim.start()
    local dir = neovim.dir()
    vim.fn.writefile({}, dir .. '/notes.txt')
    nvim:lua(
      "vim.cmd('cd ' .. ...) receive({ { type = 'question', id = 7, chat = 1, command = 'x', cwd = '/', timeout = 1, confinement = 'b', reasons = {}, destructive = false } })",
      dir
    )
    same({
      '/real',
      '/redo',
      '/rename',
      '/restart',
      '/restart!',
      '/resume',
      '/retry',
      '/review',
      '/rewind',
      '/rules',
    }, complete(nvim, 'Co /r'))
    same({ '/changes', '/chats' }, complete(nvim, 'Co /ch'))
    same({ '@diagnostics', '@diff' }, complete(nvim, 'Co explain @di'))
    same({ '@search:', '@selection' }, complete(nvim, 'Co explain @se'))
    same({ '@file:notes.txt' }, complete(nvim, 'Co see @file:no'))
    same({ '1 (x)' }, complete(nvim, 'Co /approve '))
    yes(vim.tbl_contains(complete(nvim, 'Co! s'), 'sh'))
    same({ 'notes.txt' }, complete(nvim, 'Co! cat n'))
    yes(vim.tbl_contains(complete(nvim, 'Co! cat notes.txt | s'), 'sort'))
  end)

  it('of the command line knows the :Co from text before it', function()
    local nvim = neovim.start()
    local dir = neovim.dir()
    vim.fn.writefile({}, dir .. '/notes.txt')
    nvim:lua("vim.cmd('cd ' .. ...)", dir)
    for _, before in ipairs({
      '',
      '  :',
      '/Code/,/End/',
      '/Co/,/Co /',
      "'<,'>",
      '1,2',
      'silent tab ',
      'cd /tmp/Core | ',
      'cd /tmp/Co | ',
      'cd Co | ',
      'g/Co/',
      'bufdo ',
    }) do
      same({ '/model' }, complete(nvim, before .. 'Co /model'), before)
      same({ 'notes.txt' }, complete(nvim, before .. 'Co! ls no'), before)
      same({ '@lsp:' }, complete(nvim, before .. 'Co say Co @ls'), before)
      same({ 'notes.txt' }, complete(nvim, before .. 'Co! ls | Co no'), before)
    end
    same({}, complete(nvim, 'Co say Co /mod'))
  end)

  it('of files gives names that mean the file', function()
    local nvim = neovim.start()
    local dir = neovim.dir()
    for _, name in ipairs({ 'a b.txt', '100%.txt', "it's.txt" }) do
      vim.fn.writefile({}, dir .. '/' .. name)
    end
    nvim:lua('vim.cmd.cd(...)', dir)
    same({ 'a\\ b.txt' }, complete(nvim, 'Co! cat a'))
    same({ 'a\\ b.txt' }, complete(nvim, 'Co! cat a\\ '))
    same({ '100\\%.txt' }, complete(nvim, 'Co! cat 1'))
    same({ "it\\'s.txt" }, complete(nvim, 'Co! cat i'))
    same({ '@file:a\\ b.txt' }, complete(nvim, 'Co see @file:a'))
    nvim:lua("vim.o.completeopt = 'menuone' vim.cmd('Co')")
    nvim:keys('isee @file:a\\ b<C-x><C-o>')
    nvim:wait("return vim.api.nvim_get_current_line() == 'see @file:a\\\\ b.txt'")
  end)

  it('of the prompt knows the same', function()
    local nvim = neovim.start()
    nvim:lua("vim.o.completeopt = 'menuone' vim.cmd('Co')")
    nvim:keys('i@diff<C-x><C-o>')
    nvim:wait("return vim.api.nvim_get_current_line() == '@diff'")
    nvim:keys(' /ne')
    nvim:keys('<Esc>cc/ne<C-x><C-o>')
    nvim:wait("return vim.api.nvim_get_current_line() == '/new'")
    nvim:keys('<Esc>cc/sandbox la<C-x><C-o>')
    nvim:wait("return vim.api.nvim_get_current_line() == '/sandbox landlock'")
  end)
end)

describe('a label', function()
  local printable = require('co.ui.printable')

  it('has the escapes of the backend', function()
    same(
      '\\u{1b}[31mred\\u{7f}\\u{202e}evil \\n\\r\\0\ttab',
      printable.label('\27[31mred\127\226\128\174evil \n\r\0\ttab')
    )
    same(
      'Größe · 日本語 ✓ 🙂 \255\226',
      printable.label('Größe · 日本語 ✓ 🙂 \255\226')
    )
    same('a \\[31m!\\[x', (printable.for_plugins('a \\[31m![x')))
    same('\\u{1b}', printable.for_plugins('\27'))
  end)

  it('escapes the characters that the backend escapes, and no others', function()
    local source = table.concat(vim.fn.readfile(co_root .. '/crates/co-text/src/lib.rs'), '\n')
    local body = assert(source:match('fn is_hidden.-\n}'))
    local hidden = {}
    for code = 0x80, 0x9f do
      hidden[code] = true
    end
    for first, last in (body:gsub("'%.%.='", '-')):gmatch("'\\u{(%x+)}%-?\\?u?{?(%x*)}?'") do
      last = last ~= '' and last or first
      for code = tonumber(first, 16), tonumber(last, 16) do
        hidden[code] = true
      end
    end
    for _, range in ipairs({ { 0x80, 0xd7ff }, { 0xe000, 0x1d200 }, { 0xdff00, 0xe1100 } }) do
      for code = range[1], range[2] do
        local char = vim.fn.nr2char(code, true)
        if (printable.label(char) ~= char) ~= (hidden[code] == true) then
          error(('U+%x'):format(code))
        end
      end
    end
  end)

  it('is what lists and winbars show', function()
    local nvim = neovim.start()
    local title = '\27[31mred\226\128\174evil'
    local shown = '\\u{1b}[31mred\\u{202e}evil'
    local function shows(what, text)
      yes(text:find(shown, 1, true) and not text:find('\27', 1, true), what .. ': ' .. text)
    end
    shows(
      'list',
      nvim:lua(
        [[
      local label
      vim.ui.select = function(items, opts) label = opts.format_item(items[1]) end
      require('co.ui.select').show({ ... }, {}, function() end)
      return label
    ]],
        title
      )
    )
    shows(
      'winbar',
      nvim:lua(
        [[
      local state = { state = 'idle', title = ..., input = 0, output = 0, model = '', cwd = '/', confinement = '' }
      return require('co.chat.winbar').text(state, nil, 100, '/')
    ]],
        title
      )
    )
    nvim:lua("require('co.run').run(..., '/')", title)
    nvim:lua("vim.cmd('Co /jobs')")
    shows('jobs', nvim:lua('return vim.api.nvim_buf_get_lines(0, 0, 1, false)[1]'))
  end)
end)

describe('the plugin file', function()
  it('requires nothing', function()
    local nvim = neovim.start({ bare = true })
    nvim:lua([[
      _G.required = {}
      local require_module = require
      function _G.require(name)
        table.insert(_G.required, name)
        return require_module(name)
      end
      vim.g.loaded_co = nil
      vim.cmd('runtime plugin/co.lua')
    ]])
    same({}, nvim:lua('return _G.required'))
    same(2, nvim:lua("return vim.fn.exists(':Co')"))
  end)

  it('maps nothing but <Plug>, and defines one command', function()
    local nvim = neovim.start({ bare = true })
    nvim:lua([[
      _G.before = vim.fn.execute('map') .. vim.fn.execute('map!') .. vim.fn.execute('tmap')
      vim.cmd('runtime plugin/co.lua')
      _G.after = vim.fn.execute('map') .. vim.fn.execute('map!') .. vim.fn.execute('tmap')
    ]])
    local extra = nvim:lua([[
      local known, found = {}, {}
      for line in vim.gsplit(_G.before, '\n') do known[line] = true end
      for line in vim.gsplit(_G.after, '\n') do
        if not known[line] and line:match('^%S*%s+<') and not line:find('<Plug>(co-', 1, true) then
          table.insert(found, line)
        end
      end
      return found
    ]])
    same({}, extra)
    same(
      { 'Co' },
      nvim:lua(
        "return vim.tbl_filter(function(name) return name:match('^Co') end, vim.tbl_keys(vim.api.nvim_get_commands({})))"
      )
    )
  end)
end)

describe('highlight groups', function()
  it('are links by default and stay as the person set them', function()
    local nvim = neovim.start()
    nvim:lua(
      "vim.api.nvim_set_hl(0, 'CoRunFailed', { fg = '#010203' }) require('co.ui.highlight').ensure()"
    )
    same(0x010203, nvim:lua("return vim.api.nvim_get_hl(0, { name = 'CoRunFailed' }).fg"))
    same(
      'FloatBorder',
      nvim:lua("return vim.api.nvim_get_hl(0, { name = 'CoApprovalBorder' }).link")
    )
    nvim:lua("require('co.ui.highlight').group('31') vim.cmd.colorscheme('blue')")
    yes(nvim:lua("return vim.api.nvim_get_hl(0, { name = 'CoSgr_31' }).fg ~= nil"))
  end)
end)

describe(':checkhealth co', function()
  it('names what is missing and what to do', function()
    local nvim = neovim.start({ bare = true })
    nvim:lua("vim.g.co = { bin = '/nonexistent/co-nvim', layout = 'x' } vim.cmd('checkhealth co')")
    local text = table.concat(nvim:lua('return vim.api.nvim_buf_get_lines(0, 0, -1, false)'), '\n')
    yes(text:find('names /nonexistent/co-nvim, which cannot be executed', 1, true), text)
    yes(text:find('the setting "layout" must be', 1, true), text)
  end)

  local version = require('co.version')
  local OWN = ('%s (protocol %d)'):format(version.version, version.protocol)

  --- Returns the health report with a program of this version, and the path of the program.
  ---@param reported string
  ---@return string
  ---@return string
  local function report(reported)
    local nvim = neovim.start({ bare = true })
    local bin = vim.fn.tempname()
    vim.fn.writefile({
      '#!/bin/sh',
      'case $1 in',
      ('--version) echo "co-nvim %s" ;;'):format(reported),
      [[doctor) echo '[{"name":"landlock","level":"ok","message":"version 5"},{"name":"key","level":"error","message":"none","advice":"set ANTHROPIC_API_KEY"}]'; exit 1 ;;]],
      'esac',
    }, bin)
    vim.fn.setfperm(bin, 'rwx------')
    nvim:lua("vim.g.co = { bin = ... } vim.cmd('checkhealth co')", bin)
    return table.concat(nvim:lua('return vim.api.nvim_buf_get_lines(0, 0, -1, false)'), '\n'), bin
  end

  it('shows what the doctor says', function()
    local text = report(OWN)
    for _, expected in ipairs({
      'version ' .. OWN,
      'landlock: version 5',
      'key: none',
      'set ANTHROPIC_API_KEY',
    }) do
      yes(text:find(expected, 1, true), text)
    end
  end)

  it('says what to do about another version', function()
    -- Between releases, the protocol changes but the version does not.
    for _, reported in ipairs({ '0.0.9 (protocol 3)', '0.1.0 (protocol 3)' }) do
      local text, bin = report(reported)
      yes(
        text:find(('%s is version %s, the plugin is %s'):format(bin, reported, OWN), 1, true),
        text
      )
      yes(
        text:find('the setting "bin" names this program: change the setting, or remove it', 1, true),
        text
      )
    end
  end)
end)
