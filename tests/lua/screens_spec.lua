-- A turn as it looks on screens of several sizes, with its highlights. CO_TEST_WRITE=1 writes the expected screens anew.
local messages = require('messages')
local neovim = require('neovim')
local append, block, call, patch = messages.append, messages.block, messages.call, messages.patch

local CHAT = 'co://chat/1'
-- 14:02 of a day long ago.
local THEN = os.time({ year = 2020, month = 3, day = 4, hour = 14, min = 2 })
local PYTEST = 'python -m pytest -q'

--- Returns the messages of a call and its output, until it has ended.
---@param id integer
---@param text string
---@param output string[]
---@param fields table
---@return table ...
local function run(id, text, output, fields)
  local body = { lead = fields.lead, whole = fields.whole, diff = fields.diff, block = id }
  return call(id, text, body),
    block(id, patch(0, output), true),
    call(
      id,
      text .. (fields.words or ''),
      vim.tbl_extend('force', { block = id, kept = fields.whole and 0 or 3 }, fields)
    )
end

--- Shows a turn that mends a test: five calls and their comments.
---@param nvim co.test.Neovim
local function show_turn(nvim)
  local state = { title = 'fix the failing test', input = 5200, output = 340 }
  state.cwd = nvim:lua('return vim.fn.getcwd()')
  local failed = neovim.numbered('E   line ', 17)
  failed[18] = 'FAILED test_discount_rounds_half_up - 1698 != 1699'
  nvim:receive(
    messages.state('streaming', state),
    { type = 'message_begins', chat = 1, at = THEN },
    append('## You\nfix the failing test in tests/test_cart.py\n\n'),
    { type = 'message_begins', chat = 1 },
    append('## Co\nI run the tests to see the failure.\n')
  )
  nvim:receive(run(1, PYTEST .. ' | tail -20', failed, {
    state = 'failed',
    kept = 1,
    details = 'tried · 0.8 s',
  }))
  nvim:receive(append('The discount is cut instead of *rounded*.\n'))
  nvim:receive(call(2, 'read shop/money.py', { state = 'looks', kept = 3, details = '1-20' }))
  nvim:receive(append('I make `scale` round half up.\n'))
  nvim:receive(run(3, 'shop/money.py  +3 -1', {
    '--- a/shop/money.py',
    '+++ b/shop/money.py',
    '@@ -3,3 +3,5 @@',
    ' def scale(self, factor):',
    '-    return int(self.cents * factor)',
    '+    return round_half_up(self.cents * factor)',
  }, {
    state = 'done',
    words = ' · you: 2 of 3 changes',
    remarks = { '✎ leave __str__ for another change' },
    whole = true,
    diff = true,
  }))
  nvim:receive(append('Now the tests again.\n'))
  nvim:receive(
    run(4, PYTEST, { '3 passed in 0.04s' }, { state = 'done', details = 'tried · 0.7 s' })
  )
  nvim:receive(
    { type = 'answer_begins', chat = 1 },
    append('`Money.scale` rounds half up, and the three tests pass.'),
    { type = 'separate_answer', chat = 1 },
    messages.state('idle', state)
  )
  nvim:wait_line(CHAT, 'three tests pass.')
end

-- Returns the window of the chat as text, and the highlights of each row: first and last column with the attributes.
local WINDOW = [[
  vim.cmd('redraw!')
  local win = vim.fn.getwininfo(vim.fn.win_findbuf(vim.fn.bufnr('^co://chat/1{,/co: *}$'))[1])[1]
  local lines, styles = {}, {}
  for row = 1, win.height + win.winbar do
    local text, runs, last = {}, {}, nil
    for column = 1, win.width do
      local place = { win.winrow + row - 2, win.wincol + column - 2 }
      local _, cell = pcall(vim.api.nvim__inspect_cell, 1, place[1], place[2])
      cell = type(cell) == 'table' and cell or { ' ', {} }
      text[#text + 1] = cell[1]
      local parts = {}
      for name, value in pairs(cell[2] or {}) do
        parts[#parts + 1] = type(value) == 'number' and ('%s=#%06x'):format(name, value) or name
      end
      table.sort(parts)
      local style = table.concat(parts, ' ')
      if style ~= '' and last and last.style == style and last.to == column - 1 then
        last.to = column
      elseif style ~= '' then
        last = { from = column, to = column, style = style }
        runs[#runs + 1] = last
      end
    end
    lines[#lines + 1] = table.concat(text):gsub('%s+$', '')
    for _, run in ipairs(runs) do
      styles[#styles + 1] = ('%d:%d-%d %s'):format(row, run.from, run.to, run.style)
    end
  end
  return { lines, styles }
]]

--- Returns a Neovim with the turn.
---@param columns integer
---@param lines integer
---@param background string
---@param before? string Lua code that runs before the chat opens
---@return co.test.Neovim
local function screen(columns, lines, background, before)
  local nvim = neovim.start({ screen = true, columns = columns, lines = lines })
  nvim:lua('vim.o.background, vim.o.shortmess = ..., "aoOtTIcCFS"', background)
  nvim:lua(before or '')
  nvim:enter_chat()
  show_turn(nvim)
  nvim:wait_screen('ready')
  -- Markdown is highlighted in steps.
  nvim:wait_gone('`')
  nvim:wait_gone('*')
  nvim:settle()
  return nvim
end

describe('the turn of an example', function()
  it('takes at most 20 lines of 55 columns', function()
    local nvim = screen(55, 40, 'dark')
    local height = nvim:lua([[
      local win = vim.fn.win_findbuf(vim.fn.bufnr('^co://chat/1{,/co: *}$'))[1]
      return { vim.api.nvim_win_get_width(win), vim.api.nvim_win_text_height(win, {}).all }
    ]])
    same(55, height[1])
    yes(height[2] <= 20, table.concat(nvim:screen(), '\n'))
  end)

  it('has the same text without parsers and in few colours', function()
    local nvim = screen(
      80,
      24,
      'dark',
      [[
        vim.cmd('syntax on')
        vim.o.termguicolors = false
        vim.treesitter.get_string_parser = function()
          error('no parser')
        end
      ]]
    )
    local expected = vim.fn.readfile(co_root .. '/tests/lua/screens/80x24-dark.txt')
    local lines = nvim:lua(WINDOW)[1]
    same(vim.list_slice(expected, 1, #lines), lines)
  end)

  it('looks as expected on screens of several sizes', function()
    -- The colours of another version may differ.
    local with_styles = vim.fn.has('nvim-0.11') == 1 and vim.fn.has('nvim-0.12') == 0
    for _, size in ipairs({ { 120, 40 }, { 80, 24 }, { 60, 16 } }) do
      for _, background in ipairs({ 'dark', 'light' }) do
        local nvim = screen(size[1], size[2], background)
        local name = ('%dx%d-%s'):format(size[1], size[2], background)
        local file = ('%s/tests/lua/screens/%s.txt'):format(co_root, name)
        if vim.env.CO_TEST_WRITE then
          -- The first look at a cell makes Neovim number its attributes anew.
          nvim:lua(WINDOW)
          nvim:lua('vim.wait(100)')
          local shown = nvim:lua(WINDOW) ---@type string[][]
          vim.fn.writefile(vim.list_extend(vim.list_extend(shown[1], { '' }), shown[2]), file)
        end
        local expected = vim.fn.readfile(file)
        ---@type string[], string[]
        local lines, styles = {}, {}
        neovim.wait(function()
          return ('%s:\n%s\n%s'):format(name, table.concat(lines, '\n'), table.concat(styles, '\n'))
        end, function()
          local shown = nvim:lua(WINDOW) ---@type string[][]
          lines, styles = shown[1], shown[2]
          local all = vim.list_extend(vim.list_extend(vim.deepcopy(lines), { '' }), styles)
          local count = with_styles and #expected or #lines
          return vim.deep_equal(vim.list_slice(expected, 1, count), vim.list_slice(all, 1, count))
        end)
      end
    end
  end)
end)
