-- A turn with tool servers in a headless Neovim: `nvim --headless --clean -l servers.lua ROOT SETTINGS PROMPT`. Fills in each form with
-- the first choice, or a word. Writes what happened as JSON.
local root, settings, prompt = arg[1], vim.json.decode(arg[2]), arg[3]
local scene = dofile(root .. '/scripts/agents/scene.lua')(root, settings)

-- The longest time for the turn, in milliseconds.
local DEADLINE = 120000

local question = require('co.question')

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

vim.cmd('Co ' .. prompt)
local ended = vim.wait(DEADLINE, function()
  fill_in()
  return scene.turns > 0
end, 20)
scene.finish({
  ended = ended,
  slashes = vim.fn.getcompletion('Co /mcp:', 'cmdline'),
})
