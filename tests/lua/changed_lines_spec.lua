-- Signs at the lines that the model changed in its last turn.
local messages = require('messages')
local neovim = require('neovim')

-- The lines of the current buffer with a sign, and the signs.
local SIGNS = [[
  local found = {}
  local namespace = vim.api.nvim_get_namespaces()['co.changed']
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true })) do
    found[#found + 1] = (mark[2] + 1) .. vim.trim(mark[4].sign_text)
  end
  return found
]]

--- Returns a Neovim with a chat and a file of nine lines, and its path.
---@param open boolean the file is in the current window
---@return co.test.Neovim
---@return string path
local function editor(open)
  local nvim = neovim.chat()
  local path = neovim.dir() .. '/a.txt'
  vim.fn.writefile(neovim.numbered('', 9), path)
  nvim:lua("vim.cmd('wincmd t')")
  if open then
    nvim:lua('vim.cmd.edit(...)', path)
  end
  nvim:receive(messages.state('running'))
  return nvim, path
end

--- Raises the event about an edit.
---@param nvim co.test.Neovim
---@param path string
---@param changes integer[][] first line, removed and added lines
local function edited(nvim, path, changes)
  nvim:receive({
    type = 'event',
    name = 'CoEdited',
    data = {
      chat = 1,
      files = { path },
      changes = vim.tbl_map(function(change)
        return { file = path, first = change[1], removed = change[2], added = change[3] }
      end, changes),
    },
  })
end

--- Changes the buffer of the file as the backend does.
---@param nvim co.test.Neovim
---@param path string
local function change(nvim, path)
  nvim:receive({
    type = 'change_buffer',
    request = 1,
    chat = 1,
    file = path,
    tick = nvim:lua('return vim.b.changedtick'),
    replacements = {
      { start = 1, ['end'] = 2, lines = { 'two', 'and more' } },
      { start = 5, ['end'] = 7, lines = {} },
    },
    final_newline = true,
  })
  nvim:wait_sent(1, 'buffer_changed')
end

describe('lines that the model changed', function()
  it('have signs in an open file, until the next turn', function()
    local nvim, path = editor(true)
    change(nvim, path)
    edited(nvim, path, { { 2, 1, 2 }, { 6, 2, 0 } })
    same({ '2▎', '3▎', '6▁' }, nvim:lua(SIGNS))
    nvim:receive(messages.state('idle'))
    same({ '2▎', '3▎', '6▁' }, nvim:lua(SIGNS))
    nvim:receive(messages.state('thinking'))
    same({}, nvim:lua(SIGNS))
  end)

  it('have signs in a file that is opened later', function()
    local nvim, path = editor(false)
    edited(nvim, path, { { 5, 1, 2 }, { 8, 1, 1 } })
    edited(nvim, path, { { 1, 0, 1 } })
    vim.fn.writefile(neovim.numbered('', 11), path)
    nvim:lua('vim.cmd.edit(...)', path)
    same({ '1▎', '6▎', '7▎', '10▎' }, nvim:lua(SIGNS))
  end)

  it('have signs after a command of the model, and none after one of the person', function()
    for state, signs in pairs({ running = { '2▎' }, idle = {} }) do
      local nvim, path = editor(true)
      nvim:lua('vim.o.autoread = true')
      nvim:receive(messages.state(state), messages.call(1, 'make', { block = 1 }))
      local lines = neovim.numbered('', 9)
      lines[2] = 'another one'
      vim.fn.writefile(lines, path)
      nvim:receive(messages.block(1, nil, true))
      same('another one', nvim:lua('return vim.fn.getline(2)'))
      same(signs, nvim:lua(SIGNS))
    end
  end)

  it('are gone to by keys, and lose their signs by /seen', function()
    local nvim, path = editor(true)
    change(nvim, path)
    nvim:lua([[
      vim.keymap.set('n', 'gn', '<Plug>(co-next-change)')
      vim.keymap.set('n', 'gp', '<Plug>(co-previous-change)')
    ]])
    nvim:keys('gggn')
    nvim:wait("return vim.fn.line('.') == 2")
    nvim:keys('gn')
    nvim:wait("return vim.fn.line('.') == 6")
    nvim:keys('gp')
    nvim:wait("return vim.fn.line('.') == 2")
    nvim:keys(':Co /seen<CR>')
    nvim:settle()
    same({}, nvim:lua(SIGNS))
  end)

  it('have other signs until the person has answered them, in opened files too', function()
    for _, is_open in ipairs({ true, false }) do
      local nvim, path = editor(is_open)
      local function open(lines)
        nvim:receive({
          type = 'open_changes',
          chat = 1,
          files = lines and { { file = vim.uv.fs_realpath(path), lines = lines } } or {},
        })
      end
      open({ { first = 2, count = 2 }, { first = 8, count = 0 } })
      nvim:lua('vim.cmd.edit(...)', path)
      local signs = SIGNS:gsub('co%.changed', 'co.open.1')
      same({ '2┊', '3┊', '7▁' }, nvim:lua(signs))
      open({ { first = 9, count = 1 } })
      same({ '9┊' }, nvim:lua(signs))
      nvim:lua([[vim.keymap.set('n', 'gn', '<Plug>(co-next-change)')]])
      nvim:keys('gggn')
      nvim:wait("return vim.fn.line('.') == 9")
      open(nil)
      same({}, nvim:lua(signs))
    end
  end)
end)
