-- Names in a chat: gf, gd and /symbols.
local messages = require('messages')
local neovim = require('neovim')

local CHAT = 'co://chat/1'

local ANSWER = table.concat({
  'See `Shape::area` and',
  '`main()`, `Circle::area`, `nothing`',
  'in shape.rs:2 and `main.rs`, or `Twice`.',
  '```',
  '`Shape` other.rs:1',
  '```',
  '',
}, '\n')

--- Starts a Neovim with a chat below a file of a project, whose language server is scripted. Returns it and the directory.
---@return co.test.Neovim, string
local function start()
  local dir = vim.fn.resolve(neovim.dir())
  vim.fn.writefile({ 'struct Shape;', '  /* äö */ fn area() {}' }, dir .. '/shape.rs')
  vim.fn.writefile({ 'fn main() {}', 'fn other() {}', 'fn area() {}' }, dir .. '/main.rs')
  local nvim = neovim.start({ screen = true, cwd = dir })
  nvim:lua(
    [[
      local root, dir = ...
      vim.cmd.edit(dir .. '/main.rs')
      local function at(name, line, character)
        local place = { line = line, character = character }
        return { uri = vim.uri_from_fname(dir .. '/' .. name), range = { start = place, ['end'] = place } }
      end
      local known = {
        ['area#'] = {
          { name = 'area', containerName = 'Shape<T>', kind = 6, location = at('shape.rs', 1, 14) },
          { name = 'area', containerName = 'Square', kind = 6, location = at('main.rs', 2, 3) },
          { name = 'area_of', containerName = 'Shape', kind = 6, location = at('main.rs', 1, 3) },
        },
        Twice = {
          { name = 'Twice', kind = 5, location = at('main.rs', 1, 3) },
          { name = 'Twice', kind = 5, location = at('shape.rs', 0, 7) },
        },
      }
      _G.searches = {}
      dofile(root .. '/tests/lua/language_server.lua')({
        definitionProvider = true,
        workspaceSymbolProvider = true,
      }, {
        ['textDocument/definition'] = function(params, callback)
          callback(nil, params.position.line == 0 and at('main.rs', 0, 3) or nil)
        end,
        ['workspace/symbol'] = function(params, callback)
          table.insert(_G.searches, params.query)
          callback(nil, known[params.query])
        end,
      })
    ]],
    co_root,
    dir
  )
  nvim:wait('return #vim.lsp.get_clients({ bufnr = 0 }) == 1')
  nvim:lua("vim.cmd('Co')")
  nvim:wait("return vim.fn.bufexists('co://chat/1') == 1")
  nvim:receive(messages.state('idle', { cwd = dir }), messages.append(ANSWER))
  nvim:keys('<Esc><C-w>k')
  nvim:wait("return vim.api.nvim_buf_get_name(0) == 'co://chat/1'")
  return nvim, dir
end

--- Waits for the cursor at a place of a file: the line from 1, and the byte column from 0.
local function wait_place(nvim, path, line, column)
  nvim:wait(
    [[
      local path, line, column = ...
      local at = vim.api.nvim_win_get_cursor(0)
      return vim.api.nvim_buf_get_name(0) == path and at[1] == line and at[2] == column
    ]],
    path,
    line,
    column
  )
end

describe('a name in a chat', function()
  it('leads to its definition', function()
    for _, key in ipairs({ 'gd', 'gf' }) do
      for keys, place in pairs({
        -- The column counts UTF-16 units, and the line has letters of two bytes.
        ['gg/area<CR>'] = { 'shape.rs', 2, 16 },
        ['gg/main<CR>'] = { 'main.rs', 1, 3 },
        ['gg/shape.rs<CR>'] = { 'shape.rs', 2, 0 },
        ['gg/main.rs<CR>'] = { 'main.rs', 1, 0 },
      }) do
        local nvim, dir = start()
        nvim:keys(keys .. key)
        wait_place(nvim, dir .. '/' .. place[1], place[2], place[3])
      end
    end
  end)

  it('stands back behind a file in its line, for gf outside of code', function()
    local nvim, dir = start()
    nvim:keys('gg/^in<CR>gf')
    wait_place(nvim, dir .. '/shape.rs', 2, 0)
  end)

  it('of another type is none', function()
    local nvim = start()
    nvim:keys('gg/Circle<CR>2wgd')
    nvim:wait_notice('no file and no definition of Circle::area: no language server knows the name')
    same({ 'area', 'area#' }, nvim:lua('return _G.searches'))
    nvim:keys('gg/See<CR>gd')
    nvim:wait_notice('no file and no definition of See')
  end)

  it('with two definitions fills the quickfix list', function()
    local nvim = start()
    nvim:keys('gg/Twice<CR>gd')
    nvim:wait([[
      local list = vim.fn.getqflist({ items = 0, title = 0 })
      return list.title == 'Co: definitions of Twice' and #list.items == 2
    ]])
  end)

  it('needs a language server', function()
    local nvim = neovim.chat({ screen = true })
    nvim:keys('<C-w>k')
    nvim:receive(messages.append('a `Name`\n'))
    nvim:wait_line(CHAT, 'a `Name`')
    nvim:keys('gg/Name<CR>gd')
    nvim:wait_notice(
      'no file and no definition of Name: no language server is attached to an open file'
    )
  end)
end)

describe('the name of a symbol', function()
  it('of a language server may be long', function()
    local symbol_name = require('co.buffers.symbol_name')
    for _, text in ipairs({ ('('):rep(500000), ('<'):rep(500000) }) do
      ---@type any, any
      local long, within = { name = 'run ' .. text }, { name = 'run', containerName = text }
      same(false, symbol_name.names('run', long))
      same(true, symbol_name.names('run', within))
    end
  end)
end)

describe('/symbols', function()
  it('lists the files and the names of an answer', function()
    local nvim = start()
    nvim:lua("vim.cmd('Co /symbols')")
    nvim:wait("return vim.fn.getqflist({ title = 0 }).title == 'Co: names of the answer'")
    local found = nvim:lua([[
      return vim.tbl_map(function(item)
        local name = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(item.bufnr), ':t')
        return ('%s:%d %s'):format(name, item.lnum, item.text)
      end, vim.fn.getqflist())
    ]])
    same({
      'shape.rs:2 Shape::area',
      'main.rs:1 main()',
      'shape.rs:2 shape.rs:2',
      'main.rs:1 main.rs',
      'main.rs:2 Twice',
      'shape.rs:1 Twice',
    }, found)
  end)

  it('says if an answer names nothing', function()
    local nvim = neovim.chat({ screen = true })
    nvim:receive(messages.append('Done: `a b` and 12:30.\n'))
    nvim:lua("vim.cmd('Co /symbols')")
    nvim:wait_notice('the answer names no file and no symbol that a language server knows')
  end)
end)
