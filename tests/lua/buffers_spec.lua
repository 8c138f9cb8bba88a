local neovim = require('neovim')
local questions = require('questions')
local editor = questions.editor

--- Starts Neovim with a file in a buffer. Returns it, the real path of the file, and the bytes on the disk.
---@param bytes string
---@param commands? string[] Ex commands for the buffer
local function open(bytes, commands)
  local nvim = editor()
  local dir = neovim.dir()
  local file = vim.fn.resolve(dir) .. '/a file.txt'
  local handle = assert(io.open(file, 'wb'))
  handle:write(bytes)
  handle:close()
  nvim:lua('vim.cmd.edit(vim.fn.fnameescape(...))', file)
  for _, command in ipairs(commands or {}) do
    nvim:lua('vim.cmd(...)', command)
  end
  return nvim, file
end

--- Returns the bytes of a file.
local function bytes_of(file)
  local handle = assert(io.open(file, 'rb'))
  local bytes = handle:read('*a')
  handle:close()
  return bytes
end

local function wait_bytes(file, bytes)
  neovim.wait('the bytes of the file', function()
    return bytes_of(file) == bytes
  end)
end

--- Asks for the text of a file. Returns the answer about its buffer.
local function read(nvim, file)
  local count = #nvim:sent('buffers')
  nvim:receive({ type = 'read_buffers', request = count + 1, files = { '/nowhere', file } })
  neovim.wait('an answer', function()
    return #nvim:sent('buffers') > count
  end)
  local reply = nvim:sent('buffers')[count + 1]
  same(count + 1, reply.request)
  return reply.buffers[1]
end

--- Asks for a change of lines. Returns the answer.
local function change(nvim, file, replacements, fields)
  local count = #nvim:sent('buffer_changed')
  nvim:receive(vim.tbl_extend('force', {
    type = 'change_buffer',
    request = count + 1,
    file = file,
    tick = read(nvim, file).tick,
    replacements = replacements,
    final_newline = true,
  }, fields or {}))
  neovim.wait('an answer', function()
    return #nvim:sent('buffer_changed') > count
  end)
  local reply = nvim:sent('buffer_changed')[count + 1]
  reply.type, reply.request = nil, nil
  if not (reply.diagnostics or {})[1] then
    reply.diagnostics = nil
  end
  return reply
end

local function lines(from, to, text)
  return { { start = from, ['end'] = to, lines = text } }
end

describe('the buffers', function()
  it('are read as the person sees them', function()
    local nvim, file = open('one\r\ntwo\r\n')
    local found = read(nvim, file)
    same({ 'one\ntwo\n', false, file }, { found.text, found.modified, found.file })
    nvim:keys('otyped<Esc>')
    found = read(nvim, file)
    same({ 'one\ntyped\ntwo\n', true }, { found.text, found.modified })
    nvim:lua('vim.cmd("enew!")')
    nvim:lua('vim.cmd("bdelete! " .. vim.fn.fnameescape(...))', file)
    same(nil, read(nvim, file))
  end)

  it('are found below a directory if they have unsaved changes', function()
    local nvim, file = open('one\n')
    local dir = vim.fs.dirname(file)
    local function found(path)
      local count = #nvim:sent('buffers')
      local message = { type = 'read_buffers', request = 1, files = {}, modified_below = path }
      nvim:receive(message)
      neovim.wait('an answer', function()
        return #nvim:sent('buffers') > count
      end)
      return vim.tbl_map(function(buffer)
        return { buffer.file, buffer.text }
      end, nvim:sent('buffers')[count + 1].buffers)
    end
    same({}, found(dir))
    nvim:keys('otyped<Esc>')
    local typed = { { file, 'one\ntyped\n' } }
    same(typed, found(dir))
    same(typed, found('/'))
    same(typed, found(file))
    same({}, found(dir .. '/a'))
    nvim:lua('vim.cmd.edit(vim.fn.fnameescape(...))', dir .. '2/other')
    nvim:keys('otyped<Esc>')
    same(typed, found(dir))
    -- The backend takes names that are UTF-8 only.
    nvim:lua('vim.cmd.edit(vim.fn.fnameescape(...))', dir .. '/not\xff')
    nvim:keys('otyped<Esc>')
    same(typed, found(dir))
  end)

  it('keep how the file is stored', function()
    for _, case in ipairs({
      { 'one\ntwo\n', 'one\n2\n' },
      { 'one\r\ntwo\r\n', 'one\r\n2\r\n' },
      { 'one\ntwo', 'one\n2', false },
      { '\xef\xbb\xbfone\ntwo\n', '\xef\xbb\xbfone\n2\n' },
      { 'on\xe9\ntwo\n', 'on\xe9\n2\n' },
    }) do
      local nvim, file = open(case[1])
      local fields = { final_newline = case[3] ~= false }
      same({}, change(nvim, file, lines(1, 2, { '2' }), fields))
      same(case[2], bytes_of(file))
      nvim:keys('u:set nofixendofline | write<CR>')
      wait_bytes(file, case[1])
    end
  end)

  it('are changed in one block of undo of their own, also while the person types', function()
    local nvim, file = open('one\ntwo\nthree\nfour\n')
    nvim:keys('Gofive')
    local tick = read(nvim, file).tick
    local both = vim.list_extend(lines(0, 1, { '1' }), lines(2, 3, { '3', '3b' }))
    same({ unsaved = 'it had unsaved changes' }, change(nvim, file, both, { tick = tick }))
    same('1\ntwo\n3\n3b\nfour\nfive\n', read(nvim, file).text)
    same('one\ntwo\nthree\nfour\n', bytes_of(file))
    nvim:keys(' and six<Esc>u')
    neovim.wait('the text', function()
      return read(nvim, file).text == '1\ntwo\n3\n3b\nfour\nfive\n'
    end)
    nvim:keys('u')
    neovim.wait('the text', function()
      return read(nvim, file).text == 'one\ntwo\nthree\nfour\nfive\n'
    end)
  end)

  it('are not changed if the text has moved', function()
    local nvim, file = open('one\n')
    local tick = read(nvim, file).tick
    nvim:keys('x')
    same({ moved = true }, change(nvim, file, lines(0, 1, { '1' }), { tick = tick }))
    same('ne\n', read(nvim, file).text)
  end)

  it('keep marks and the cursor in lines that change', function()
    local nvim, file = open('héllo wörld\nend\n')
    nvim:keys('majfn')
    local id = nvim:lua([[
      vim.api.nvim_buf_set_extmark(0, vim.api.nvim_create_namespace('test'), 0, 7, {})
      return vim.api.nvim_create_namespace('test')
    ]])
    change(nvim, file, lines(0, 1, { 'hällo my wörld' }))
    same('hällo my wörld\nend\n', bytes_of(file))
    same({ 0, 10 }, nvim:lua('return vim.api.nvim_buf_get_extmark_by_id(0, ..., 1, {})', id))
    same(1, nvim:lua('return vim.api.nvim_buf_get_mark(0, "a")[1]'))
    same({ 2, 1 }, nvim:lua('return vim.api.nvim_win_get_cursor(0)'))
  end)

  it('may be empty before or after', function()
    local nvim, file = open('')
    same('', read(nvim, file).text)
    same({}, change(nvim, file, lines(0, 0, { 'one', 'two' })))
    same('one\ntwo\n', bytes_of(file))
    same({}, change(nvim, file, lines(0, 2, {})))
    same('', read(nvim, file).text)
  end)

  it('tell what a formatter made of the text', function()
    local nvim, file = open('one\n', { 'autocmd BufWritePre <buffer> %s/ *$//' })
    same({ text = 'two\n' }, change(nvim, file, lines(0, 1, { 'two   ' })))
    same('two\n', bytes_of(file))
  end)

  it('stay unsaved if they cannot be written', function()
    local nvim, file = open('one\n', { 'autocmd BufWritePre <buffer> throw "not now"' })
    local reply = change(nvim, file, lines(0, 1, { '1' }))
    yes(reply.unsaved:find('not now$'), vim.inspect(reply))
    same(nil, reply.unsaved:find('.lua', 1, true))
    same('one\n', bytes_of(file))
    same('1\n', read(nvim, file).text)
  end)

  it('are not changed to what their encoding has not', function()
    local nvim, file = open('on\xe9\n')
    same({
      problem = 'its encoding, latin1, has no character `☃`: leave that character out',
    }, change(nvim, file, lines(0, 1, { 'on☃' })))
    same('oné\n', read(nvim, file).text)
  end)

  it('are not changed if they are read-only', function()
    for _, command in ipairs({ 'set readonly', 'set nomodifiable' }) do
      local nvim, file = open('one\n', { command })
      local found = read(nvim, file)
      same({ "its buffer is 'readonly' or not 'modifiable'", '' }, { found.problem, found.text })
    end
  end)

  it('tell before and after they are saved', function()
    local nvim, file = open('one\n')
    nvim:lua([[require('co.buffers').watch_saves()]])
    local link = vim.fn.tempname()
    vim.fn.system({ 'ln', '-s', vim.fs.dirname(file), link })
    nvim:lua('vim.cmd.edit(vim.fn.fnameescape(...))', link .. '/a file.txt')
    nvim:keys(':write<CR>')
    nvim:wait_sent(2, 'saved')
    same({ file, file }, { nvim:sent('saved')[1].file, nvim:sent('saved')[2].file })
  end)

  it('take what changed on the disk before they are read', function()
    for _, option in ipairs({ 'set autoread', 'set noautoread' }) do
      local nvim, file = open('one\n', { option })
      local handle = assert(io.open(file, 'wb'))
      handle:write('another text\n')
      handle:close()
      same('another text\n', read(nvim, file).text)
      same({}, change(nvim, file, lines(0, 1, { 'mine' })))
      same('mine\n', bytes_of(file))
    end
  end)

  it('tell the new diagnostics of a language server', function()
    local nvim, file = open('one\ntwo\n')
    nvim:lua([[
      local function publish(dispatchers, uri, text)
        local found = {}
        for row, line in ipairs(vim.split(text, '\n')) do
          for word in line:gmatch('bad%d') do
            local at = { line = row - 1, character = 0 }
            table.insert(found, {
              range = { start = at, ['end'] = at }, message = word, severity = 1, source = 'toy',
            })
          end
        end
        dispatchers.notification('textDocument/publishDiagnostics', { uri = uri, diagnostics = found })
      end
      vim.lsp.start({ name = 'toy', root_dir = '/', cmd = function(dispatchers)
        return {
          request = function(method, _, callback)
            local sync = { openClose = true, change = 1 }
            callback(nil, method == 'initialize' and { capabilities = { textDocumentSync = sync } } or {})
            return true, 1
          end,
          notify = function(method, params)
            local document = params.textDocument
            if method == 'textDocument/didOpen' then
              publish(dispatchers, document.uri, document.text)
            elseif method == 'textDocument/didChange' then
              vim.schedule(function()
                publish(dispatchers, document.uri, params.contentChanges[1].text)
              end)
            end
            return true
          end,
          is_closing = function() return false end,
          terminate = function() end,
        }
      end })
    ]])
    change(nvim, file, lines(1, 2, { 'bad1' }))
    local reply = change(nvim, file, lines(0, 1, { 'zero', 'bad2' }))
    same({ diagnostics = { '2:1: error: bad2 [toy]' } }, reply)
  end)
end)

describe('a file that co moved or deleted', function()
  --- Tells Neovim that the file is gone, after it is.
  local function gone(nvim, file, to)
    if to then
      assert(os.rename(file, to))
    else
      assert(os.remove(file))
    end
    nvim:receive({ type = 'file_gone', file = file, to = to })
  end

  --- Waits until co has told the person a text. The screen may not have room for all of it.
  local function told(nvim, text)
    local lines = "table.concat(require('co.ui.log').lines(), '\\n')"
    nvim:wait(('return %s:find(..., 1, true) ~= nil'):format(lines), text)
  end

  it('gives its buffer the new name, and :w writes it', function()
    local nvim, file = open('one\ntwo\n', { '2', 'setlocal undofile' })
    local to = vim.fn.fnamemodify(file, ':h') .. '/new name.lua'
    gone(nvim, file, to)
    nvim:wait('return vim.api.nvim_buf_get_name(0) == ...', to)
    same(2, nvim:lua('return vim.fn.line(".")'))
    same('lua', nvim:lua('return vim.bo.filetype'))
    nvim:keys('Atyped<Esc>:w<CR>')
    wait_bytes(to, 'one\ntwotyped\n')
    same(nil, vim.uv.fs_stat(file))
    same(0, nvim:lua('return vim.fn.bufexists(...)', file), 'no buffer has the old name')
  end)

  it('gives a hidden buffer the new name too', function()
    local nvim, file = open('one\n', { 'enew' })
    local to = vim.fn.fnamemodify(file, ':h') .. '/b.txt'
    gone(nvim, file, to)
    nvim:wait('return vim.fn.bufexists(...) == 1', to)
    same(0, nvim:lua('return vim.fn.bufexists(...)', file))
    same('', nvim:lua('return vim.api.nvim_buf_get_name(0)'))
    same({ 'one' }, nvim:lua('return vim.fn.getbufline(..., 1, "$")', to))
  end)

  it('leaves unsaved text in a buffer with the new name', function()
    local nvim, file = open('one\n', { "call setline(1, 'mine')" })
    local to = vim.fn.fnamemodify(file, ':h') .. '/b.txt'
    gone(nvim, file, to)
    told(nvim, 'keeps your unsaved changes')
    same(to, nvim:lua('return vim.api.nvim_buf_get_name(0)'))
    same({ 'mine' }, nvim:lua('return vim.api.nvim_buf_get_lines(0, 0, -1, false)'))
    same('one\n', bytes_of(to))
    nvim:keys(':w!<CR>')
    wait_bytes(to, 'mine\n')
  end)

  it('takes its buffer with it, and no window', function()
    local nvim, file = open('one\n', { 'split' })
    gone(nvim, file)
    nvim:wait('return vim.fn.bufexists(...) == 0', file)
    same(2, nvim:lua('return #vim.api.nvim_tabpage_list_wins(0)'))
  end)

  it('leaves a buffer with unsaved text', function()
    local nvim, file = open('one\n', { "call setline(1, 'mine')" })
    gone(nvim, file)
    told(nvim, 'was deleted; its buffer keeps your unsaved changes')
    same({ 'mine' }, nvim:lua('return vim.api.nvim_buf_get_lines(0, 0, -1, false)'))
    nvim:keys(':w<CR>')
    neovim.wait('the file', function()
      return vim.uv.fs_stat(file) ~= nil
    end)
  end)
end)
