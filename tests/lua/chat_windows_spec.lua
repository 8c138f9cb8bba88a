-- The two windows of a chat: they open, move and close together.

local messages = require('messages')
local neovim = require('neovim')
local append = messages.append

local IN_PROMPT = "return vim.bo.filetype == 'co-prompt'"

--- The windows of the current tab page that show something of a chat, from top to bottom: their buffers and places.
local PLACES = [[
  local api = vim.api
  local found = {}
  for _, win in ipairs(api.nvim_tabpage_list_wins(0)) do
    local name = api.nvim_buf_get_name(api.nvim_win_get_buf(win))
    if name:find('^co://chat') then
      local row, column = unpack(api.nvim_win_get_position(win))
      local height, width = api.nvim_win_get_height(win), api.nvim_win_get_width(win)
      found[#found + 1] = { name = name, row = row, column = column, height = height, width = width }
    end
  end
  table.sort(found, function(a, b) return a.row < b.row end)
  return found
]]

local function chat(opts)
  local nvim = neovim.start(opts)
  if not (opts and opts.screen) then
    nvim:lua('vim.o.columns, vim.o.lines = 160, 45')
  end
  nvim:enter_chat()
  return nvim
end

--- Waits until the prompt of a chat is directly below its text, and returns their places.
---@return table text
---@return table prompt
local function wait_together(nvim, chat_id)
  local name = 'co://chat/' .. (chat_id or 1)
  ---@type table[]
  local places = {}
  neovim.wait(function()
    return 'the two windows: ' .. vim.inspect(places)
  end, function()
    places = nvim:lua(PLACES)
    if #places ~= 2 then
      return false
    end
    local text, prompt = assert(places[1]), assert(places[2])
    return text.name == name
      and prompt.name == name .. '/prompt'
      and text.row + text.height + 1 == prompt.row
      and text.column == prompt.column
      and text.width == prompt.width
  end)
  return places[1], places[2]
end

local function wait_closed(nvim)
  neovim.wait('both windows to close', function()
    return #nvim:lua(PLACES) == 0
  end)
end

describe('the windows of a chat', function()
  it('stay together however one of them is moved', function()
    for _, keys in ipairs({ 'H', 'J', 'K', 'L', 'x', 'r', 'R', '=', '_', '|' }) do
      for _, go in ipairs({ '', '<C-w>k' }) do
        local nvim = chat()
        nvim:keys(go .. '<C-w>' .. keys .. ':let g:done = 1<CR>')
        nvim:wait('return vim.g.done == 1')
        wait_together(nvim)
        same(3, nvim:lua('return #vim.api.nvim_list_wins()'), keys)
      end
    end
  end)

  it('take the place of the one that is moved', function()
    local nvim = chat()
    nvim:keys('<C-w>H')
    neovim.wait('the left side', function()
      return nvim:lua(PLACES)[1].column == 0
    end)
    wait_together(nvim)
    nvim:keys('<C-w>J')
    neovim.wait('the whole width', function()
      return nvim:lua(PLACES)[1].width == 160
    end)
    local _, prompt = wait_together(nvim)
    yes(prompt.height < 10, 'the prompt is small')
  end)

  it('close together', function()
    for _, keys in ipairs({ '<C-w>kq', ':close<CR>', ':quit<CR>', '<C-w>c' }) do
      for _, go in ipairs({ '', '<C-w>k' }) do
        local nvim = chat()
        nvim:keys(go .. keys)
        wait_closed(nvim)
        same(1, nvim:lua('return #vim.api.nvim_list_wins()'), keys)
        nvim:enter_chat()
        wait_together(nvim)
      end
    end
  end)

  it('both stay with :only', function()
    for _, go in ipairs({ '', '<C-w>k' }) do
      local nvim = chat()
      nvim:keys(go .. ':only<CR>')
      nvim:wait('return #vim.api.nvim_list_wins() == 2')
      local text, prompt = wait_together(nvim)
      same(160, text.width)
      yes(prompt.height < text.height)
    end
  end)

  it('both go to a tab page of their own', function()
    for _, go in ipairs({ '', '<C-w>k' }) do
      local nvim = chat()
      nvim:keys(go .. '<C-w>T')
      nvim:wait('return #vim.api.nvim_list_tabpages() == 2')
      wait_together(nvim)
      same(3, nvim:lua('return #vim.api.nvim_list_wins()'))
      nvim:keys(':quit<CR>')
      nvim:wait('return #vim.api.nvim_list_tabpages() == 1')
      same(1, nvim:lua('return #vim.api.nvim_list_wins()'))
    end
  end)

  it(
    'make room for another buffer if one of theirs is deleted and there is no other window',
    function()
      for _, keys in ipairs({
        ':bd<CR>',
        ':bd!<CR>',
        ':bwipeout!<CR>',
        '<C-w>k:bd<CR>',
        '<C-w>k:bwipeout<CR>',
      }) do
        for _, name in ipairs({ vim.fn.tempname(), '' }) do
          local nvim = neovim.start()
          if name ~= '' then
            nvim:keys((':edit %s<CR>'):format(name))
          end
          nvim:enter_chat()
          nvim:keys(':only<CR>')
          nvim:wait('return #vim.api.nvim_list_wins() == 2')
          wait_together(nvim)
          nvim:keys(keys)
          wait_closed(nvim)
          nvim:wait('return vim.api.nvim_buf_get_name(0) == ...', name)
          nvim:wait_sent(1, 'close')
          same(
            {},
            nvim:lua([[return vim.tbl_filter(function(buf)
          return vim.api.nvim_buf_is_loaded(buf) and vim.api.nvim_buf_get_name(buf):find('^co:') ~= nil
        end, vim.api.nvim_list_bufs())]]),
            keys
          )
          nvim:enter_chat()
          wait_together(nvim, 2)
        end
      end
    end
  )

  it('end Neovim with :quit when there is no other', function()
    for _, go in ipairs({ '', '<C-w>k' }) do
      local nvim = chat()
      nvim:keys(go .. ':only<CR>')
      nvim:wait('return #vim.api.nvim_list_wins() == 2')
      wait_together(nvim)
      -- The answer to the last key may not come.
      pcall(nvim.keys, nvim, ':quit<CR>')
      same(0, nvim:wait_exit())
    end
  end)

  it('both stay when Neovim refuses to quit', function()
    local nvim = chat()
    nvim:lua("vim.fn.setbufline(1, 1, 'changed')")
    nvim:keys(':only<CR>')
    nvim:wait('return #vim.api.nvim_list_wins() == 2')
    nvim:keys(':qall<CR><CR>:let g:done = 1<CR>')
    nvim:wait('return vim.g.done == 1')
    nvim:enter_chat()
    wait_together(nvim)
  end)

  it('are where <Plug>(co-chat) goes, which hides them only from there', function()
    local nvim = chat()
    nvim:lua("vim.keymap.set('n', '<F2>', '<Plug>(co-chat)')")
    nvim:keys('<C-w>t<F2>')
    nvim:wait("return vim.bo.filetype == 'co-prompt'")
    wait_together(nvim)
    nvim:keys('<F2>')
    wait_closed(nvim)
  end)

  it('leave q in the prompt to the person', function()
    local nvim = chat()
    nvim:keys('qaihello<Esc>q')
    nvim:wait("return vim.fn.getreg('a') ~= ''")
    same('ihello\27', nvim:lua("return vim.fn.getreg('a')"))
    wait_together(nvim)
    nvim:keys('dd@a')
    nvim:wait_line('co://chat/1/prompt', 'hello')
    nvim:keys('<C-w>kq')
    wait_closed(nvim)
  end)

  it('hide by another key from both, and by no key if there is none', function()
    for lhs, keys in pairs({ ['<F2>'] = { '<F2>', '<C-w>k<F2>' }, Q = { 'Q', '<C-w>kQ' } }) do
      for _, typed in ipairs(keys) do
        local nvim = neovim.start()
        nvim:lua("require('co').setup({ keys = { chat = { hide = { 'q', ... } } } })", lhs)
        nvim:enter_chat()
        nvim:keys(typed)
        wait_closed(nvim)
      end
    end
    local nvim = neovim.start()
    nvim:lua("require('co').setup({ keys = { chat = { hide = false } } })")
    nvim:enter_chat()
    nvim:keys('<C-w>k')
    same('', nvim:lua("return vim.fn.maparg('q', 'n')"))
  end)

  it('open together, however the chat is shown', function()
    local nvim = chat()
    nvim:keys(':close<CR>')
    wait_closed(nvim)
    nvim:keys(':sbuffer co://chat/1<CR>')
    wait_together(nvim)
    nvim:keys('<C-w>t:close<CR>')
    wait_closed(nvim)
    nvim:keys(':sbuffer co://chat/1/prompt<CR>')
    wait_together(nvim)
    nvim:keys(':tabnew<CR>:Co<CR>')
    nvim:wait('return #vim.api.nvim_list_tabpages() == 2')
    nvim:wait(IN_PROMPT)
    wait_together(nvim)
  end)

  it('make room for a file that takes the place of the text', function()
    local nvim = chat()
    nvim:keys('<C-w>k:edit some.txt<CR>')
    wait_closed(nvim)
    same(2, nvim:lua('return #vim.api.nvim_list_wins()'))
    same('some.txt', nvim:lua("return vim.fn.expand('%:t')"))
    nvim:enter_chat()
    nvim:keys(':edit other.txt<CR>:let g:done = 1<CR>')
    nvim:wait('return vim.g.done == 1')
    wait_together(nvim)
  end)

  it('leave their places to other windows', function()
    local nvim = chat()
    local text, prompt = wait_together(nvim)
    nvim:keys(':Co! ls<CR>')
    nvim:wait("return vim.fn.bufwinid('co://shell') > 0")
    same({ text, prompt }, nvim:lua(PLACES))
  end)

  it('show another chat in their place', function()
    for _, layout in ipairs({ 'vertical', 'horizontal', 'float', 'tab', 'current' }) do
      local nvim = neovim.start()
      nvim:lua('vim.o.columns, vim.o.lines = 160, 45')
      nvim:lua('require("co").setup({ layout = ... })', layout)
      nvim:enter_chat()
      nvim:settle()
      local before = nvim:lua(PLACES)
      local count = nvim:lua('return #vim.api.nvim_list_wins()')
      local function shows(id)
        local name = ('co://chat/%d'):format(id)
        nvim:wait('return vim.api.nvim_buf_get_name(0) == ...', name .. '/prompt')
        before[1].name, before[2].name = name, name .. '/prompt'
        nvim:settle()
        same(before, nvim:lua(PLACES), layout)
        same(count, nvim:lua('return #vim.api.nvim_list_wins()'), layout)
      end
      nvim:keys('imy draft<Esc>:Co /new<CR>')
      shows(2)
      nvim:keys('i/new<C-s><Esc>')
      shows(3)
      nvim:lua("require('co.chat.window').show(require('co.chat.registry').get(1), true)")
      shows(1)
      same('my draft', nvim:lua('return vim.api.nvim_get_current_line()'))
      same(true, nvim:lua('return vim.wo.winfixbuf'))
      nvim:keys(':close<CR>')
      nvim:wait('return #vim.api.nvim_list_wins() == 1')
      nvim:keys(':Co<CR>')
      nvim:wait("return vim.api.nvim_buf_get_name(0) == 'co://chat/1/prompt'")
    end
  end)

  it('are those of the chat that was used last', function()
    local nvim = chat()
    nvim:keys(':Co /new<CR>')
    nvim:wait("return vim.api.nvim_buf_get_name(0) == 'co://chat/2/prompt'")
    nvim:keys(':Co /new<CR>')
    nvim:wait("return vim.api.nvim_buf_get_name(0) == 'co://chat/3/prompt'")
    nvim:keys(':bdelete<CR>')
    wait_closed(nvim)
    nvim:press(':Co<CR>')
    nvim:wait("return vim.api.nvim_buf_get_name(0) == 'co://chat/2/prompt'")
    -- The person may still look at two.
    nvim:keys(':botright vertical sbuffer co://chat/1<CR>')
    neovim.wait('two chats', function()
      return #nvim:lua(PLACES) == 4
    end)
  end)

  it('open, move and close on a narrow screen', function()
    for _, columns in ipairs({ 16, 21, 30 }) do
      local nvim = neovim.start({ screen = true, columns = columns, lines = 20 })
      for _, keys in ipairs({ ':Co<CR>', ':vnew | Co<CR>', '<C-w>J', '<C-w>L' }) do
        nvim:keys(keys)
        nvim:wait(IN_PROMPT)
        nvim:settle()
      end
      nvim:keys(':close<CR>')
      wait_closed(nvim)
      nvim:enter_chat()
      for _, size in ipairs({ { columns + 4, 8 }, { columns, 20 } }) do
        vim.o.columns, vim.o.lines = size[1], size[2] + 1
        nvim:wait('return vim.o.columns == ...', size[1])
        nvim:settle()
      end
      same('', nvim:lua('return vim.v.errmsg'))
    end
  end)

  it('fit a small screen with other windows of a fixed height', function()
    local nvim = neovim.start({ screen = true, columns = 160, lines = 60 })
    nvim:keys(':vsplit | wincmd h | belowright 12split | setl wfh | wincmd k | setl nowfh<CR>')
    nvim:keys(':Co<CR>')
    wait_together(nvim)
    vim.o.lines = 13
    nvim:wait('return vim.o.lines == 12')
  end)
end)

--- Returns whether the end of the text is visible, on the last row of its window.
local END = [[
  local win = vim.fn.bufwinid(vim.fn.bufnr('^co://chat/1$'))
  local buf = vim.api.nvim_win_get_buf(win)
  local last = vim.api.nvim_buf_line_count(buf)
  local rows = { start_row = vim.fn.line('w0', win) - 1, end_row = last - 1 }
  -- The winbar takes one row.
  return vim.fn.line('w$', win) == last
    and vim.api.nvim_win_text_height(win, rows).all == vim.api.nvim_win_get_height(win) - 1
]]

--- The sizes of all windows.
local SIZES = [[
  local sizes = {}
  for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    local name = vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(win))
    local width, height = vim.api.nvim_win_get_width(win), vim.api.nvim_win_get_height(win)
    sizes[#sizes + 1] = ('%s %dx%d'):format(name, width, height)
  end
  return sizes
]]

--- A Neovim with chats and the shell.
local function chats(count, layout)
  local nvim = neovim.start()
  nvim:lua('vim.o.columns, vim.o.lines = 160, 45')
  nvim:lua('require("co").setup({ layout = ... })', layout)
  nvim:enter_chat()
  for _ = 2, count do
    nvim:add_chat(layout)
  end
  nvim:keys(':Co! ls<CR>')
  nvim:wait("return vim.fn.bufwinid('co://shell') > 0")
  nvim:settle()
  return nvim
end

local function width_of(nvim, id)
  local name = ('^co://chat/%d$'):format(id)
  return nvim:lua('return vim.fn.winwidth(vim.fn.bufwinnr(...))', name)
end

describe('the size of a chat', function()
  it('gives the prompt the rows that its text needs, within limits', function()
    local nvim = chat()
    local text, prompt = wait_together(nvim)
    local all = text.height + prompt.height
    nvim:keys('i1<CR>2<CR>3<CR>4<CR>5<CR>6')
    neovim.wait('more rows', function()
      return nvim:lua(PLACES)[2].height == 6
    end)
    nvim:keys(('<CR>more'):rep(50))
    neovim.wait('the most rows', function()
      return nvim:lua(PLACES)[2].height == math.floor(all * 0.4)
    end)
    nvim:keys('<Esc>:%d<CR>')
    neovim.wait('few rows', function()
      return nvim:lua(PLACES)[2].height == prompt.height
    end)
    same({ text, prompt }, nvim:lua(PLACES))
  end)

  it('stays with the text of the prompt when other windows come and go', function()
    local there_and_back = {
      { ':botright copen<CR>', ':cclose<CR>' },
      { ':botright 12split | terminal<CR>', ':close!<CR>' },
      { ':set cmdheight=8<CR>', ':set cmdheight=1<CR>' },
      { ':set showtabline=2<CR>', ':set showtabline=1<CR>' },
      { ':topleft 20new<CR>', ':close<CR>' },
    }
    for _, layout in ipairs({ 'vertical', 'horizontal' }) do
      local nvim = neovim.start()
      nvim:lua('vim.o.columns, vim.o.lines = 160, 45')
      nvim:lua('require("co").setup({ layout = ... })', layout)
      nvim:enter_chat()
      local rows = select(2, wait_together(nvim)).height
      for _, keys in ipairs(there_and_back) do
        nvim:keys(keys[1])
        nvim:settle()
        nvim:keys(keys[2])
        nvim:settle()
        local text, prompt = wait_together(nvim)
        same(math.max(1, math.floor((text.height + prompt.height) / 10)), prompt.height, keys[1])
        yes(prompt.height <= rows, keys[1])
      end
    end
  end)

  it('follows the width of the prompt', function()
    local nvim = chat()
    nvim:keys('i' .. ('word '):rep(60) .. '<Esc>')
    local rows = function()
      return nvim:lua(PLACES)[2].height
    end
    neovim.wait('its rows', function()
      return rows() > 4
    end)
    nvim:keys('<C-w>150|')
    neovim.wait('fewer rows', function()
      return rows() < 5
    end)
  end)

  it('is the one that the person gave the prompt until its text changes', function()
    local nvim = chat()
    local before = select(2, wait_together(nvim)).height
    nvim:keys(':resize 12<CR>')
    nvim:settle()
    same(12, nvim:lua(PLACES)[2].height)
    nvim:keys('itext')
    neovim.wait('few rows', function()
      return nvim:lua(PLACES)[2].height == before
    end)
  end)

  it('shows the end of a line that is higher than the window', function()
    local nvim = chat({ screen = true, columns = 100, lines = 15 })
    local function check()
      nvim:wait_screen('the end of it', 'last line')
    end
    nvim:receive(append('# first\n\n' .. ('word '):rep(210) .. 'the end of it\n\nlast line\n'))
    check()
    nvim:keys('i<CR><CR>typed')
    nvim:wait_screen('typed')
    check()
    nvim:keys('<Esc>:%d<CR>')
    nvim:wait_gone('typed')
    check()
    vim.o.columns = 80
    nvim:wait('return vim.o.columns == 80')
    check()
  end)

  it('shows the end of the text while the prompt grows and shrinks', function()
    local nvim = chat()
    nvim:receive(append(('a line of the answer\n'):rep(100) .. 'its end'))
    nvim:keys('i')
    for count = 2, 9 do
      nvim:keys('<CR>more')
      neovim.wait('a row more', function()
        return nvim:lua(PLACES)[2].height >= math.max(4, count)
      end)
      nvim:wait(END)
    end
    nvim:keys('<Esc>:%d<CR>')
    neovim.wait('few rows', function()
      return nvim:lua(PLACES)[2].height < 9
    end)
    nvim:wait(END)
  end)

  it('is kept when the screen becomes small and large again', function()
    for _, split_keep in ipairs({ 'cursor', 'screen', 'topline' }) do
      local nvim = chat()
      nvim:lua('vim.o.splitkeep = ...', split_keep)
      nvim:receive(append(('a line of the answer\n'):rep(100) .. 'its end'))
      local before = { wait_together(nvim) }
      nvim:lua('vim.o.columns, vim.o.lines = 60, 15')
      local small = wait_together(nvim)
      yes(small.width >= 25 and small.width <= 29, 'its share: ' .. small.width)
      nvim:wait(END, split_keep)
      nvim:lua('vim.o.columns, vim.o.lines = 160, 45')
      neovim.wait('its size', function()
        return vim.deep_equal(before, nvim:lua(PLACES))
      end)
      nvim:wait(END, split_keep)
      nvim:receive(append('\n\nthe last line'))
      nvim:wait(END, split_keep)
    end
  end)

  it('is kept beside other chats and the shell, also where they have no room', function()
    local sizes = {
      vertical = { { 60, 15 }, { 20, 8 } },
      horizontal = { { 60, 20 }, { 20, 30 } },
    }
    for layout, smaller in pairs(sizes) do
      local nvim = chats(3, layout)
      local large = nvim:lua(SIZES)
      for _, small in ipairs(smaller) do
        nvim:lua('vim.o.columns, vim.o.lines = ...', small[1], small[2])
        nvim:settle()
        if small == sizes.vertical[1] then
          same({ 7, 16, 27 }, { width_of(nvim, 3), width_of(nvim, 2), width_of(nvim, 1) })
        end
        -- Neovim enlarges a window that is entered to 'winwidth'.
        nvim:keys('<C-w>k<C-w>j')
        nvim:settle()
        nvim:lua('vim.o.columns, vim.o.lines = 160, 45')
        neovim.wait(function()
          return vim.inspect({ large, nvim:lua(SIZES) })
        end, function()
          return vim.deep_equal(large, nvim:lua(SIZES))
        end)
      end
    end
  end)

  it('leaves windows of a fixed width their width', function()
    local nvim = chat()
    nvim:keys('<C-w>t:vsplit | vertical resize 30 | set winfixwidth<CR>')
    nvim:wait('return vim.wo.winfixwidth and vim.api.nvim_win_get_width(0) == 30')
    nvim:settle()
    local large = nvim:lua(SIZES)
    nvim:lua('vim.o.columns = 100')
    nvim:settle()
    same(30, nvim:lua('return vim.api.nvim_win_get_width(0)'))
    same(45, width_of(nvim, 1))
    nvim:lua('vim.o.columns = 160')
    nvim:settle()
    same(large, nvim:lua(SIZES))
  end)

  it('that the person chose is kept too', function()
    local nvim = chat()
    nvim:keys('<C-w>k<C-w>100|')
    nvim:wait('return vim.api.nvim_win_get_width(0) == 100')
    nvim:lua('vim.o.columns = 80')
    nvim:wait('return vim.api.nvim_win_get_width(0) == 50')
    nvim:lua('vim.o.columns = 160')
    nvim:wait('return vim.api.nvim_win_get_width(0) == 100')
  end)

  it('shows the end of an answer in one long line', function()
    local nvim = chat({ screen = true, columns = 60, lines = 15 })
    for index = 1, 200 do
      nvim:receive(append(('word%d '):format(index)))
    end
    nvim:wait_screen('word200')
  end)
end)
