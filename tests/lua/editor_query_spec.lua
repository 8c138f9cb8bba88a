local neovim = require('neovim')
local questions = require('questions')

--- Starts Neovim with files in a directory. Opens the first one. Returns Neovim and the real path of the directory.
---@param files table<string, string>
---@param open string
local function start(files, open)
  local nvim = questions.editor()
  local dir = neovim.dir()
  dir = vim.fn.resolve(dir)
  for name, text in pairs(files) do
    vim.fn.writefile(vim.split(text, '\n'), dir .. '/' .. name)
  end
  nvim:lua('vim.cmd.edit(...)', dir .. '/' .. open)
  return nvim, dir
end

--- Asks about the editor. Returns the problem, or each entry as text, with the number of others.
local function ask(nvim, dir, query)
  local count = #nvim:sent('editor_answer')
  nvim:receive(vim.tbl_extend('error', { type = 'editor_query', request = count + 1 }, query))
  neovim.wait('an answer', function()
    return #nvim:sent('editor_answer') > count
  end)
  local reply = nvim:sent('editor_answer')[count + 1]
  same(count + 1, reply.request)
  if reply.problem then
    return reply.problem
  end
  local lines = {}
  for _, place in ipairs(reply.places or {}) do
    lines[#lines + 1] = ('%s:%d:%d %s')
      :format(place.file, place.row, place.character, place.unit)
      :gsub(vim.pesc(dir .. '/'), '')
  end
  for _, entry in ipairs(reply.entries or {}) do
    local place = entry.line and (':%d:%d'):format(entry.line, entry.column) or ''
    lines[#lines + 1] = ('%s%s: %s')
      :format(entry.file, place, entry.text)
      :gsub(vim.pesc(dir .. '/'), '')
  end
  return lines, reply.more
end

--- Attaches a language server to the current buffer, with the results of its methods.
local function attach(nvim, results)
  nvim:lua(
    [[
      local root, results = ...
      local function at_place(params, name)
        local at = params.position
        return results[('%d:%d%s'):format(at.line, at.character, name)]
      end
      dofile(root .. '/tests/lua/language_server.lua')({
        documentSymbolProvider = results.symbols and true,
        definitionProvider = true,
        referencesProvider = true,
        renameProvider = true,
      }, {
        ['textDocument/documentSymbol'] = function(_, callback)
          callback(nil, results.symbols)
        end,
        ['textDocument/definition'] = function(params, callback)
          callback(nil, at_place(params, ''))
        end,
        ['textDocument/rename'] = function(params, callback)
          results.meanwhile = results.meanwhile and load(results.meanwhile)()
          if results.wrong then
            return callback(results.wrong.problem, results.wrong.result)
          end
          local edit = at_place(params, ' ' .. params.newName)
          callback(not edit and { code = 1, message = 'no name\nhere.' } or nil, edit or nil)
        end,
        ['textDocument/references'] = results.references and function(_, callback, exit)
          if results.references == 'exit' then
            return exit()
          end
          callback(results.references == 'bad' and { code = 1, message = 'no' } or nil, results.references)
        end,
      })
    ]],
    co_root,
    results
  )
end

local function range(line, first, last)
  return {
    start = { line = line, character = first },
    ['end'] = { line = line, character = last },
  }
end

describe('a question about the editor', function()
  it('tells the current file, its place and the open files', function()
    local nvim, dir = start({ ['a.txt'] = 'one\ntwo\nthree', ['b.txt'] = 'b' }, 'a.txt')
    nvim:lua('vim.cmd.badd(...)', dir .. '/b.txt')
    nvim:keys('jlix<Esc>')
    nvim:lua("require('co.ui.last_window').watch()")
    nvim:lua([[
      local chat = vim.api.nvim_create_buf(true, true)
      vim.bo[chat].filetype = 'co-chat'
      vim.cmd.sbuffer(chat)
    ]])
    same({
      "a.txt: the person's current file, cursor at 2:2, lines 1 to 3 visible, unsaved changes",
      'b.txt: open',
    }, ask(nvim, dir, { topic = 'state' }))
  end)

  it('cuts a long text at a blank, so that no secret is cut', function()
    local nvim, dir = start({ ['a.txt'] = '' }, 'a.txt')
    nvim:lua(
      "vim.fn.setqflist({ { bufnr = vim.api.nvim_get_current_buf(), lnum = 1, col = 1, text = 'x ' .. ('é'):rep(200) .. ' ' .. ('é'):rep(200) } })"
    )
    local lines = ask(nvim, dir, { topic = 'quickfix' })
    same('a.txt:1:1: x ' .. ('é'):rep(200) .. ' …', lines[1])
  end)

  it('tells diagnostics, errors first, and the quickfix list, up to a limit', function()
    local nvim, dir = start({ ['a.txt'] = 'one\ntwo' }, 'a.txt')
    nvim:lua([[
      vim.diagnostic.set(vim.api.nvim_create_namespace('test'), 0, {
        { lnum = 0, col = 0, message = 'hm', severity = 2 },
        { lnum = 1, col = 1, message = 'bad', severity = 1, source = 'toy' },
      })
    ]])
    same(
      { 'a.txt:2:2: error: bad [toy]', 'a.txt:1:1: warn: hm' },
      ask(nvim, dir, { topic = 'diagnostics' })
    )
    nvim:lua([[
      local items = { { text = 'no place' } }
      for row = 1, 1002 do
        items[row + 1] = { bufnr = vim.api.nvim_get_current_buf(), lnum = row, col = 2, text = ('xxxx '):rep(2000) }
      end
      vim.fn.setqflist(items)
    ]])
    local lines, more = ask(nvim, dir, { topic = 'quickfix' })
    same({ 1000, 2 }, { #lines, more })
    same('a.txt:1:2: ' .. ('xxxx '):rep(100) .. '…', lines[1])
  end)

  it('tells the symbols, the definition and the references that a language server knows', function()
    local text = '-- name, naming\nlocal é, name = 1\nprint(a.name)'
    local nvim, dir = start({ ['a.lua'] = text, ['b.lua'] = 'function name()' }, 'a.lua')
    local uri = vim.uri_from_fname(dir .. '/b.lua')
    local here = vim.uri_from_fname(dir .. '/a.lua')
    attach(nvim, {
      symbols = {
        {
          name = 'outer',
          kind = 12,
          range = range(1, 0, 5),
          selectionRange = range(1, 0, 5),
          children = {
            { name = 'inner', kind = 13, range = range(2, 6, 7), selectionRange = range(2, 6, 7) },
          },
        },
      },
      -- The column counts UTF-16.
      ['1:9'] = { uri = uri, range = range(0, 9, 13) },
      ['2:8'] = {
        { uri = here, range = range(1, 9, 13) },
        { uri = 'zip:x', range = range(0, 0, 0) },
      },
      references = {
        { uri = uri, range = range(0, 9, 13) },
        { uri = here, range = range(2, 8, 12) },
      },
    })
    local file = dir .. '/a.lua'
    same(
      { 'a.lua:2:1: [Function] outer', 'a.lua:3:7: [Variable] inner' },
      ask(nvim, dir, { topic = 'symbols', file = file })
    )
    same(
      { 'b.lua:0:9 utf-16' },
      ask(nvim, dir, { topic = 'definition', file = file, name = 'name' })
    )
    same(
      { 'a.lua:1:9 utf-16' },
      ask(nvim, dir, { topic = 'definition', file = file, name = 'a.name', line = 3 })
    )
    same(
      { 'a.lua:2:8 utf-16', 'b.lua:0:9 utf-16' },
      ask(nvim, dir, { topic = 'references', file = file, name = 'name' })
    )
  end)

  describe('that asks for a rename', function()
    local a, b

    --- Starts Neovim with a language server that gives an edit for the second place of `name` in a.lua.
    local function server(result, meanwhile)
      local nvim, dir =
        start({ ['a.lua'] = '-- name\nlocal é, name', ['b.lua'] = 'name' }, 'a.lua')
      a, b = dir .. '/a.lua', dir .. '/b.lua'
      attach(nvim, {
        ['1:9 other'] = result(vim.uri_from_fname(a), vim.uri_from_fname(b)),
        meanwhile = meanwhile,
      })
      nvim:receive({
        type = 'editor_query',
        request = 1,
        topic = 'rename',
        file = a,
        name = 'name',
        new_name = 'other',
      })
      neovim.wait('an answer', function()
        return #nvim:sent('editor_answer') > 0
      end)
      return nvim:sent('editor_answer')[1], nvim
    end

    local edit_a = { range = range(1, 9, 13), newText = 'other' }
    local edit_b = { range = range(0, 0, 4), newText = 'other' }

    local function check(reply, nvim)
      same('utf-16', reply.unit)
      same({
        {
          file = a,
          tick = nvim:lua('return vim.b.changedtick'),
          edits = { { start = { 1, 9 }, ['end'] = { 1, 13 }, text = 'other' } },
        },
        { file = b, edits = { { start = { 0, 0 }, ['end'] = { 0, 4 }, text = 'other' } } },
      }, reply.files)
      same('-- name', nvim:lua('return vim.fn.getline(1)'))
    end

    it('gets the edits of each file, and changes nothing', function()
      check(server(function(uri_a, uri_b)
        return { changes = { [uri_a] = { edit_a }, [uri_b] = { edit_b } } }
      end))
      check(server(function(uri_a, uri_b)
        return {
          documentChanges = {
            { textDocument = { uri = uri_b }, edits = { edit_b } },
            { textDocument = { uri = uri_a, version = 1 }, edits = { edit_a } },
          },
        }
      end))
    end)

    it('says why there are none', function()
      local function problem(expected, result)
        same(expected, server(result).problem)
      end
      problem('its language server answered with an error: no name here', function() end)
      problem('its language server knows nothing to rename there', function()
        return { changes = vim.empty_dict() }
      end)
      problem(
        'its language server also makes, moves or deletes files, which co does not do',
        function(uri)
          return { documentChanges = { { kind = 'delete', uri = uri } } }
        end
      )
      problem('its language server also changes zip:x, which is no file', function()
        return { changes = { ['zip:x'] = { edit_a } } }
      end)
      problem('its language server also changes a file whose name is not UTF-8', function()
        return { changes = { ['file:///tmp/%ff'] = { edit_a } } }
      end)
      local reply = server(function(uri)
        return { changes = { [uri] = { edit_a } } }
      end, "vim.fn.setline(1, 'typed')")
      same(a .. ' changed while its language server answered', reply.problem)
    end)
  end)

  it('says why there is no answer', function()
    local nvim, dir = start({ ['a.lua'] = 'name', ['b.lua'] = '' }, 'a.lua')
    local function check(expected, query)
      query.file = query.file or dir .. '/a.lua'
      same(expected, ask(nvim, dir, query))
    end
    check('it is not open in the editor', { topic = 'symbols', file = dir .. '/b.lua' })
    check('no language server is attached to it', { topic = 'symbols' })
    attach(nvim, { references = 'bad' })
    check('its language server cannot tell symbols', { topic = 'symbols' })
    check('the name does not stand in it', { topic = 'references', name = 'na' })
    check('the name does not stand in line 2', { topic = 'references', name = 'name', line = 2 })
    check('its language server answered with an error: no', { topic = 'references', name = 'name' })
    same({}, ask(nvim, dir, { topic = 'definition', file = dir .. '/a.lua', name = 'name' }))
  end)

  it('ends at once if a language server ends', function()
    local nvim, dir = start({ ['a.lua'] = 'name' }, 'a.lua')
    attach(nvim, { references = 'exit' })
    local query = { topic = 'references', file = dir .. '/a.lua', name = 'name' }
    same('its language server has ended', ask(nvim, dir, query))
    same({}, nvim:lua("return vim.api.nvim_get_autocmds({ event = 'LspDetach', buffer = 0 })"))
  end)

  it('names no line of co if a language server answers wrongly', function()
    local nvim, dir = start({ ['a.lua'] = 'name' }, 'a.lua')
    local file = dir .. '/a.lua'
    local uri = vim.uri_from_fname(file)
    local unread = 'the answer of toy cannot be read'
    local function check(topic, results, expected)
      attach(nvim, results)
      local query = { topic = topic, file = file, name = 'name', new_name = 'other' }
      if topic == 'symbols' then
        query.name, query.new_name = nil, nil
      end
      same(expected, ask(nvim, dir, query))
      nvim:lua('vim.lsp.stop_client(vim.lsp.get_clients({ bufnr = 0 }), true)')
    end
    for _, start_at in ipairs({
      {},
      { line = 'x', character = 0 },
      { line = 0, character = -1 },
      { line = 0.5, character = 0 },
      { line = 1e300, character = 0 },
    }) do
      local wrong = { start = start_at, ['end'] = { line = 0, character = 4 } }
      check('references', { references = { { uri = uri, range = wrong } } }, unread)
      local edits = { { range = wrong, newText = 'other' } }
      check('rename', { wrong = { result = { changes = { [uri] = edits } } } }, unread)
      check('symbols', { symbols = { { name = 'a', kind = 1, selectionRange = wrong } } }, unread)
    end
    check('references', { references = { 'x', 1 } }, unread)
    check('rename', { wrong = { result = { changes = { [uri] = { x = 1 } } } } }, unread)
    check('rename', { wrong = { result = { documentChanges = { 1 } } } }, unread)
    local words = 'its language server answered with an error'
    check('rename', { wrong = { problem = { code = 1 } } }, words)
    check('rename', { wrong = { problem = { message = { 'x' } } } }, words)
    check('rename', { wrong = { problem = 'no\nway.' } }, words .. ': no way')
  end)

  it('ends if a language server does not answer', function()
    local nvim, dir = start({ ['a.lua'] = 'name' }, 'a.lua')
    attach(nvim, {})
    local query = { topic = 'references', file = dir .. '/a.lua', name = 'name' }
    same('its language server did not answer within 3 s', ask(nvim, dir, query))
  end)
end)
