-- The question float covers neither a prompt nor the last lines of a chat.

local messages = require('messages')
local neovim = require('neovim')
local append, ask = messages.append, messages.ask

local LONG = ('a line of the answer\n\n'):rep(40)

--- A Neovim with a chat, a draft and a question.
---@param size integer[]
---@param layout string
---@param text string of the chat
local function asked(size, layout, text)
  local nvim = neovim.start({ screen = true, columns = size[1], lines = size[2] })
  nvim:lua('require("co").setup({ layout = ... })', layout)
  nvim:enter_chat()
  nvim:keys('imy draft')
  nvim:wait_screen('my draft')
  nvim:receive(append(text .. 'THE LAST LINE\n'), ask(1))
  nvim:wait_screen('co 1/1')
  return nvim
end

--- Waits for a screen with the question, the draft and the last line.
local function wait_all(nvim, about)
  for _, text in ipairs({ 'touch file1', 'my draft', 'THE LAST LINE' }) do
    neovim.wait(function()
      return ('%s: "%s" on\n%s'):format(about, text, table.concat(nvim:screen(), '\n'))
    end, function()
      return nvim:shows(text)
    end)
  end
end

describe('the place of a question', function()
  it('leaves the prompt and the end of the chat visible', function()
    for _, size in ipairs({ { 160, 45 }, { 60, 15 } }) do
      for _, layout in ipairs({ 'vertical', 'horizontal', 'tab', 'float' }) do
        for name, text in pairs({ short = 'one line\n', long = LONG }) do
          local nvim = asked(size, layout, text)
          wait_all(nvim, ('%dx%d, %s, %s'):format(size[1], size[2], layout, name))
        end
      end
    end
  end)

  it('changes with the text of the chat', function()
    local nvim = asked({ 60, 30 }, 'tab', 'one line\n')
    for count = 1, 20 do
      nvim:receive(append(('\nline %d of it'):format(count)))
      nvim:wait_screen(('line %d of it'):format(count))
    end
    nvim:wait_screen('touch file1')
  end)

  it('changes with the height of the prompt', function()
    local nvim = asked({ 60, 30 }, 'tab', LONG)
    for count = 1, 6 do
      nvim:keys(('<CR>draft %d'):format(count))
    end
    nvim:wait_screen('draft 6')
    wait_all(nvim, 'a longer draft')
  end)

  it('changes with the size of the screen', function()
    local nvim = asked({ 160, 45 }, 'vertical', LONG)
    for _, size in ipairs({ { 60, 15 }, { 160, 45 } }) do
      vim.o.columns, vim.o.lines = size[1], size[2] + 1
      nvim:wait('return vim.o.columns == ...', size[1])
      wait_all(nvim, ('%d columns'):format(size[1]))
    end
  end)

  --- The names of the prompts that the float covers, and its height.
  local COVERED = [[
    local api = vim.api
    local float, covered = nil, {}
    local function area(win, border)
      local row, column = unpack(api.nvim_win_get_position(win))
      local height, width = api.nvim_win_get_height(win), api.nvim_win_get_width(win)
      return { row, column, row + height + border, column + width + border }
    end
    for _, win in ipairs(api.nvim_tabpage_list_wins(0)) do
      if vim.bo[api.nvim_win_get_buf(win)].filetype == 'co-approval' then
        float = area(win, 2)
      end
    end
    for _, win in ipairs(api.nvim_tabpage_list_wins(0)) do
      local buf = api.nvim_win_get_buf(win)
      local place = area(win, 0)
      local over = place[1] < float[3] and place[2] < float[4]
        and float[1] < place[3] and float[2] < place[4]
      if vim.bo[buf].filetype == 'co-prompt' and over then
        covered[#covered + 1] = vim.fn.fnamemodify(api.nvim_buf_get_name(buf), ':t')
      end
    end
    return { covered, float[3] - float[1] - 2 }
  ]]

  -- Where there is no other room, the float is over the texts of the chats, and only as high as the room between two
  -- prompts: a draft is being typed, and what a text says can be scrolled to.
  it('covers no prompt of many chats, on any screen', function()
    for _, layout in ipairs({ 'vertical', 'horizontal' }) do
      local nvim = neovim.start({ screen = true, columns = 160, lines = 45 })
      nvim:lua('require("co").setup({ layout = ... })', layout)
      for chat = 1, 3 do
        nvim:add_chat(layout)
        nvim:receive(vim.tbl_extend('force', append(LONG), { chat = chat }))
      end
      nvim:keys(':Co! ls<CR>')
      nvim:wait("return vim.fn.bufwinid('co://shell') > 0")
      nvim:keys('imy draft')
      nvim:receive(ask(1, { command = 'touch a b c\ntouch d', reasons = { 'it writes' } }))
      nvim:wait_screen('co 1/1')
      for _, size in ipairs({ { 60, 15 }, { 160, 45 }, { 30, 20 }, { 60, 18 }, { 160, 24 } }) do
        vim.o.columns, vim.o.lines = size[1], size[2] + 1
        nvim:wait('return vim.o.columns == ...', size[1])
        nvim:settle()
        local found = nvim:lua(COVERED)
        local about = ('%s %dx%d'):format(layout, size[1], size[2])
        same({}, found[1], about)
        yes(found[2] >= 1, about)
      end
    end
  end)
end)
