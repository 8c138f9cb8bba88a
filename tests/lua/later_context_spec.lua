-- The contexts that other programs give: git and language servers.

local gather = require('gather')
local neovim = require('neovim')

describe('a context that another program gives', function()
  --- A Neovim whose backend does not answer yet. The second function lets it answer.
  local function slow()
    local nvim = neovim.start()
    nvim:lua([[
      local send, asked = require('co.backend').send, {}
      require('co.backend').send = function(message)
        if message.type ~= 'read_context' then
          return send(message)
        end
        table.insert(asked, message.request)
        return true
      end
      _G.go = function(answer)
        for _, request in ipairs(asked) do
          local read = { type = 'context_read', request = request }
          _G.receive({ vim.tbl_extend('error', read, answer or { text = 'changed\n' }) })
        end
        asked = {}
      end
      vim.cmd('Co explain @diff, please')
    ]])
    return nvim
  end

  it('comes later, and the prompt waits for it', function()
    local nvim = slow()
    same({}, nvim:sent())
    nvim:lua("vim.cmd('Co and this')")
    nvim:lua('_G.go()')
    nvim:wait('return #_G.sent == 2')
    local prompt = nvim:sent('prompt')[1]
    same('explain @diff, please', prompt.text)
    same({ { name = '@diff', text = 'changed\n' } }, prompt.context)
    same('and this', nvim:sent('prompt')[2].text)
  end)

  it('that the person cancels gives the prompt back', function()
    local nvim = slow()
    nvim:lua('_G.go({ cancelled = true })')
    nvim:wait_line('co://chat/1/prompt', 'explain @diff, please')
    same({}, nvim:sent('prompt'))
  end)

  it('that comes too late for its chat gives the prompt back', function()
    local nvim = slow()
    nvim:lua("require('co.backend').send = function() return false end")
    nvim:lua('_G.go()')
    nvim:wait_line('co://chat/1/prompt', 'explain @diff, please')
    same({}, nvim:lua("return require('co.chat.registry').get(1).waiting_prompts"))
  end)

  it('gives the prompt back if the backend ends before', function()
    local nvim = slow()
    nvim:lua("vim.cmd('Co and this') require('co.backend').handle_exit('gone')")
    nvim:wait_line('co://chat/1/prompt', 'and this')
    nvim:lua('_G.go()')
    nvim:lua("vim.cmd('Co @diff') _G.go()")
    nvim:wait('return #_G.sent == 1')
    same('@diff', nvim:sent('prompt')[1].text)
    same(
      { 'explain @diff, please', 'and this' },
      nvim:lua("return require('co.chat.registry').get(1).prompt:lines()")
    )
  end)
end)

describe('@lsp:', function()
  it('is what the language servers of the last buffer know of a name', function()
    local nvim, dir = neovim.start(), vim.fn.resolve(neovim.dir())
    vim.fn.writefile({ 'def area(x):', '    return x' }, dir .. '/shape.py')
    vim.fn.writefile({ 'from shape import area', 'print(area(2))' }, dir .. '/main.py')
    nvim:lua(
      [[
        local root, dir = ...
        vim.fn.chdir(dir)
        vim.cmd('edit main.py')
        local function at(name, line)
          local uri = vim.uri_from_fname(dir .. '/' .. name)
          local place = { line = line, character = 0 }
          return { uri = uri, range = { start = place, ['end'] = place } }
        end
        dofile(root .. '/tests/lua/language_server.lua')({
          definitionProvider = true,
          referencesProvider = true,
          workspaceSymbolProvider = true,
        }, {
          ['textDocument/definition'] = function(params, callback)
            callback(nil, params.position.line == 0 and at('shape.py', 0) or nil)
          end,
          ['textDocument/references'] = function(_, callback)
            callback(nil, { at('main.py', 0), at('main.py', 1) })
          end,
          ['workspace/symbol'] = function(params, callback)
            local symbols = {
              { name = 'Shape', kind = 5, location = at('shape.py', 1) },
              { name = 'Shapes', kind = 5, location = at('main.py', 1) },
            }
            callback(nil, ({ Shape = symbols })[params.query] or {})
          end,
        })
      ]],
      co_root,
      dir
    )
    nvim:wait('return #vim.lsp.get_clients({ bufnr = 0 }) == 1')
    local before = nvim:lua('return #vim.api.nvim_list_bufs()')
    -- The backend reads the lines.
    nvim:lua([[
      _G.read_context = function(query)
        _G.query = query
        return { text = 'lines', note = 'a note' }
      end
    ]])
    ---@param rows [string, integer][]
    local function places(rows)
      return vim.tbl_map(function(row)
        return { file = dir .. '/' .. row[1], row = row[2], character = 0, unit = 'utf-16' }
      end, rows)
    end
    local function query(definitions, references)
      same({
        kind = 'places',
        definitions = places(definitions),
        references = places(references),
        more = 0,
      }, nvim:lua('return _G.query'))
    end
    same({ { name = '@lsp:area (a note)', text = 'lines' } }, gather(nvim, 'what is @lsp:area?'))
    query({ { 'shape.py', 0 } }, { { 'main.py', 0 }, { 'main.py', 1 } })
    same({ { name = '@lsp:Shape (a note)', text = 'lines' } }, gather(nvim, '@lsp:Shape'))
    query({ { 'shape.py', 1 } }, {})
    same(before, nvim:lua('return #vim.api.nvim_list_bufs()'))
    same({}, gather(nvim, '@lsp:none'))
    nvim:wait("return _G.notices[1]:find('@lsp:none (no language server knows the name)', 1, true)")
  end)
end)
