local messages = require('messages')
local neovim = require('neovim')
local append, block, patch = messages.append, messages.block, messages.patch

-- The cases follow from the seed.
local SEED = math.floor(tonumber(vim.env.CO_TEST_SEED) or 7)
local CASES = math.max(25, math.floor((tonumber(vim.env.CO_TEST_CASES) or 0) / 8))

-- Parses the whole buffer after a change, as plugins that render markdown do.
local RENDERER = [[
  vim.api.nvim_create_autocmd('FileType', {
    pattern = { 'co-chat', 'co-prompt' },
    callback = function(attached)
      vim.treesitter.start(attached.buf, 'markdown')
      vim.api.nvim_create_autocmd({ 'TextChanged', 'WinScrolled' }, {
        buffer = attached.buf,
        callback = function(event)
          if vim.bo[event.buf].filetype == 'co-prompt' then
            return
          end
          vim.treesitter.start(event.buf, 'markdown')
          vim.treesitter.get_parser(event.buf, 'markdown'):parse(true, function() end)
        end,
      })
    end,
  })
]]

--- Returns an editor with a chat.
---@param before? string Lua code to run before the chat opens
---@return co.test.Neovim
local function editor(before)
  local nvim = neovim.start({ screen = true })
  nvim:lua(before or '')
  nvim:enter_chat()
  nvim:lua("_G.chat = require('co.chat.registry').current()")
  return nvim
end

--- Returns a text again and again, so many bytes long.
---@param unit string
---@param size number
---@return string
local function long(unit, size)
  return unit:rep(math.floor(size / #unit))
end

--- Waits until no highlights wait. They are made in short steps.
---@param nvim co.test.Neovim
local function wait_highlights(nvim)
  nvim:wait([[
    local markdown = chat.text.markdown
    return not markdown.work and not markdown.due and not markdown.busy and #markdown.rest == 0
  ]])
end

---@param nvim co.test.Neovim
---@return string
local function text_of(nvim)
  return table.concat(nvim:lines('co://chat/1'), '\n')
end

--- Checks that nothing blocks Neovim while `act` runs.
---@param nvim co.test.Neovim
---@param what string
---@param act fun()
local function unblocked(nvim, what, act)
  nvim:assert_quick(what, function()
    act()
    wait_highlights(nvim)
  end)
end

--- Sends a text in pieces, as an answer comes, and resumes a chat with it.
---@param nvim co.test.Neovim
---@param text string
---@param size integer
local function answer(nvim, text, size)
  for from = 1, #text, size do
    nvim:receive(append(text:sub(from, from + size - 1)))
  end
  nvim:receive(append('\n\nThe end.\n'))
  nvim:wait_line('co://chat/1', 'The end.')
end

---@param nvim co.test.Neovim
---@param text string
local function resume(nvim, text)
  nvim:receive({ type = 'replace', chat = 1, text = text, above = 0 })
  nvim:receive(append('\n\nAfter it.\n'))
  nvim:wait_line('co://chat/1', 'After it.')
end

describe('a hostile text in a chat', function()
  for _, marker in ipairs({ '- ', '* ', '+ ', '> ', '>', '1. ', '1) ', '> - 1. ', '-\t', '>\t- ' }) do
    it(('has 260 nested markers %q'):format(marker), function()
      local nvim = editor(RENDERER)
      local nested = marker:rep(260)
      answer(nvim, nested, 7)
      answer(nvim, nested .. 'x\n' .. nested, #nested)
      wait_highlights(nvim)
      resume(nvim, nested .. '\n\n' .. nested)
      nvim:receive(
        block(1, patch(0, { 'x', '`````', nested .. 'x' }), false),
        block(1, nil, true),
        messages.state('idle')
      )
      nvim:keys('<Esc>')
      wait_highlights(nvim)
      local shown = nvim:lines('co://chat/1')[1]:gsub('\\', '')
      same(nested, shown)
    end)
  end

  it('nests deeper with each line', function()
    local nvim = editor(RENDERER)
    local lines = {}
    for depth = 0, 300 do
      lines[#lines + 1] = (' '):rep(depth * 2) .. '- x'
      lines[#lines + 1] = ('>'):rep(depth) .. ' x'
    end
    answer(nvim, table.concat(lines, '\n'), 100)
    resume(nvim, table.concat(lines, '\r'))
    wait_highlights(nvim)
  end)

  it('is nested where the person writes', function()
    local nvim = editor(RENDERER)
    nvim:lua([[
      vim.fn.setreg('a', ('> '):rep(300) .. 'x\nmore\n')
      vim.fn.setreg('b', ('- '):rep(300))
    ]])
    local active = 'return vim.treesitter.highlighter.active[vim.api.nvim_get_current_buf()] ~= nil'
    nvim:wait(active)
    nvim:keys('<Esc>"apG')
    nvim:wait('return vim.api.nvim_buf_line_count(0) == 3')
    nvim:lua('vim.cmd.redraw()')
    nvim:keys('G"bp')
    nvim:wait("return vim.fn.getline('.'):find('- - - ', 1, true)")
    nvim:lua('vim.cmd.redraw()')
    same(false, nvim:lua(active))
    nvim:keys(':%d<CR>i# One<Esc>')
    nvim:wait(active)
  end)

  it('has a code block that takes its parser minutes', function()
    for _, case in ipairs({ { 'lua', '{' }, { 'lua', '[' }, { 'c', '<!-- ' }, { 'c', 'a ' } }) do
      local nvim = editor()
      local language, code = unpack(case)
      local text = ('\n```%s\n%s\n```\n'):format(language, long(code, 1e5))
      unblocked(nvim, language .. code, function()
        answer(nvim, text, 5000)
      end)
      same(nil, text_of(nvim):match('```' .. language), language .. code)
      nvim:stop()
    end
  end)

  it('has a short code block that takes its parser seconds', function()
    local nvim = editor()
    unblocked(nvim, 'a list', function()
      answer(nvim, '\n- one\n  ```c\n  ' .. ('<!-- '):rep(3000) .. '\n  ```\n', 500)
    end)
    unblocked(nvim, 'a block', function()
      resume(nvim, '\n```c\n' .. ('<!-- '):rep(3000) .. '\n```\n')
    end)
    -- In 0.10, which cannot interrupt a parser, co does not parse it.
    yes(vim.fn.has('nvim-0.11') == 0 or not text_of(nvim):find('```c', 1, true))
  end)

  it('has a code block that is short enough to be parsed, but blocks queries', function()
    local nvim = editor()
    local cases = { c = { '!', '&', '{', 'x(', '(a)', '<!-- ' }, lua = { '"', '{}', '(', "'a" } }
    for language, units in pairs(cases) do
      for _, unit in ipairs(units) do
        -- Most of them never end.
        local text = ('\n```%s\n%s'):format(language, long(unit, 15800))
        unblocked(nvim, ('%s %s'):format(language, unit), function()
          nvim:receive({ type = 'replace', chat = 1, text = text, above = 0 })
        end)
        unblocked(nvim, ('%s %s, live'):format(language, unit), function()
          nvim:receive({ type = 'replace', chat = 1, text = '', above = 0 })
          answer(nvim, text, 4000)
        end)
      end
    end
  end)

  it('keeps the languages of long code blocks from parsers that other plugins start', function()
    local nvim = editor(RENDERER)
    answer(nvim, '\n> ```lua\n' .. ('> ' .. ('{'):rep(99) .. '\n'):rep(1000), 5000)
    same(nil, text_of(nvim):match('```lua'))
    -- A line that ends no block.
    local cheat = ('{'):rep(990) .. '\n    ```\n```x\n~~~\n'
    answer(nvim, '\n~~~~lua\n' .. cheat:rep(50) .. '~~~~\n', 5000)
    same(nil, text_of(nvim):match('~~~lua'))
    -- One that was open when the buffer was loaded again.
    answer(nvim, '\n```lua\n' .. ('{'):rep(99), 5000)
    nvim:lua("vim.api.nvim_buf_call(chat.buf, function() vim.cmd('edit') end)")
    nvim:wait('return #vim.api.nvim_buf_get_lines(chat.buf, 0, -1, false) > 9')
    answer(nvim, (('{'):rep(99) .. '\n'):rep(1000), 5000)
    same(nil, text_of(nvim):match('```lua'))
    -- Its end was shown before its beginning.
    nvim:receive({ type = 'replace', chat = 1, text = ('{'):rep(999), above = 9 + 99000 })
    nvim:receive({ type = 'earlier', chat = 1, text = '\n```lua\n' .. ('{'):rep(99000), above = 1 })
    nvim:wait('return chat.text.above == 1')
    same(nil, text_of(nvim):match('```lua'))
  end)

  it('keeps the languages of usual code blocks', function()
    local nvim = editor()
    local list = '1. Do this:\n   ```sh\n   make\n   ```\n\n- ```lua\n  x = 1\n\n'
    local code = '```lua\n' .. ('local x = 1\n'):rep(900) .. '```\n\n'
    local words = ('Some words of an answer.\n\n'):rep(1000)
    local text = '\n' .. list .. code .. words .. list .. code .. words
    answer(nvim, text, 900)
    same(text .. '\n\nThe end.\n', text_of(nvim))
    resume(nvim, text)
    same(text .. '\n\nAfter it.\n', text_of(nvim))
  end)

  it('has many lines', function()
    local nvim = editor()
    local fences = ('```' .. (' '):rep(3900) .. '\n'):rep(16)
    for _, text in ipairs({ ('\n'):rep(65536), ('a\n'):rep(32768), fences }) do
      unblocked(nvim, text:sub(1, 9), function()
        answer(nvim, text, #text)
        resume(nvim, text)
      end)
    end
  end)

  it('has no line break', function()
    local nvim = editor()
    for _, word in ipairs({ 'word ', 'é', '`', '![*' }) do
      unblocked(nvim, word, function()
        answer(nvim, long(word, 4e5), 60000)
        resume(nvim, long(word, 6e4))
      end)
      for _, line in ipairs(nvim:lines('co://chat/1')) do
        -- With the backslashes.
        yes(#line <= 6000, tostring(#line))
        same(nil, line:match('^[\128-\191]'))
      end
    end
  end)

  it('keeps its messages and folds in their rows if lines are cut', function()
    local nvim = editor()
    local long = ('word '):rep(2000)
    nvim:receive({
      type = 'replace',
      chat = 1,
      text = '## You\n\rx' .. long .. '\n## Co\n' .. long .. '\nx\n\n## You\nhi\n',
      messages = messages.begun(0, 2, 6),
      folds = { { 3, 4 } },
      above = 0,
    })
    nvim:wait_line('co://chat/1', 'hi')
    local lines = nvim:lines('co://chat/1')
    local rows = nvim:lua('return chat.text.messages:between()')
    same(
      { '## You', '## Co', '## You' },
      vim.tbl_map(function(row)
        return lines[row.row + 1]
      end, rows)
    )
    local fold = nvim:lua([[
      local win = vim.fn.win_findbuf(chat.buf)[1]
      return vim.api.nvim_win_call(win, function()
        local row = chat.text.messages:between()[2].row + 2
        return { vim.fn.foldclosed(row), vim.fn.foldclosedend(row), row }
      end)
    ]])
    same(fold[3], fold[1])
    same('x', lines[fold[2]])
  end)
end)

local MARKERS =
  { '- ', '* ', '+ ', '> ', '>', '1. ', '23) ', '\t', '    ', '  ', '   > ', '- [ ] ' }
local SIGNS = {
  '*',
  '**',
  '_',
  '__',
  '~~',
  '`',
  '``',
  '[',
  ']',
  '(',
  ')',
  '![',
  '](',
  '<',
  '>',
  '!',
  '\\',
  '$',
  '$$',
  '&',
  '&amp;',
  '"',
  "'",
  '|',
  ':',
  '^',
  '#',
  '{',
  '}',
  '<!--',
  '-->',
  '<div>',
  '<?',
  '<![CDATA[',
  '[a]: b "',
  '[^1]',
  'https://a.b',
  'word',
  'é',
  '日本',
  ' ',
  '  ',
  '\t',
  '\r',
  '\0',
  '---',
  '===',
  '***',
  '|-|-|',
  '+++',
  '\226\128\139',
} -- stylua: ignore
local FENCES = { '```', '~~~', '````', '``````' }
local LANGUAGES = { 'lua', 'c', 'vim', 'vimdoc', 'query', 'markdown', 'markdown_inline', '', 'x' }
local CODE = {
  '{',
  '}',
  '(',
  '[',
  '[[',
  '"',
  "'",
  '\\',
  '/*',
  '#if ',
  'if ',
  'do ',
  'function(',
  'a=',
  'a ',
  '<!-- ',
  '!',
  '|',
  '*x',
  ';',
  '\n',
  '\n',
  '=',
  ':',
  '@',
  '~',
  '`',
  '--',
  '/',
  '.',
  '0',
  '<',
  '>',
} -- stylua: ignore

---@generic T
---@param list T[]
---@return T
local function any(list)
  return list[math.random(#list)]
end

--- Returns a few of the words of a list, again and again: repetition costs parsers most.
---@param list string[]
---@param size integer
---@return string
local function repeated(list, size)
  local words = {}
  for index = 1, math.random(4) do
    words[index] = any(list)
  end
  local unit = table.concat(words)
  return unit:rep(math.ceil(size / #unit))
end

---@type (fun(size: integer): string)[]
local KINDS = {
  function(size)
    return repeated(MARKERS, math.min(size, 2000)) .. any({ '', 'x', '```lua' })
  end,
  function(size)
    return repeated(SIGNS, size)
  end,
  function(size)
    return any({ '', '> ', '- ', '   ' })
      .. any(FENCES)
      .. any(LANGUAGES)
      .. '\n'
      .. repeated(CODE, size)
  end,
  function(size)
    local lines = {}
    for index = 1, math.min(size / 20, 400) do
      lines[index] = (' '):rep(index * math.random(0, 3)) .. any(MARKERS) .. any(SIGNS)
    end
    return table.concat(lines, '\n')
  end,
  function(size)
    local words = {}
    for index = 1, size / 3 do
      words[index] = any(math.random(9) == 1 and MARKERS or SIGNS)
    end
    return table.concat(words)
  end,
  function(size)
    return repeated(
      { any(MARKERS) .. any(SIGNS) .. '\n', any(SIGNS) .. '\n', '\n', any(FENCES) .. '\n' },
      size
    )
  end,
}

---@return string
local function hostile()
  local parts = {}
  for index = 1, math.random(4) do
    parts[index] = any(KINDS)(math.floor(2 ^ math.random(5, 14)))
  end
  return table.concat(parts, any({ '', '\n', '\n\n' }))
end

describe('generated texts in a chat', function()
  it('neither end nor block Neovim', function()
    math.randomseed(SEED)
    local nvim = editor()
    for case = 1, CASES do
      local text = hostile()
      local seen = ('case %d of seed %d: %q'):format(case, SEED, text:sub(1, 200))
      local ok, problem = pcall(unblocked, nvim, seen, function()
        nvim:receive({ type = 'replace', chat = 1, text = '', above = 0 })
        answer(nvim, text, math.random(4000))
        nvim:receive(block(case, patch(0, vim.split(text, '\n')), true))
        resume(nvim, text .. text)
      end)
      if not ok then
        error(('%s\n%s'):format(seen, problem), 0)
      end
    end
  end)

  it('do not end it if other plugins parse the chat', function()
    math.randomseed(SEED)
    local nvim = editor(RENDERER)
    for case = 1, CASES do
      local text = hostile()
      local seen = ('case %d of seed %d: %q'):format(case, SEED, text:sub(1, 200))
      local ok, problem = pcall(function()
        nvim:receive({ type = 'replace', chat = 1, text = '', above = 0 })
        answer(nvim, text, math.random(4000))
        resume(nvim, text)
        nvim:receive(messages.state('idle'))
        nvim:lua('vim.treesitter.start(chat.buf, "markdown") vim.cmd.redraw()')
      end)
      if not ok then
        error(('%s\n%s'):format(seen, problem), 0)
      end
    end
  end)
end)
