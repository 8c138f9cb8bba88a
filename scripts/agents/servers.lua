-- A turn with tool servers in a headless Neovim: `nvim --headless --clean -l servers.lua ROOT SETTINGS PROMPT`. Fills in each form with
-- the first choice, or a word. Writes what happened as JSON.
local root, settings, prompt = arg[1], vim.json.decode(arg[2]), arg[3]
vim.opt.runtimepath:prepend(root)
vim.g.co = settings
vim.cmd.runtime('plugin/co.lua')

-- The longest time for the turn, in milliseconds.
local DEADLINE = 120000

local question = require('co.question')
local turns = 0
vim.api.nvim_create_autocmd('User', {
  pattern = 'CoTurnDone',
  callback = function()
    turns = turns + 1
  end,
})

--- Answers each question of a form.
local function fill_in()
  for _, asked in ipairs(question.pending()) do
    local chosen = vim.tbl_map(function(part)
      local has_choices = part.choices[1] ~= nil
      return has_choices and { choices = { 1 } } or { choices = {}, text = 'word' }
    end, asked.choices or {})
    question.answer(asked.id, asked.choices and 'chosen' or 'deny', { chosen = chosen })
  end
end

--- Returns the text of the chat.
---@return string
local function chat()
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    local name = vim.api.nvim_buf_get_name(buf)
    if name:match('^co://chat/1') and not name:match('prompt') then
      return table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), '\n')
    end
  end
  return ''
end

vim.cmd('Co ' .. prompt)
local ended = vim.wait(DEADLINE, function()
  fill_in()
  return turns > 0
end, 20)
io.stdout:write(vim.json.encode({
  ended = ended,
  chat = chat(),
  slashes = vim.fn.getcompletion('Co /mcp:', 'cmdline'),
  log = require('co.ui.log').lines(),
}))
vim.cmd('qall!')
