-- The text of a resumed chat comes in parts, from its end.

local messages = require('messages')
local neovim = require('neovim')

local CHAT = 'co://chat/1'
local PROMPT = 'co://chat/1/prompt'
local FOLD = { type = 'fold_answer', chat = 1 }
local BEGINS = { type = 'answer_begins', chat = 1 }

--- Returns numbered lines as a text that ends with a line break.
---@param first integer
---@param last integer
---@return string
local function numbered(first, last)
  local lines = {}
  for number = first, last do
    lines[#lines + 1] = 'line ' .. number .. '\n'
  end
  return table.concat(lines)
end

--- The end of a chat of 300 lines, and the two parts above it.
local PARTS = { numbered(201, 299) .. 'line 300', numbered(101, 200), numbered(1, 100) }
local LEFT = { #PARTS[3] + #PARTS[2], #PARTS[3], 0 }

---@param number integer
---@param fields? table
---@return table
local function part(number, fields)
  return vim.tbl_extend('force', {
    type = number == 1 and 'replace' or 'earlier',
    chat = 1,
    text = PARTS[number],
    above = LEFT[number],
  }, fields or {})
end

--- Starts an editor that shows the end of the chat, with the cursor in its prompt.
---@param fields? table of the end
---@return co.test.Neovim
local function chat(fields)
  local nvim = neovim.chat({ screen = true })
  nvim:receive(part(1, fields))
  nvim:wait_line(CHAT, 'line 300')
  return nvim
end

--- Sends the parts above the end, each as it is asked for.
---@param nvim co.test.Neovim
---@param fields? table[] of the two parts
local function send_rest(nvim, fields)
  for number = 2, 3 do
    local asked = nvim:wait_sent(number - 1, 'earlier_text')
    same({ 1, LEFT[number - 1] }, { asked.chat, asked.above })
    nvim:receive(part(number, fields and fields[number - 1]))
  end
  nvim:wait_line(CHAT, 'line 1\n')
end

---@param nvim co.test.Neovim
---@param more? string[] lines below
local function check_text(nvim, more)
  local text = table.concat(PARTS, '', 3, 3) .. PARTS[2] .. PARTS[1]
  local lines = vim.split(text, '\n')
  same(vim.list_extend(lines, more or {}), nvim:lines(CHAT))
end

--- The text in the first row and in that of the cursor, of each window that shows the chat.
local VIEWS = [[
  local views = {}
  for _, win in ipairs(vim.fn.win_findbuf(vim.fn.bufnr('^co://chat/1$'))) do
    vim.api.nvim_win_call(win, function()
      views[#views + 1] = { vim.fn.getline('w0'), vim.fn.getline('.'), vim.fn.col('.') }
    end)
  end
  return views
]]

describe('a long chat that is resumed', function()
  it('shows its end first, asks for the text above it, and says how much is missing', function()
    local nvim = chat()
    nvim:keys('<C-w>kgg')
    nvim:wait_screen(' of earlier text are loading')
    send_rest(nvim)
    check_text(nvim)
    nvim:wait_gone('earlier text')
    nvim:lua('vim.wait(50)')
    same(2, #nvim:sent('earlier_text'))
  end)

  it('keeps the view and the cursor of each window, wherever they are', function()
    for _, keys in ipairs({ '<C-w>kgg', '<C-w>k50Gzt3l', '<C-w>k', '' }) do
      local nvim = chat()
      nvim:keys(keys)
      -- Another window, and another tab page.
      nvim:lua([[
        local buf = vim.fn.bufnr('^co://chat/1$')
        vim.cmd('tab sbuffer ' .. buf)
        vim.cmd('normal! 30Gzt')
        vim.cmd('tabprevious')
      ]])
      nvim:lua('vim.cmd.redraw()')
      local before = nvim:lua(VIEWS)
      same(2, #before)
      send_rest(nvim)
      nvim:lua('vim.cmd.redraw()')
      same(before, nvim:lua(VIEWS))
    end
  end)

  it('waits for a selection, an operator and the command line', function()
    for _, keys in ipairs({ 'Vj', 'y', '/line 2' }) do
      local nvim = chat()
      nvim:keys('<C-w>k50Gzt' .. keys)
      nvim:wait("return vim.fn.mode(1):match('^[Vnc]o?$') and vim.fn.mode(1) ~= 'n'")
      nvim:wait_sent(1, 'earlier_text')
      nvim:receive(part(2), messages.append('\nmore'))
      nvim:wait_line(CHAT, 'more')
      same('line 201', nvim:lines(CHAT)[1])
      nvim:keys(keys == 'Vj' and 'y' or keys == 'y' and 'y' or '<CR>')
      nvim:wait_sent(2, 'earlier_text')
      nvim:receive(part(3))
      nvim:wait_line(CHAT, 'line 1\n')
      if keys ~= '/line 2' then
        local yanked = keys == 'y' and 'line 250\n' or 'line 250\nline 251\n'
        same(yanked, nvim:lua("return vim.fn.getreg('\"')"))
      end
      check_text(nvim, { 'more' })
    end
  end)

  it('waits while text is locked', function()
    local nvim = chat()
    nvim:lua([[
      _G.tries = 0
      local function count(module, name)
        local act = module[name]
        module[name] = function(...)
          _G.tries = _G.tries + 1
          -- An error would wait for a key.
          pcall(act, ...)
        end
      end
      count(require('co.chat.earlier_text'), 'receive')
      count(require('co.ui.textlock'), 'when_unlocked')
      vim.keymap.set({ 'n', 'x' }, '<F3>', function()
        _G.waits = true
        vim.fn.getcharstr()
        return ''
      end, { expr = true })
    ]])
    local function wait_try()
      nvim:wait('return _G.tries > ...', nvim:lua('return _G.tries'))
    end
    nvim:keys('<C-w>kV')
    nvim:wait_mode('V')
    nvim:wait_sent(1, 'earlier_text')
    nvim:receive(part(2))
    wait_try()
    nvim:keys('<Esc><F3>')
    nvim:wait('return _G.waits')
    wait_try()
    nvim:keys('x')
    nvim:wait_sent(2, 'earlier_text')
    nvim:receive(part(3))
    nvim:wait_line(CHAT, 'line 1\n')
    check_text(nvim)
  end)

  it('comes while the window of command lines is open', function()
    for _, keys in ipairs({ ':<C-f>', '<C-w>k:<C-f>' }) do
      local nvim = chat()
      nvim:keys(keys)
      nvim:wait("return vim.fn.getcmdwintype() == ':'")
      send_rest(nvim)
      check_text(nvim)
    end
  end)

  it('keeps a prompt that is typed meanwhile, with its undo', function()
    local nvim = chat()
    nvim:keys('ifirst')
    nvim:wait_sent(1, 'earlier_text')
    nvim:receive(part(2))
    nvim:wait_sent(2, 'earlier_text')
    nvim:keys(' second<Esc>o third')
    nvim:receive(part(3))
    nvim:wait_line(CHAT, 'line 1\n')
    nvim:keys('<Esc>')
    nvim:wait_mode('n')
    same({ 'first second', ' third' }, nvim:lines(PROMPT))
    nvim:keys('u')
    nvim:wait("return vim.fn.line('$') == 1")
    same({ 'first second' }, nvim:lines(PROMPT))
    nvim:keys('u')
    nvim:wait("return vim.fn.getline(1) == ''")
    check_text(nvim)
  end)

  it('takes a new answer below, in order, and follows it', function()
    local nvim = chat()
    nvim:wait_sent(1, 'earlier_text')
    nvim:receive(messages.append('\n\n## You\n\nmore\n\n'), part(2), messages.append('## Co\n\n'))
    nvim:wait_sent(2, 'earlier_text')
    nvim:receive(BEGINS, messages.append('One'), part(3), messages.append(' word.'))
    nvim:wait_line(CHAT, 'One word.')
    check_text(nvim, { '', '## You', '', 'more', '', '## Co', '', 'One word.' })
    nvim:wait_screen('One word.')
    nvim:receive(messages.append('\n\n'), FOLD)
    nvim:keys('<C-w>k')
    nvim:wait('return vim.fn.foldclosed(308) == 308 and vim.fn.foldclosed(307) == -1')
  end)

  it('knows messages and folds of all parts', function()
    local nvim = chat({ messages = messages.begun(0, 10), folds = { { 0, 3 } } })
    send_rest(nvim, {
      { messages = messages.begun(0, 99), folds = { { 90, 99 }, { 50, 110 } } },
      { messages = messages.begun(7), folds = {} },
    })
    nvim:keys('<C-w>kG')
    for _, row in ipairs({ 211, 201, 200, 101, 8 }) do
      nvim:keys('[[')
      nvim:wait("return vim.fn.line('.') == ...", row)
    end
    local function folds()
      return nvim:lua([[
        return vim.tbl_map(function(line)
          return { vim.fn.foldclosed(line), vim.fn.foldclosedend(line) }
        end, { 150, 151, 204, 211, 212 })
      ]])
    end
    local expected = { { -1, -1 }, { 151, 211 }, { 151, 211 }, { 151, 211 }, { -1, -1 } }
    same(expected, folds())
    -- So they are in a window that shows the chat later.
    nvim:keys('q')
    nvim:wait("return vim.bo.filetype ~= 'co-chat'")
    nvim:lua("vim.cmd('Co') vim.cmd('wincmd k')")
    same(expected, folds())
  end)

  it('knows the calls of all parts', function()
    local function calls(...)
      return vim.tbl_map(function(row)
        local shown = messages.call(1, 'ls', { state = 'done', kept = 1 })
        shown.type, shown.chat, shown.call = nil, nil, nil
        shown.row, shown.output, shown.skipped = row, 1, 0
        return shown
      end, { ... })
    end
    local nvim = chat({ calls = calls(0, 10) })
    send_rest(nvim, { { calls = calls(0, 50) }, { calls = calls(7) } })
    nvim:receive(messages.append('\n'), messages.call(9, 'ls'))
    nvim:wait_line(CHAT, '~ ls')
    nvim:keys('<C-w>kG')
    for _, line in ipairs({ 301, 211, 201, 151, 101, 8 }) do
      nvim:keys('[c')
      nvim:wait("return vim.fn.line('.') == ...", line)
    end
    -- The output of a call belongs to it, the line below does not.
    local found = [[
      local text = require('co.chat.registry').get(1).text
      return vim.tbl_map(function(line)
        local call = text:call_at(line - 1)
        return call and call:row() + 1 or 0
      end, { ... })
    ]]
    same({ 0, 8, 8, 0, 211, 211, 0 }, nvim:lua(found, 7, 8, 9, 10, 211, 212, 213))
  end)

  it('folds an answer that begins in text that has not come', function()
    local nvim = chat()
    nvim:wait_sent(1, 'earlier_text')
    local again = messages.append('> asked again\n\n')
    nvim:receive(messages.append('\n\n'), FOLD, again, BEGINS, messages.append('Two.'))
    nvim:wait_line(CHAT, 'Two.')
    send_rest(nvim, { { answer = 89 }, {} })
    nvim:keys('<C-w>k')
    nvim:wait('return vim.fn.foldclosed(190) == 190 and vim.fn.foldclosedend(190) == 300')
    nvim:receive(messages.append('\n\n'), FOLD)
    nvim:wait('return vim.fn.foldclosed(304) == 304')
  end)

  it('folds an answer that came whole', function()
    local nvim = chat()
    send_rest(nvim, { {}, { answer = 89 } })
    nvim:receive(messages.append('\n\n'), FOLD, messages.append('> asked again\n\n'))
    nvim:keys('<C-w>k')
    nvim:wait('return vim.fn.foldclosed(90) == 90 and vim.fn.foldclosedend(90) == 300')
  end)

  it('puts the end of a long line before its rest', function()
    local nvim = neovim.chat()
    nvim:receive({ type = 'replace', chat = 1, text = 'c\nend', above = 6 })
    nvim:receive({ type = 'earlier', chat = 1, text = 'bb', above = 4 })
    nvim:receive({
      type = 'earlier',
      chat = 1,
      text = 'a\n\na',
      above = 0,
      messages = messages.begun(0),
    })
    nvim:wait_line(CHAT, 'abbc')
    same({ 'a', '', 'abbc', 'end' }, nvim:lines(CHAT))
  end)

  it('takes no part of a text that was replaced', function()
    local nvim = chat()
    nvim:keys('<C-w>kVj')
    nvim:wait_mode('V')
    nvim:wait_sent(1, 'earlier_text')
    nvim:receive(part(2), { type = 'replace', chat = 1, text = 'other' })
    nvim:wait_line(CHAT, 'other')
    nvim:keys('<Esc>')
    nvim:wait_mode('n')
    nvim:receive(part(2))
    nvim:lua('vim.wait(100)')
    same({ 'other' }, nvim:lines(CHAT))
  end)

  it('says that the rest comes later if the backend ended while a part waited', function()
    local nvim = chat()
    nvim:keys('<C-w>kgg')
    nvim:keys_to('V', 'V')
    nvim:wait_sent(1, 'earlier_text')
    nvim:receive(part(2))
    nvim:lua("require('co.backend').send_if_running = function() return false end")
    nvim:keys_to('<Esc>', 'n')
    nvim:wait_line(CHAT, 'line 101')
    nvim:keys('gg')
    nvim:wait_screen('come with the next prompt')
  end)

  it('asks for nothing if the chat is closed', function()
    local nvim = chat()
    nvim:wait_sent(1, 'earlier_text')
    local asked = nvim:lua([[
      require('co.backend').send_if_running = function() return false end
      local chat = require('co.chat.registry').current()
      vim.cmd('bwipeout! ' .. chat.buf)
      return { pcall(require('co.chat.earlier_text').ask, chat) }
    ]])
    same({ true }, asked)
  end)

  it('continues after :edit', function()
    local nvim = chat({ messages = messages.begun(0) })
    nvim:wait_sent(1, 'earlier_text')
    nvim:keys('<C-w>k:edit<CR>')
    nvim:wait("return vim.fn.histget('cmd') == 'edit'")
    send_rest(nvim)
    check_text(nvim)
    nvim:keys('G[[')
    nvim:wait("return vim.fn.line('.') == 201")
  end)

  it('has the colours of the whole text', function()
    local nvim = neovim.chat({ screen = true })
    nvim:receive({ type = 'replace', chat = 1, text = '# End\n\nlast', above = 36 })
    local text = '# Start\n\n```lua\nlocal x = 1\n```\n\n'
    nvim:wait_sent(1, 'earlier_text')
    nvim:receive({ type = 'earlier', chat = 1, text = text, above = 36 - #text })
    nvim:wait_sent(2, 'earlier_text')
    nvim:receive({ type = 'earlier', chat = 1, text = 'a\n\n', above = 0 })
    local groups = [[
      local found = {}
      local ns = vim.api.nvim_get_namespaces()['co.markdown']
      local buf = vim.fn.bufnr('^co://chat/1$')
      for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buf, ns, 0, -1, { details = true })) do
        found[#found + 1] = ('%d %s'):format(mark[2], mark[4].hl_group)
      end
      return table.concat(found, '|') .. '|'
    ]]
    for _, wanted in ipairs({ '2 @markup.heading.1', '5 @keyword.lua', '8 @markup.heading.1' }) do
      nvim:wait(
        'local groups = (function() ' .. groups .. ' end)() return groups:find(..., 1, true)',
        wanted
      )
    end
  end)
end)
