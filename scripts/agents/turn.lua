-- A turn of an agent in a headless Neovim: `nvim --headless --clean -l turn.lua ROOT AGENT SETTINGS PROMPT`. Writes what happened as
-- JSON.
local root, agent, settings, prompt = arg[1], arg[2], vim.json.decode(arg[3]), arg[4]
local scene = dofile(root .. '/scripts/agents/scene.lua')(root, settings)

-- The longest time for one step, in milliseconds.
local DEADLINE = 60000

local focus = require('co.ui.focus')
local question = require('co.question')

-- The hosts that the agent asked for in its turn.
---@type string[]
local refused = {}

--- Answers each question until something holds: takes the first choice of a request for permission, and allows only the hosts of the
--- vendor, which come together.
---@param holds fun(): boolean
---@return boolean in time
local function until_(holds)
  return (vim.wait(DEADLINE, function()
    for _, asked in ipairs(question.pending()) do
      local hosts = asked.hosts or {}
      if #hosts == 1 then
        vim.list_extend(refused, hosts)
      end
      if asked.choices then
        question.answer(asked.id, 'chosen', { chosen = { { choices = { 1 } } } })
      else
        question.answer(asked.id, #hosts == 1 and 'deny' or 'once')
      end
    end
    return holds()
  end, 20))
end

--- Presses keys in the review as soon as it shows a text in the line of the cursor.
---@param text string
---@param keys string
local function press(text, keys)
  vim.wait(DEADLINE, function()
    local is_review = vim.api.nvim_buf_get_name(0):match('review: ') ~= nil
    local line = vim.api.nvim_get_current_line()
    return is_review and line:find(text, 1, true) and not focus.ignores_keys()
  end, 20)
  vim.api.nvim_feedkeys(keys, 'mx', false)
end

--- Returns the texts of the files of the workspace.
---@return table<string, string>
local function files()
  local found = {}
  for _, name in ipairs(vim.fn.glob('*', true, true)) do
    -- It may go meanwhile.
    local is_there, lines = pcall(vim.fn.readfile, name, 'b')
    found[name] = is_there and table.concat(lines, '\n') or nil
  end
  return found
end

local before = files()
-- No buffer may have the file: co changes no buffer while this script runs.
vim.fn.setqflist({ { filename = 'a.txt', lnum = 1, text = 'in-the-quickfix-list' } })
vim.cmd('Co /agent ' .. agent)
vim.cmd('Co ' .. prompt)
local ended = until_(function()
  return scene.turns > 0
end)
local after = files()
vim.cmd('Co /review')
press('change 1 of 2', 'n')
press('change 2 of 2', 'q')
vim.wait(DEADLINE, function()
  return files()['a.txt'] ~= after['a.txt'] and scene.chat():find('took parts', 1, true) ~= nil
end, 20)
local reviewed = files()
vim.cmd('Co /undo')
local undone = until_(function()
  return vim.deep_equal(files(), before)
end)
scene.finish({
  before = before,
  after = after,
  reviewed = reviewed,
  refused = refused,
  restored = files(),
  ended = ended,
  undone = undone,
})
