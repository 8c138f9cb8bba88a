-- A turn of an agent in a headless Neovim: `nvim --headless --clean -l turn.lua ROOT SETTINGS PROMPT`. Writes what happened as JSON.
local root, settings, prompt = arg[1], vim.json.decode(arg[2]), arg[3]
vim.opt.runtimepath:prepend(root)
vim.g.co = settings
vim.cmd.runtime('plugin/co.lua')

local question = require('co.question')
local turns = 0
vim.api.nvim_create_autocmd('User', {
  pattern = 'CoTurnDone',
  callback = function()
    turns = turns + 1
  end,
})

--- Answers each question about the hosts of the vendor with yes, and all others about hosts with no, until something holds.
---@param holds fun(): boolean
---@return boolean in time
local function until_(holds)
  return (vim.wait(120000, function()
    for _, asked in ipairs(question.pending()) do
      local hosts = asked.hosts or {}
      question.answer(asked.id, (#hosts == 0 or #hosts > 1) and 'once' or 'deny')
    end
    return holds()
  end, 20))
end

--- Returns the texts of the files of the workspace.
---@return table<string, string>
local function files()
  local found = {}
  for _, name in ipairs(vim.fn.glob('*', true, true)) do
    found[name] = table.concat(vim.fn.readfile(name, 'b'), '\n')
  end
  return found
end

--- Returns the text of the chat.
---@return string
local function chat()
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    local lines = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
    local name = vim.api.nvim_buf_get_name(buf)
    if name:match('^co://chat/1') and not name:match('prompt') then
      return table.concat(lines, '\n')
    end
  end
  return ''
end

local before = files()
vim.cmd('Co /agent codex')
vim.cmd('Co ' .. prompt)
local ended = until_(function()
  return turns > 0
end)
local after = files()
vim.cmd('Co /undo')
local undone = until_(function()
  return vim.deep_equal(files(), before)
end)
io.stdout:write(vim.json.encode({
  before = before,
  after = after,
  restored = files(),
  ended = ended,
  undone = undone,
  chat = chat(),
  log = require('co.ui.log').lines(),
}))
vim.cmd('qall!')
