-- Reviews of texts that a plain buffer or a parser of Neovim could not take.
local messages = require('messages')
local neovim = require('neovim')
local questions = require('questions')
local ask, editor, reach = messages.ask, questions.editor, questions.reach

-- The most bytes of a part, as in src/protocol/change.rs.
local FIRST, PART = 64 * 1024, 256 * 1024
-- The cases follow from the seed.
local SEED = math.floor(tonumber(vim.env.CO_TEST_SEED) or 7)
local CASES = math.max(6, math.floor((tonumber(vim.env.CO_TEST_CASES) or 0) / 50))

-- Pieces of which a text is made that is short enough for a parser.
local PIECES = {
  '{',
  '}',
  '(',
  ')',
  '[',
  ']',
  '[[',
  ']]',
  '[=[',
  '"',
  "'",
  '`',
  '```',
  '~~~',
  '\\',
  '/*',
  '*/',
  '//',
  '--',
  '--[[',
  '#',
  '#if',
  '#define x(',
  '*',
  '_',
  '**',
  '<',
  '>',
  '> ',
  '- ',
  '1. ',
  '|',
  '$',
  '$(',
  '${',
  '=',
  ';',
  ',',
  ':',
  '@',
  'a',
  'function',
  'end',
  'if ',
  'then',
  'local ',
  'for',
  'é',
  '中',
  ' ',
  '  ',
  '\t',
  '\n',
  '\n\n',
  '\n    ',
  '&',
  '!',
  '~',
  '%',
}
-- Neovim ships parsers of these.
local PATHS = { 'a.lua', 'a.c', 'README.md', 'a.vim', 'a.query', 'doc/a.txt' }

--- Asks about a change of a file whose text is long, opens its review, and sends the parts that it asks for until all is there.
---@param path string
---@param text string
---@return co.test.Neovim
local function open(path, text)
  local nvim = editor()
  nvim:watch_turns()
  local file = messages.file(path, text, { text = text:sub(1, FIRST), more = #text > FIRST })
  nvim:receive(ask(1, {
    command = 'write_file ' .. path,
    change = messages.change({ excerpt = '+x\n', files = { file } }),
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

--- Reviews a change, calls `act` and accepts the change. Nothing may block Neovim.
---@param path string
---@param text string
---@param act fun(nvim: co.test.Neovim)
local function check(path, text, act)
  neovim.assert_quick(text:sub(1, 100), function()
    local nvim = open(path, text)
    act(nvim)
    neovim.wait('the answer', function()
      nvim:keys('Y')
      return nvim:sent('answer')[1] ~= nil
    end)
    local longest = nvim:longest_turn()
    nvim:stop()
    return longest
  end)
end

describe('the review of a long text', function()
  it('takes 500,000 lines', function()
    check('a.txt', '@\n' .. ('+line\n'):rep(500000), function(nvim)
      nvim:wait('return vim.api.nvim_buf_line_count(0) == 500001')
      nvim:keys('G')
      nvim:wait_screen('500001,1')
    end)
  end)

  it('takes a line of 10 MB', function()
    local line = ('0123456789abcde '):rep(655360) .. 'end'
    check('a.txt', '@\n+' .. line .. '\n', function(nvim)
      nvim:wait('return vim.fn.getline("$"):sub(-3) == "end"')
      nvim:keys('G$')
      nvim:wait_screen('end')
    end)
  end)

  it('takes many parts', function()
    check('a.txt', (' a\n@\n-b\n+c\n'):rep(20000), function(nvim)
      nvim:wait('return vim.api.nvim_buf_line_count(0) == 80000')
    end)
  end)

  it('takes a text that a parser of Neovim cannot', function()
    for path, line in pairs({
      ['README.md'] = ('> '):rep(300) .. 'x',
      ['a.md'] = ('- '):rep(2000) .. 'x',
      ['a.lua'] = ('{'):rep(100 * 1024),
      ['a.c'] = ('('):rep(100 * 1024),
    }) do
      check(path, ('@\n-old\n+%s\n'):format(line), function(nvim)
        nvim:settle()
      end)
    end
  end)

  it('takes lines that Neovim would match with each other for a second', function()
    math.randomseed(SEED)
    local text = { '@\n' }
    for index = 1, 40 do
      local letters = {}
      for letter = 1, 1000 do
        letters[letter] = string.char(97 + math.random(0, 3))
      end
      text[index + 1] = ('%s%s\n'):format(index <= 20 and '-' or '+', table.concat(letters))
    end
    check('a.txt', table.concat(text), function(nvim)
      nvim:lua("vim.opt.diffopt:append('linematch:40')")
      local before = nvim:lua('return vim.o.diffopt')
      nvim:wait('return vim.api.nvim_buf_line_count(0) == 41')
      nvim:keys('=')
      nvim:wait_screen('before the change')
      nvim:keys('q')
      nvim:wait_gone('before the change')
      same(before, nvim:lua('return vim.o.diffopt'))
    end)
  end)

  it('takes any short text', function()
    math.randomseed(SEED)
    for case = 1, CASES do
      local path = PATHS[case % #PATHS + 1] --[[@as string]]
      local pieces = {}
      -- Some texts have a few pieces over and over; in some, each line is short.
      local few, length = math.random(2) == 1 and math.random(1, 4) or #PIECES, 0
      local from = math.random(#PIECES)
      local breaks = math.random(3) > 1
      while length < 22 * 1024 do
        local piece = PIECES[(from + math.random(few)) % #PIECES + 1] --[[@as string]]
        if breaks and math.random(12) == 1 then
          piece = '\n'
        end
        pieces[#pieces + 1], length = piece, length + #piece
      end
      local text = table.concat(pieces)
      check(path, '@\n+' .. text:gsub('\n', '\n+') .. '\n', function(nvim)
        -- The work of the parser ends or is given up.
        local last = -1
        neovim.wait('the colours', function()
          local marks = nvim:lua([[
            local namespace = vim.api.nvim_get_namespaces()['co.review.colours']
            vim.wait(300)
            return #vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, {})
          ]])
          local same_number = marks == last
          last = marks --[[@as integer]]
          return same_number
        end)
      end)
    end
  end)
end)
