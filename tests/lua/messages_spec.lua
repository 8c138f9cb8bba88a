-- The look of messages: headings as rules, hidden marks of markdown, and hanging indents.
local messages = require('messages')
local neovim = require('neovim')
local append = messages.append

local CHAT = 'co://chat/1'
-- 14:02 of a day long ago.
local THEN = os.time({ year = 2020, month = 3, day = 4, hour = 14, min = 2 })

--- Returns a Neovim with a chat that has a prompt and an answer.
---@param answer string
---@param before? string Lua code to run before the chat opens
---@param at? integer
---@return co.test.Neovim
local function chat(answer, before, at)
  local nvim = neovim.start({ screen = true })
  nvim:lua(before or '')
  nvim:enter_chat()
  nvim:receive(
    { type = 'message_begins', chat = 1, at = at or THEN },
    append('## You\nhi\n\n'),
    { type = 'message_begins', chat = 1 },
    append('## Co\n' .. answer)
  )
  nvim:wait_screen('hi')
  return nvim
end

--- Returns the lines of the screen in the window of the chat, without blanks at their ends.
---@param nvim co.test.Neovim
---@return string[]
local function shown(nvim)
  local place = nvim:lua([[
    local info = vim.fn.getwininfo(vim.fn.win_findbuf(vim.fn.bufnr('^co://chat/1$'))[1])[1]
    return { info.wincol, info.width }
  ]]) ---@type integer[]
  local lines = {}
  for _, line in ipairs(nvim:screen()) do
    lines[#lines + 1] = (vim.fn.strcharpart(line, place[1] - 1, place[2]):gsub('%s+$', ''))
  end
  return lines
end

describe('a message in a chat', function()
  it('begins with a rule as wide as the window, with the time of a prompt', function()
    local nvim = chat('Aye.')
    nvim:wait_screen('─ You ──', '── 2020-03-04 14:02 ─', '─ co ──')
    same({ '## You', 'hi', '', '## Co', 'Aye.' }, nvim:lines(CHAT))
    local width = nvim:lua('return vim.api.nvim_win_get_width(0)')
    local lines = shown(nvim)
    for _, name in ipairs({ 'You', 'co' }) do
      local rule = vim.tbl_filter(function(line)
        return vim.startswith(line, ('─ %s ─'):format(name))
      end, lines)[1]
      same(width, rule and vim.fn.strchars(rule), table.concat(lines, '\n'))
    end
    nvim:keys(':vertical resize 12<CR>')
    nvim:wait_screen('─ You ─────')
    nvim:wait_gone('14:02')
  end)

  it('has the time alone on the same day', function()
    local now = os.time()
    local nvim = chat('Aye.', nil, now)
    nvim:wait_screen(os.date('─ %H:%M ─', now) --[[@as string]])
  end)

  it('has a rule of ASCII characters if the setting says so', function()
    local nvim = chat('Aye.', "require('co').setup({ ascii = true })")
    nvim:wait_screen('- You ---', '- 2020-03-04 14:02 -')
  end)

  it('keeps its heading in a window that conceals nothing', function()
    local nvim = chat('Aye, *sir*.', "require('co').setup({ chat_conceal = false })")
    nvim:wait_screen('## You', '## Co', '*sir*')
    yes(not nvim:shows('─ You'))
    same(0, nvim:lua('return vim.wo.conceallevel'))
  end)

  it('hides the marks of markdown, in its text only', function()
    local code = '```lua\nlocal a\n```\n\n```\nraw\n```\n'
    local nvim = chat('Aye, *sir*.\n\n' .. code .. '\nEnd.')
    nvim:wait_screen('Aye, sir.', 'local a', 'raw', 'End.')
    nvim:wait_gone('```')
    yes(table.concat(nvim:lines(CHAT), '\n'):find(code, 1, true) ~= nil)
    if nvim:lua("return vim.fn.has('nvim-0.11')") == 1 then
      local lines = table.concat(shown(nvim), '\n')
      yes(lines:find('sir.\n\nlocal a\n\nraw\n\nEnd.', 1, true), lines)
    end
  end)

  it('has lists and quotes that hang', function()
    local words = ('word '):rep(20)
    local nvim = chat(('- %s\n\n10. %s\n\n> %s\n'):format(words, words, words))
    nvim:wait_screen('- word', '10. word', '> word')
    local lines = table.concat(shown(nvim), '\n')
    for _, hanging in ipairs({ '\n  word', '\n    word' }) do
      yes(lines:find(hanging, 1, true), lines)
    end
    yes(not lines:find('\nword', 1, true), lines)
  end)

  it('has a blank line above the answer that ends a turn, and a prompt in its place', function()
    local nvim = chat('I look.\n')
    nvim:receive(
      messages.call(1, 'ls', { state = 'looks', kept = 3 }),
      { type = 'answer_begins', chat = 1 },
      append('First.\n\n- a\n- b'),
      { type = 'separate_answer', chat = 1 },
      append('\n\n## You\n')
    )
    nvim:wait_line(CHAT, '- b')
    local all = nvim:lines(CHAT)
    same(
      { 'I look.', '  · ls', '', 'First.', '', '- a', '- b', '', '## You', '' },
      vim.list_slice(all, 5)
    )
  end)
end)
