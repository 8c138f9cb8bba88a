-- An agent in a terminal of a headless Neovim: `nvim --headless --clean -l terminal.lua ROOT SETTINGS COMMAND`. Allows it the tools of co.
-- Writes what happened as JSON.
local root, settings, command = arg[1], vim.json.decode(arg[2]), vim.json.decode(arg[3])
vim.opt.runtimepath:prepend(root)
vim.g.co = settings
vim.cmd.runtime('plugin/co.lua')

-- The longest time for the agent, in milliseconds.
local DEADLINE = 120000

local question = require('co.question')
vim.cmd.edit('a.txt')
vim.fn.setqflist({ { filename = 'a.txt', lnum = 1, text = 'in-the-quickfix-list' } })

---@type string[]
local asked, output = {}, {}
---@type integer?
local status
vim.fn.jobstart(command, {
  stdin = 'null',
  on_stdout = function(_, data)
    vim.list_extend(output, data)
  end,
  on_stderr = function(_, data)
    vim.list_extend(output, data)
  end,
  on_exit = function(_, code)
    status = code
  end,
})
vim.wait(DEADLINE, function()
  for _, one in ipairs(question.pending()) do
    asked[#asked + 1] = one.cwd
    question.answer(one.id, 'once')
  end
  return status ~= nil
end, 20)
io.stdout:write(vim.json.encode({
  status = status,
  asked = asked,
  output = table.concat(output, '\n'),
  log = require('co.ui.log').lines(),
}))
vim.cmd('qall!')
