-- A login at the tool server `hub`, and a turn with tool servers, in a headless Neovim: `nvim --headless --clean -l servers.lua ROOT
-- SETTINGS PROMPT`. Fills in each form with the first choice, or a word, and allows the calls of `hub`. Writes what happened as JSON.
local root, settings, prompt = arg[1], vim.json.decode(arg[2]), arg[3]
local scene = dofile(root .. '/scripts/agents/scene.lua')(root, settings)

-- The longest time for the login, and for the turn, in milliseconds.
local DEADLINE = 120000

local question = require('co.question')

-- The browser.
vim.ui.open = function(address)
  return vim.system({ 'curl', '--silent', '--location', address })
end

--- Answers each question.
local function answer()
  for _, asked in ipairs(question.pending()) do
    local chosen = vim.tbl_map(function(part)
      local has_choices = part.choices[1] ~= nil
      return has_choices and { choices = { 1 } } or { choices = {}, text = 'word' }
    end, asked.choices or {})
    local is_of_hub = asked.server and asked.server.name == 'hub'
    question.answer(asked.id, asked.choices and 'chosen' or is_of_hub and 'once' or 'deny', { chosen = chosen })
  end
end

vim.cmd('Co /mcp login hub')
vim.wait(DEADLINE, function()
  answer()
  return table.concat(require('co.ui.log').lines(), '\n'):find('logged in') ~= nil
end, 20)
vim.cmd('Co ' .. prompt)
local ended = vim.wait(DEADLINE, function()
  answer()
  return scene.turns > 0
end, 20)
scene.finish({
  ended = ended,
  slashes = vim.fn.getcompletion('Co /mcp:', 'cmdline'),
})
