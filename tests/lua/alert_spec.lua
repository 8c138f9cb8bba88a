-- Alerts of the terminal.

local messages = require('messages')
local neovim = require('neovim')

--- Returns a Neovim that keeps what it writes to its terminal in `_G.written`.
local function started()
  local nvim = neovim.start({ env = { TMUX = '' } })
  nvim:lua([[
    vim.env.TMUX = nil
    _G.written = {}
    local function keep(bytes) table.insert(_G.written, bytes) end
    vim.api.nvim_chan_send = function(_, bytes) keep(bytes) end
    if vim.api.nvim_ui_send then
      vim.api.nvim_ui_send = keep
    end
    require('co.handlers')
    vim.g.co = { alert_after = 0 }
  ]])
  return nvim
end

local function run(nvim, command, id)
  nvim:lua("vim.cmd('Co! ' .. ...)", command)
  nvim:receive(messages.ended(id, 0))
  nvim:wait("return require('co.run').running() == 0")
end

local function focus(nvim, event)
  nvim:lua('vim.api.nvim_exec_autocmds(..., {})', event)
end

describe('an alert', function()
  it('tells the end of a run while the terminal does not have the focus', function()
    local nvim = started()
    run(nvim, 'make', 1)
    focus(nvim, 'FocusLost')
    run(nvim, 'make \27]0;x\7; true', 2)
    focus(nvim, 'FocusGained')
    run(nvim, 'make', 3)
    same(
      { '\27]9;co: exit 0 · 0.1 s · 1 line: make  ]0 x   true\7' },
      nvim:lua('return _G.written')
    )
  end)

  for form, sequence in pairs({ osc9 = '9;co: %s', osc777 = '777;notify;Neovim;co: %s' }) do
    it('reaches the terminal as ' .. form, function()
      local nvim = neovim.start({ screen = true, env = { TMUX = '' } })
      local requests = {}
      vim.api.nvim_create_autocmd('TermRequest', {
        buffer = nvim.terminal,
        callback = function()
          requests[#requests + 1] = vim.v.termrequest
        end,
      })
      nvim:lua(
        "require('co.handlers') vim.g.co = { alert_after = 0, alert = ... } vim.env.TMUX = nil",
        form
      )
      focus(nvim, 'FocusLost')
      run(nvim, 'make', 1)
      neovim.wait(function()
        return vim.inspect(requests)
      end, function()
        local ended = sequence:format('exit 0 · 0.1 s · 1 line: make')
        return vim.list_contains(requests, '\27]' .. ended)
      end)
      nvim:wait_screen('exit 0 · 0.1 s · 1 line')
    end)
  end

  it('does not tell the end of a short run or turn', function()
    local nvim = started()
    nvim:lua('vim.g.co = {}')
    focus(nvim, 'FocusLost')
    run(nvim, 'make', 1)
    for _, name in ipairs({ 'CoTurnStarted', 'CoTurnDone' }) do
      nvim:receive({ type = 'event', name = name, data = { chat = 1, reason = 'done' } })
    end
    same({}, nvim:lua('return _G.written'))
  end)

  it('tells a question, the end of a turn, and takes the form that is set', function()
    local nvim = started()
    focus(nvim, 'FocusLost')
    nvim:lua("vim.g.co = { alert = 'osc777', alert_after = 0 } vim.env.TMUX = 'x'")
    nvim:receive(messages.ask(1))
    nvim:wait('return #_G.written == 1')
    nvim:lua("vim.g.co = { alert = 'bell', alert_after = 0 } vim.env.TMUX = nil")
    for _, name in ipairs({ 'CoTurnStarted', 'CoTurnDone' }) do
      nvim:receive({ type = 'event', name = name, data = { chat = 1, reason = 'done' } })
    end
    nvim:wait('return #_G.written == 2')
    nvim:lua('vim.g.co = { alert = false, alert_after = 0 }')
    run(nvim, 'make', 1)
    same(
      { '\27Ptmux;\27\27]777;notify;Neovim;co asks: touch file1\7\27\\', '\7' },
      nvim:lua('return _G.written')
    )
  end)
end)
