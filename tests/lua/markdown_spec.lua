local messages = require('messages')
local neovim = require('neovim')
local append, block, call, patch = messages.append, messages.block, messages.call, messages.patch

local ANSWER = [[
## You

why does `load` fail?

---

## Co

### What happens

A **long** line with `code`, *stress* and [a link](https://example.org/a_b), which
goes on in the next one.

- one `item`
- another
  in two lines

  with a paragraph, and
  ```lua
  local inside = 'a list'
  ```

1. first
2. second

```lua
local function load(path) -- why
  return { path }
end
```
No line between.

````
# not a heading, `nor` code
````

```nosuchlanguage
**x**
```

| a | b |
|---|---|
| `c` | 2 |

> quoted *text*

Title
=====

    indented code

* * *
<b>done</b>
]]

--- The groups on each byte of the text of a chat, as they are and as treesitter has them for the whole.
local GROUPS = [[
  local api = vim.api
  local buf = vim.fn.bufnr('^co://chat/1$')
  local lines = api.nvim_buf_get_lines(buf, 0, -2, false)
  local function grid()
    local made = {}
    for row, line in ipairs(lines) do
      made[row] = {}
      for column = 1, #line do
        made[row][column] = {}
      end
    end
    return made
  end
  local function put(into, from_row, from_column, to_row, to_column, group)
    for row = from_row, math.min(to_row, #lines - 1) do
      local first = row == from_row and from_column or 0
      local last = row == to_row and to_column or #lines[row + 1]
      for column = first + 1, math.min(last, #lines[row + 1]) do
        into[row + 1][column][group] = true
      end
    end
  end
  local is, should = grid(), grid()
  local namespace = api.nvim_get_namespaces()['co.markdown']
  for _, mark in ipairs(api.nvim_buf_get_extmarks(buf, namespace, 0, -1, { details = true })) do
    if mark[4].hl_group then
      put(is, mark[2], mark[3], mark[4].end_row, mark[4].end_col, mark[4].hl_group)
    end
  end
  local text = table.concat(lines, '\n') .. '\n'
  local parser = vim.treesitter.get_string_parser(text, 'markdown')
  parser:parse(true)
  parser:for_each_tree(function(tree, of)
    local query = vim.treesitter.query.get(of:lang(), 'highlights')
    for id, node, metadata in query:iter_captures(tree:root(), text, 0, -1) do
      local name = query.captures[id]
      if not (vim.startswith(name, '_') or name == 'spell' or name == 'nospell') then
        local range = vim.treesitter.get_range(node, text, metadata[id])
        put(should, range[1], range[2], range[4], range[5], '@' .. name .. '.' .. of:lang())
      end
    end
  end)
  for row, line in ipairs(lines) do
    for column = 1, #line do
      if not vim.deep_equal(is[row][column], should[row][column]) then
        return { row = row, column = column, line = line,
          is = vim.tbl_keys(is[row][column]), should = vim.tbl_keys(should[row][column]) }
      end
    end
  end
  return #lines
]]

local function chat()
  local nvim = neovim.start()
  nvim:lua("vim.cmd('Co') vim.cmd('wincmd k')")
  return nvim
end

--- Waits until the colours are those of the whole text.
local function wait_colours(nvim, lines)
  local last
  neovim.wait(function()
    return 'the colours of the whole text: ' .. vim.inspect(last)
  end, function()
    last = nvim:lua(GROUPS)
    return last == lines
  end)
end

--- The groups at the first byte of a text.
local AT = [[
  local at = vim.fn.searchpos(..., 'nw')
  local found = {}
  local namespace = vim.api.nvim_get_namespaces()['co.markdown']
  local here = { at[1] - 1, at[2] - 1 }
  local details = { details = true, overlap = true }
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, namespace, here, here, details)) do
    found[#found + 1] = mark[4].hl_group
  end
  return found
]]

describe('the colours of a chat', function()
  it('are those of the whole text, in whatever pieces it came', function()
    for _, size in ipairs({ 1, 7, 100000 }) do
      local nvim = chat()
      for from = 1, #ANSWER, size do
        nvim:lua('receive({ ... })', append(ANSWER:sub(from, from + size - 1)))
      end
      wait_colours(nvim, #vim.split(ANSWER, '\n') - 1)
    end
  end)

  it('reach up to the first line of a long one, and follow a text that replaces it', function()
    local nvim = chat()
    nvim:receive(append(ANSWER:rep(20)))
    -- Comparing takes the time that the colours need.
    nvim:wait('return #(function(...) ' .. AT .. ' end)(...) > 0', [[\%^## You]])
    wait_colours(nvim, (#vim.split(ANSWER, '\n') - 1) * 20)
    nvim:receive({ type = 'replace', chat = 1, text = ANSWER })
    wait_colours(nvim, #vim.split(ANSWER, '\n') - 1)
  end)

  it('are of one kind in output, however it grows and whatever it looks like', function()
    local nvim = chat()
    nvim:receive(append('Before `it`.\n'), call(1, 'ls *a*', { block = 1 }))
    nvim:receive(block(1, patch(0, { '# first' }), false))
    nvim:wait('return #(function(...) ' .. AT .. ' end)(...) > 0', '`it')
    nvim:receive(block(1, patch(1, { '# second', '`````', 'x' }), true), append('## After\n'))
    nvim:wait('return #(function(...) ' .. AT .. ' end)(...) > 0', '## After')
    same({}, nvim:lua(AT, '# first'))
    same({}, nvim:lua(AT, '# second'))
    same({}, nvim:lua(AT, '*a'))
    yes(vim.tbl_contains(nvim:lua(AT, '## After'), '@markup.heading.2.markdown'))
  end)

  it('are on the prompt that is being written', function()
    local nvim = neovim.start({ screen = true })
    nvim:lua("vim.cmd('Co')")
    nvim:keys('ia `word`')
    nvim:wait([[
      local captures = vim.treesitter.get_captures_at_pos(0, 0, 4)
      return vim.iter(captures):any(function(capture) return capture.capture == 'markup.raw' end)
    ]])
  end)

  it('need no treesitter of the whole, nor does one come by itself', function()
    local nvim = neovim.start()
    nvim:lua([[vim.api.nvim_create_autocmd('FileType', { callback = function()
      pcall(vim.treesitter.start)
    end })]])
    nvim:lua("vim.cmd('Co')")
    nvim:lua('receive({ ... })', append(ANSWER))
    wait_colours(nvim, #vim.split(ANSWER, '\n') - 1)
    local buf = nvim:lua("return vim.fn.bufnr('^co://chat/1$')")
    same(vim.NIL, nvim:lua('return vim.treesitter.highlighter.active[...]', buf))
  end)
end)

describe('what stands by itself in markdown', function()
  --- The first lines of the pieces.
  local function firsts(lines)
    return vim.tbl_map(function(piece)
      return piece.first
    end, require('co.chat.markdown').pieces(lines))
  end

  it('begins after an empty line, at a fence and after it', function()
    for _, case in ipairs({
      { { 'a', 'b', '', 'c' }, { 1, 4 } },
      { { '- a', '', '  b', '', '- c' }, { 1, 5 } },
      { { 'a', '```lua', '', 'x', '```', 'b' }, { 1, 2, 6 } },
      { { '```lua', 'x', '```', '', 'b' }, { 1, 4, 5 } },
      { { '- a', '  ```', '', 'x', '  ```', '  b' }, { 1 } },
      { { '````', '```', '', '````' }, { 1 } },
      { { 'a ```', '', 'b' }, { 1, 3 } },
      { {}, {} },
    }) do
      same(case[2], firsts(case[1]), vim.inspect(case[1]))
    end
  end)

  it('has an end, even where the text has none', function()
    local lines = {}
    for index = 1, 1000 do
      lines[index] = 'a line'
    end
    yes(#firsts(lines) >= 5)
    table.insert(lines, 1, '```lua')
    local pieces = require('co.chat.markdown').pieces(lines)
    same(1, #pieces)
    yes(pieces[1].raw)
  end)
end)
