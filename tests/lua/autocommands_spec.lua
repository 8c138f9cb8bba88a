-- Autocommands of other plugins that fail while co opens, changes and closes what it shows.

local messages = require('messages')
local neovim = require('neovim')
local questions = require('questions')

-- An autocommand that fails for what co shows, and one after it that does not.
local PLUGINS = [[
  local function about_co(args)
    return args.event == 'User'
      or vim.api.nvim_buf_get_name(args.buf):find('^co://')
      or vim.bo[args.buf].filetype:find('^co%-')
  end
  _G.failed, _G.came = 0, 0
  for _, fails in ipairs({ true, false }) do
    vim.api.nvim_create_autocmd(..., { callback = function(args)
      if not about_co(args) then
        return
      elseif fails then
        _G.failed = _G.failed + 1
        error('boom')
      end
      _G.came = _G.came + 1
    end })
  end
  vim.keymap.set('n', '<F6>', '<Plug>(co-chat)')
  vim.keymap.set('n', '<F5>', '<Plug>(co-approve)')
]]

describe('a failing autocommand of another plugin', function()
  for _, event in ipairs({
    'User',
    'TextChanged',
    'FileType',
    'Syntax',
    'BufWinEnter',
    'BufEnter',
    'BufLeave',
    'BufHidden',
    'WinNew',
    'WinEnter',
    'WinLeave',
    'WinClosed',
  }) do
    it('stops nothing: ' .. event, function()
      local nvim = neovim.start()
      nvim:lua(PLUGINS, event)
      nvim:keys('<F6>')
      nvim:wait("return vim.bo.filetype == 'co-prompt'")
      nvim:receive(messages.state('thinking'), messages.append('text\n'))
      nvim:receive(messages.state('idle', { transcript = '2026-abc' }))
      nvim:receive({ type = 'event', name = 'CoTurnDone', data = { chat = 1, reason = 'done' } })
      nvim:wait("return vim.g.CoChats ~= nil and (... ~= 'TextChanged' or _G.failed > 0)", event)
      nvim:keys('<F6>')
      nvim:wait("return vim.fn.bufwinid('^co://chat/1$') == -1")
      nvim:receive(messages.ask(1))
      nvim:wait(questions.FLOATS .. ' == 1')
      nvim:keys('<F5>')
      nvim:wait(questions.FOCUSED)
      nvim:press('y')
      nvim:wait_sent(1, 'answer')
      nvim:wait(questions.FLOATS .. ' == 0')
      nvim:keys(':Co! ls<CR>')
      nvim:wait("return vim.fn.bufwinid('co://shell') > 0")
      local failed, came = unpack(nvim:lua('return { _G.failed, _G.came }'))
      yes(failed > 0, 'it was run')
      same(failed, came)
      local logged = nvim:lua("return table.concat(require('co.ui.log').lines(), ' ')")
      yes(logged:find('boom'), logged)
      -- Neovim itself runs it when the person enters a buffer that changed.
      if event ~= 'TextChanged' then
        same('', nvim:lua("return vim.api.nvim_exec2('messages', { output = true }).output"))
        same('', nvim:lua('return vim.v.errmsg'))
      end
    end)
  end
end)
