-- Reviews of texts that a plain buffer or a parser of Neovim could not take.
local messages = require('messages')
local neovim = require('neovim')
local questions = require('questions')
local ask, editor, reach = messages.ask, questions.editor, questions.reach

-- The most bytes of a part, as in src/protocol/change.rs.
local FIRST, PART = 64 * 1024, 256 * 1024
-- The most milliseconds of one turn of the event loop.
local BOUND = 50

-- Counts the milliseconds that one turn of the event loop takes, not those that other programs take meanwhile.
local WATCH = [[
  local function spent()
    local usage = vim.uv.getrusage()
    local user, system = usage.utime, usage.stime
    return (user.sec + system.sec) * 1e3 + (user.usec + system.usec) / 1e3
  end
  local last = spent()
  _G.longest = 0
  _G.watch = assert(vim.uv.new_timer())
  watch:start(0, 1, function()
    local now = spent()
    _G.longest = math.max(_G.longest, now - last)
    last = now
  end)
]]

--- Asks about a change of a file whose text is long, opens its review, and sends the parts that it asks for until all is there.
---@param path string
---@param text string
---@return co.test.Neovim
local function open(path, text)
  local nvim = editor()
  nvim:lua(WATCH)
  local file = messages.file(path, text, { text = text:sub(1, FIRST), more = #text > FIRST })
  nvim:receive(ask(1, {
    command = 'write_file ' .. path,
    timeout = vim.NIL,
    change = messages.change({ diff = '+x\n', files = { file } }),
  }))
  nvim:wait_screen('write_file ' .. path)
  reach(nvim, 'd')
  nvim:wait_screen('change 1 of ')
  local sent = #text > FIRST and FIRST or nil
  local count = 0
  while sent and sent < #text do
    count = count + 1
    local from = nvim:wait_sent(count, 'read_review').from
    same(sent, from)
    local part = text:sub(from + 1, from + PART)
    sent = from + #part
    nvim:receive({
      type = 'review_part',
      id = 1,
      file = 0,
      from = from,
      text = part,
      more = sent < #text,
    })
  end
  return nvim
end

--- Answers with a key, once the review takes it, and checks that nothing blocked Neovim.
---@param nvim co.test.Neovim
local function accept(nvim)
  neovim.wait('the answer', function()
    nvim:keys('Y')
    return nvim:sent('answer')[1] ~= nil
  end)
  local longest = nvim:lua('watch:stop() return longest') --[[@as number]]
  yes(longest <= BOUND, ('a turn of the event loop took %d ms'):format(longest))
end

describe('the review of a long text', function()
  it('takes 500,000 lines', function()
    local nvim = open('a.txt', '@\n' .. ('+line\n'):rep(500000))
    nvim:wait('return vim.api.nvim_buf_line_count(0) == 500001')
    nvim:keys('G')
    nvim:wait_screen('500001,1')
    accept(nvim)
  end)

  it('takes a line of 10 MB', function()
    local nvim = open('a.txt', '@\n+' .. ('0123456789abcde '):rep(655360) .. 'end\n')
    nvim:wait('return vim.fn.getline("$"):sub(-3) == "end"')
    nvim:keys('G$')
    nvim:wait_screen('end')
    accept(nvim)
  end)

  it('takes many parts', function()
    local nvim = open('a.txt', (' a\n@\n-b\n+c\n'):rep(20000))
    nvim:wait('return vim.api.nvim_buf_line_count(0) == 80000')
    accept(nvim)
  end)

  it('takes a text that a parser of Neovim cannot', function()
    for path, line in pairs({
      ['README.md'] = ('> '):rep(300) .. 'x',
      ['a.md'] = ('- '):rep(2000) .. 'x',
      ['a.lua'] = ('{'):rep(100 * 1024),
      ['a.c'] = ('('):rep(100 * 1024),
    }) do
      local nvim = open(path, ('@\n-old\n+%s\n'):format(line))
      nvim:settle()
      accept(nvim)
    end
  end)
end)
