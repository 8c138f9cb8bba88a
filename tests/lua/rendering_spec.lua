local messages = require('messages')
local neovim = require('neovim')

local TEXT = '## Co\n\n# Title\n\nSome *text*.\n\n# Another\n\nMore.\n'

-- Draws the marks of headings as render-markdown.nvim does: it attaches to the filetypes of its `file_types`, and at its
-- events it parses the buffer and hides the marks in the windows that show it.
local RENDERER = [[
  local namespace = vim.api.nvim_create_namespace('renderer')
  local query = vim.treesitter.query.parse('markdown', '(atx_heading . (_) @mark)')
  local function draw(event)
    local parser = vim.treesitter.get_parser(event.buf)
    parser:parse(true)
    vim.api.nvim_buf_clear_namespace(event.buf, namespace, 0, -1)
    for _, node in query:iter_captures(parser:trees()[1]:root(), event.buf) do
      local row, from, _, to = node:range()
      local mark = { end_col = to, conceal = '', virt_text = { { '>>' } }, virt_text_pos = 'inline' }
      vim.api.nvim_buf_set_extmark(event.buf, namespace, row, from, mark)
    end
    for _, win in ipairs(vim.fn.win_findbuf(event.buf)) do
      vim.wo[win].conceallevel, vim.wo[win].concealcursor = 3, 'nc'
    end
  end
  vim.api.nvim_create_autocmd('FileType', {
    pattern = { 'markdown', 'co-chat' },
    callback = function(attached)
      local events = { 'BufWinEnter', 'CursorMoved', 'ModeChanged', 'TextChanged', 'WinScrolled' }
      vim.api.nvim_create_autocmd(events, { buffer = attached.buf, callback = draw })
    end,
  })
]]

--- Returns an editor whose chat has text.
---@param before? string Lua code to run before the chat opens
---@param opts? table
---@return co.test.Neovim
local function editor(before, opts)
  local nvim = neovim.start(opts)
  nvim:lua((before or '') .. [[
    vim.cmd('Co')
    _G.chat = require('co.chat.registry').current().buf
  ]])
  nvim:receive(messages.append(TEXT))
  return nvim
end

describe('the text of a chat', function()
  it('has a markdown parser, so that folds by treesitter work', function()
    local nvim = editor(nil, { screen = true })
    same('markdown', nvim:lua('return vim.treesitter.get_parser(chat):lang()'))
    nvim:keys('<C-w>k')
    nvim:lua(
      "vim.cmd('setlocal foldmethod=expr foldexpr=v:lua.vim.treesitter.foldexpr() foldlevel=0')"
    )
    nvim:wait('return vim.fn.foldclosed(4) == 3 and vim.fn.foldclosedend(4) == 5')
    nvim:wait_screen('# Title')
    nvim:wait_gone('Some *text*')
    nvim:receive(messages.append('\n# Third\n\nEnd.\n'))
    nvim:wait('return vim.fn.foldclosed(12) == 11')
  end)

  it('is not parsed as a whole after each change if a plugin starts the highlighter', function()
    local nvim = editor([[
      vim.api.nvim_create_autocmd('FileType', {
        callback = function(event) pcall(vim.treesitter.start, event.buf) end,
      })
    ]])
    local highlighter = 'return vim.treesitter.highlighter.active[chat] ~= nil'
    same(false, nvim:lua(highlighter))
    nvim:lua('vim.treesitter.start(chat)')
    nvim:receive(messages.append('more'))
    same(false, nvim:lua(highlighter))
    nvim:wait('return #vim.api.nvim_buf_get_extmarks(chat, -1, { 2, 0 }, { 2, -1 }, {}) > 0')
  end)

  it(
    'is drawn by a plugin that renders markdown, when a turn ends and while a question waits',
    function()
      local nvim = editor(RENDERER, { screen = true })
      nvim:receive(messages.state('streaming'), messages.append('\n# Third\n'))
      nvim:wait_screen('# Third')
      nvim:receive(messages.state('asking'))
      nvim:wait_screen('>> Title', '>> Another', '>> Third')
      nvim:receive(messages.state('streaming'), messages.append('\n# Fourth\n'))
      nvim:wait_screen('# Fourth')
      nvim:keys('inext')
      nvim:receive(messages.state('idle'))
      nvim:wait_screen('>> Fourth', 'next')
      yes(not nvim:shows('# '), 'a heading is not drawn')
    end
  )

  ---@param chat integer
  local function end_turn(nvim, chat)
    for _, state in ipairs({ 'thinking', 'idle', 'idle' }) do
      nvim:receive(vim.tbl_extend('force', messages.state(state), { chat = chat }))
    end
  end

  it('tells plugins that render markdown when a turn has ended, as the current buffer', function()
    local nvim = editor()
    nvim:lua([[
      vim.cmd('wincmd t')
      _G.changes, _G.here = {}, vim.api.nvim_get_current_win()
      -- As plugins do that save files by themselves.
      vim.api.nvim_create_autocmd('TextChanged', {
        callback = function(event)
          local current = vim.api.nvim_get_current_buf()
          changes[#changes + 1] = event.buf == chat and current == chat
        end,
      })
    ]])
    end_turn(nvim, 1)
    nvim:wait('return #changes == 1')
    nvim:settle()
    same({ { true }, true }, nvim:lua('return { changes, here == vim.api.nvim_get_current_win() }'))
  end)

  it('tells them nothing of a chat that no window shows', function()
    local nvim = editor()
    nvim:lua([[
      vim.cmd('Co /new')
      _G.changes = {}
      vim.api.nvim_create_autocmd('TextChanged', {
        callback = function(event) changes[#changes + 1] = vim.api.nvim_buf_get_name(event.buf) end,
      })
    ]])
    end_turn(nvim, 1)
    end_turn(nvim, 2)
    nvim:wait('return #changes > 0')
    same({ 'co://chat/2' }, nvim:lua('return changes'))
  end)
end)
