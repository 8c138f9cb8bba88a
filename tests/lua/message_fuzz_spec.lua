local messages = require('messages')
local neovim = require('neovim')

-- The cases follow from the seed.
local SEED = math.floor(tonumber(vim.env.CO_TEST_SEED) or 7)
local CASES = math.max(2000, tonumber(vim.env.CO_TEST_CASES) or 0)

-- Every type of the messages to Lua, as the Lua types name them.
local function types()
  local found = {}
  local text = table.concat(vim.fn.readfile(co_root .. '/lua/co/types/to_editor.lua'), '\n')
  for name in text:gmatch("%-%-%-@field type '([%w_]+)'") do
    table.insert(found, name)
  end
  return found
end

local function random_value(depth)
  local kinds = {
    function()
      return math.random(-3, 3)
    end,
    function()
      return 2 ^ 62
    end,
    function()
      return ({ '', 'x', 'a\nb', ('y'):rep(5000), '\255\0' })[math.random(5)]
    end,
    function()
      return math.random() < 0.5
    end,
    function()
      return vim.NIL
    end,
    function()
      return depth > 0 and { random_value(depth - 1), random_value(depth - 1) } or {}
    end,
    function()
      return depth > 0 and { from = random_value(0), lines = random_value(1) } or vim.empty_dict()
    end,
  }
  local make = assert(kinds[math.random(#kinds)])
  return make()
end

-- Messages as they should be, whose fields are changed.
local WHOLE = {
  messages.ask(1),
  messages.trust(2),
  messages.state('thinking'),
  { type = 'block', chat = 1, block = 1, patch = messages.patch(0, { 'a' }), done = true },
  { type = 'run_output', run = 1, patch = messages.patch(0, { 'a' }) },
  { type = 'append', chat = 1, text = 'words' },
}

local function any_field(message)
  local names = vim.tbl_keys(message)
  table.sort(names)
  return names[math.random(#names)]
end

local function random_message(names)
  if math.random(20) == 1 then
    return random_value(1)
  end
  local message = math.random(2) == 1 and vim.deepcopy(WHOLE[math.random(#WHOLE)] --[[@as table]])
    or { type = names[math.random(#names)] }
  local fields =
    { 'chat', 'id', 'run', 'block', 'text', 'patch', 'state', 'request', 'change', 'choices' }
  for _ = 1, math.random(0, 3) do
    local at = math.random(2) == 1 and fields[math.random(#fields)] or any_field(message)
    if at and at ~= 'type' then
      message[at] = random_value(2)
    end
  end
  return message
end

describe('messages that no backend sends', function()
  it('break nothing: those after it are shown', function()
    math.randomseed(SEED)
    local nvim = neovim.start({ screen = true })
    nvim:enter_chat()
    -- It would wait for an answer.
    nvim:lua('vim.ui.select = function() end')
    local names = types()
    same(true, #names > 20)
    for _ = 1, CASES do
      nvim:receive(random_message(names) --[[@as table]])
      local mode = nvim:request('nvim_get_mode') --[[@as table]]
      if mode.blocking then
        -- Neovim shows errors of autocommands of this message, and waits for a key.
        nvim:keys('<CR>')
      end
    end
    nvim:receive(messages.state('idle'), { type = 'append', chat = 1, text = '\nthe last words\n' })
    neovim.wait('the last words', function()
      return vim.list_contains(nvim:lines('co://chat/1'), 'the last words')
    end)
  end)
end)
