local hostile = require('hostile')
local messages = require('messages')
local neovim = require('neovim')
local questions = require('questions')

-- The cases follow from the seed.
local SEED = math.floor(tonumber(vim.env.CO_TEST_SEED) or 7)
local CASES = math.max(2000, tonumber(vim.env.CO_TEST_CASES) or 0)

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
    -- They would wait for an answer, and open a browser.
    nvim:lua('vim.ui.select, vim.ui.open = function() end, function() return {} end')
    local names = hostile.types()
    same(true, #names > 20)
    for _ = 1, CASES do
      nvim:receive(random_message(names) --[[@as table]])
      local mode = nvim:request('nvim_get_mode') --[[@as table]]
      if mode.blocking then
        -- Neovim shows errors of autocommands of this message, and waits for a key.
        nvim:keys('<CR>')
      elseif mode.mode == 't' then
        -- A terminal has been opened. In its mode, Neovim tells its mode only after a pause.
        nvim:keys([[<C-\><C-n>]])
      end
    end
    nvim:receive(messages.state('idle'), { type = 'append', chat = 1, text = '\nthe last words\n' })
    neovim.wait('the last words', function()
      return vim.list_contains(nvim:lines('co://chat/1'), 'the last words')
    end)
  end)
end)

-- Rounds with each type of message; `make fuzz` does more.
local ROUNDS = math.max(20, math.floor(CASES / 100))

-- Notes each failure, and the processor time that the last message took.
local WATCH = [[
  local log, handlers = require('co.ui.log'), require('co.handlers')
  _G.failures, _G.took = {}, 0
  local add, receive = log.add, handlers.receive
  log.add = function(source, text)
    if vim.list_contains({ 'handlers', 'textlock', 'float' }, source) then
      table.insert(_G.failures, ('%s: %s'):format(source, text))
    end
    add(source, text)
  end
  handlers.receive = function(...)
    local since = os.clock()
    receive(...)
    vim.cmd.redraw()
    _G.took = os.clock() - since
  end
]]

-- The errors since the last time. Notices of co are no errors of Neovim.
local FAILURES = [[
  local failures = _G.failures
  if vim.v.errmsg ~= '' and not vim.startswith(vim.v.errmsg, 'co:') then
    table.insert(failures, vim.v.errmsg)
  end
  _G.failures, vim.v.errmsg = {}, ''
  return failures
]]

--- Gives a message to a Neovim that must go on without an error and without a key.
---@param nvim co.test.Neovim
---@param message table
local function take(nvim, message)
  local shown = function()
    return vim.inspect(message):sub(1, 2000)
  end
  nvim:receive(message)
  neovim.wait(shown, function()
    return not nvim:request('nvim_get_mode').blocking
  end)
  same({}, nvim:lua(FAILURES), shown())
  same(vim.NIL, nvim:lua('return vim.g.hostile'))
end

describe('any text in the fields of a message', function()
  it('is shown, and makes nothing fail', function()
    math.randomseed(SEED)
    local nvim = neovim.chat()
    nvim:lua(WATCH)
    nvim:lua([[
      vim.ui.select = function(items, opts, done)
        for _, item in ipairs(items) do
          vim.fn.strdisplaywidth((opts.format_item or tostring)(item))
        end
        vim.schedule(function() done(items[1]) end)
      end
    ]])
    for round = 1, ROUNDS do
      for _, type in ipairs(hostile.types()) do
        take(nvim, hostile.message(type, { chat = 1, id = round }))
      end
    end
  end)

  it('takes no question away from the person', function()
    math.randomseed(SEED)
    local nvim = questions.editor()
    nvim:lua(WATCH)
    -- It waits for no pause.
    nvim:lua("require('co.ui.focus').ignore_keys = function() end")
    local expected = {}
    for id = 1, ROUNDS * 2 do
      local message =
        hostile.message(math.random(4) == 1 and 'trust' or 'question', { chat = 1, id = id })
      if message.change then
        message.change.files = {}
      end
      take(nvim, message)
      for _, keys in ipairs({ 'Yq', 'g?q', 'aq', 'd' }) do
        nvim:wait_screen('co 1/1')
        nvim:keys('<F5>')
        nvim:wait(questions.FOCUSED)
        nvim:press(keys)
      end
      nvim:wait('return #vim.api.nvim_list_tabpages() == 1 or vim.bo.filetype == "co-question"')
      nvim:keys('q<F5>')
      nvim:press('n')
      table.insert(expected, { id, 'deny' })
      questions.wait_answers(nvim, expected)
      same({}, nvim:lua(FAILURES), vim.inspect(message):sub(1, 2000))
    end
  end)
end)
