-- The buffer of a file has exactly the approved text after an edit, and so has the file.
local neovim = require('neovim')
local editor = require('questions').editor

--- Ways to store the lines of a file.
local ENCODINGS = {
  { name = 'utf-8', encode = 'utf-8' },
  { name = 'utf-8 with a mark', encode = 'utf-8', mark = '\239\187\191' },
  { name = 'latin1', encode = 'latin1', bytes = true },
  { name = 'utf-16le', encode = 'utf-16le', mark = '\255\254' },
}

--- Generated edits; `make fuzz` makes more.
local CASES = math.max(300, tonumber(vim.env.CO_TEST_CASES) or 0)

local OLD = { 'one é', 'two', 'three\rstill three', 'four' }

--- The ends of lines: 'fileformat', the end of a line in the file, and the lines that the buffer has of `OLD`.
local ENDS = {
  { name = 'unix', line_end = '\n', old = OLD },
  { name = 'dos', line_end = '\r\n', old = OLD },
  { name = 'mixed', line_end = '\n', old = { OLD[1] .. '\r', OLD[2], OLD[3], OLD[4] } },
}

---@param first integer
---@param last integer
---@param lines string[]
---@return co.Replacement
local function replace(first, last, lines)
  return { start = first, ['end'] = last, lines = lines }
end

---@type table<string, co.Replacement[]>
local EDITS = {
  insert = { replace(1, 1, { 'new', '', 'newer\rstill newer' }) },
  change = { replace(1, 2, { 'TWO é' }) },
  delete = { replace(1, 3, {}) },
  ['delete the last line'] = { replace(3, 4, {}) },
  append = { replace(4, 4, { 'five', 'six' }) },
  ['append an empty line'] = { replace(4, 4, { '' }) },
  ['append two empty lines'] = { replace(4, 4, { '', '' }) },
  ['append to the last line'] = { replace(3, 4, { 'four', 'five' }) },
  ['shorten the last line'] = { replace(3, 4, { '' }) },
  prepend = { replace(0, 0, { 'zero' }) },
  empty = { replace(0, 4, {}) },
  ['leave one empty line'] = { replace(0, 4, { '' }) },
  ['change all'] = { replace(0, 4, { 'all', 'of it' }) },
  several = { replace(0, 1, { '1' }), replace(2, 2, { 'new' }), replace(3, 4, {}) },
  ['remove a carriage return'] = { replace(2, 3, { 'three still three' }) },
  ['change final line breaks only'] = {},
}

--- Returns lines after an edit.
---@param lines string[]
---@param replacements co.Replacement[]
---@return string[]
local function edited(lines, replacements)
  local new, at = {}, 0
  for _, one in ipairs(replacements) do
    vim.list_extend(new, lines, at + 1, one.start)
    vim.list_extend(new, one.lines)
    at = one['end']
  end
  return vim.list_extend(new, lines, at + 1)
end

--- Returns random lines.
---@param most integer
---@return string[]
local function random_lines(most)
  local words = { '', 'a', 'é', 'b\r', '\r', 'longer', ' é a', '☃' }
  local lines = {}
  for _ = 1, math.random(0, most) do
    lines[#lines + 1] = words[math.random(#words)] .. words[math.random(#words)]
  end
  return lines
end

--- Returns random replacements of some lines.
---@param count integer
---@return co.Replacement[]
local function random_replacements(count)
  local all, at = {}, 0
  while at <= count and math.random(3) > 1 do
    local first = math.random(at, count)
    local last = math.random(first, math.min(count, first + 3))
    all[#all + 1] = replace(first, last, random_lines(3))
    at = last + 1
  end
  return all
end

--- Returns a text of lines.
---@param lines string[]
---@param final boolean whether it ends with a line break
---@param line_end string
---@return string
local function text_of(lines, final, line_end)
  return table.concat(lines, line_end) .. ((final and #lines > 0) and line_end or '')
end

describe('an edit of an open file', function()
  --- Starts a Neovim for many files. Returns functions that open one and change it.
  local function start()
    local nvim = editor()
    local file = vim.fn.resolve(neovim.dir()) .. '/a.txt'
    local scene, requests = { nvim = nvim, file = file }, 0

    --- Sends a request. Returns its answer.
    ---@return table
    local function ask(kind, message)
      requests = requests + 1
      nvim:receive(vim.tbl_extend('force', message, { request = requests }))
      local function last()
        local sent = nvim:sent(kind)
        return sent[#sent] or {}
      end
      neovim.wait('an answer', function()
        return last().request == requests
      end)
      return last()
    end

    function scene.bytes()
      local handle = assert(io.open(file, 'rb'))
      local bytes = handle:read('*a')
      handle:close()
      return bytes
    end

    function scene.open(bytes)
      local handle = assert(io.open(file, 'wb'))
      handle:write(bytes)
      handle:close()
      nvim:lua('vim.cmd("silent! %bwipeout!") vim.cmd("silent edit " .. ...)', file)
    end

    ---@return table
    function scene.read()
      ---@type any
      local reply = ask('buffers', { type = 'read_buffers', files = { file } })
      return reply.buffers[1]
    end

    ---@return table
    function scene.change(replacements, final, tick)
      return ask('buffer_changed', {
        type = 'change_buffer',
        file = file,
        tick = tick or scene.read().tick,
        replacements = replacements,
        final_newline = final,
      })
    end

    return scene
  end

  --- Checks each edit of one way to store a file, with and without final line breaks.
  local function check(scene, encoding, ends, unsaved)
    local function stored(lines, final)
      local text = text_of(lines, final, ends.line_end)
      local utf8 = encoding.encode == 'utf-8'
      return (encoding.mark or '')
        .. (utf8 and text or assert(vim.iconv(text, 'utf-8', encoding.encode)))
    end
    for name, replacements in pairs(EDITS) do
      for _, finals in ipairs({ { true, true }, { true, false }, { false, true }, { false, false } }) do
        local new = edited(ends.old, replacements)
        local final = finals[2] or #new == 0
        -- The backend counts an empty last line without a line break as the break of the line before.
        if final or new[#new] ~= '' then
          local case = ('%s, %s, final line breaks %s, unsaved %s'):format(
            name,
            ends.name,
            vim.inspect(finals),
            tostring(unsaved)
          )
          scene.open(stored(ends.old, finals[1]))
          if unsaved then
            scene.nvim:lua('vim.bo.modified = true')
          end
          local before = scene.read()
          same(text_of(ends.old, finals[1], '\n'), before.text, case)
          local reply = scene.change(replacements, final, before.tick)
          same(
            { nil, unsaved and 'it had unsaved changes' or nil },
            { reply.problem, reply.unsaved },
            case
          )
          same(text_of(new, final, '\n'), scene.read().text, case)
          if unsaved then
            same(stored(ends.old, finals[1]), scene.bytes(), case)
            scene.nvim:lua('vim.bo.fixendofline = false vim.cmd("silent write")')
          end
          same(stored(new, final), scene.bytes(), case)
        end
      end
    end
  end

  for _, encoding in ipairs(ENCODINGS) do
    it('makes the approved text, byte for byte, in ' .. encoding.name, function()
      local scene = start()
      for _, ends in ipairs(ENDS) do
        check(scene, encoding, ends, false)
        if encoding.name == 'utf-8' then
          check(scene, encoding, ends, true)
        end
      end
    end)
  end

  it('makes the approved text of generated edits, byte for byte', function()
    local scene = start()
    local seed = os.time()
    math.randomseed(seed)
    for _ = 1, CASES do
      local old = random_lines(8)
      local replacements = random_replacements(#old)
      local new, finals = edited(old, replacements), {}
      for at, lines in ipairs({ old, new }) do
        finals[at] = #lines == 0 or lines[#lines] == '' or math.random(2) == 1
      end
      local case = vim.inspect({ seed, old, replacements, finals })
      -- Else Neovim would take all carriage returns for line breaks.
      scene.open('unix\n' .. text_of(old, finals[1], '\n'))
      scene.nvim:lua('vim.api.nvim_buf_set_lines(0, 0, 1, true, {}) vim.bo.modified = false')
      if #old == 0 then
        scene.open('')
      end
      local before = scene.read()
      same(text_of(old, finals[1], '\n'), before.text, case)
      same(nil, scene.change(replacements, finals[2], before.tick).problem, case)
      same(text_of(new, finals[2], '\n'), scene.read().text, case)
      same(text_of(new, finals[2], '\n'), scene.bytes(), case)
    end
  end)

  it('tells an empty file from one with an empty line', function()
    local scene = start()
    for _, case in ipairs({
      { '', {}, '' },
      { '', { replace(0, 0, { '' }) }, '\n' },
      { '', { replace(0, 0, { '', '' }) }, '\n\n' },
      { '', { replace(0, 0, { 'one' }) }, 'one\n' },
      { '\n', { replace(0, 1, {}) }, '' },
      { '\n', { replace(1, 1, { 'two' }) }, '\ntwo\n' },
      { '\n', { replace(0, 0, { 'zero' }) }, 'zero\n\n' },
      { '\n', { replace(0, 1, { 'one', '' }) }, 'one\n\n' },
    }) do
      scene.open(case[1])
      same(case[1], scene.read().text)
      scene.change(case[2], true)
      same({ case[3], case[3] }, { scene.read().text, scene.bytes() }, vim.inspect(case))
    end
  end)

  it('counts an empty last line without a line break as the break of the line before', function()
    local scene = start()
    scene.open('one')
    scene.nvim:keys('o<Esc>')
    scene.nvim:wait('return vim.api.nvim_buf_line_count(0) == 2')
    same('one\n', scene.read().text)
    scene.change({ replace(1, 1, { 'two' }) }, true)
    same('one\ntwo\n', scene.read().text)
  end)

  it('is refused if Neovim would write other bytes for characters that stay', function()
    local scene = start()
    -- The encoding has two byte sequences for the first character of the last file.
    for _, case in ipairs({
      { '\130\160\ntwo\n', '\130\160\n2\n', false },
      { '\135\144\ntwo\n', '\135\144\ntwo\n', true },
    }) do
      scene.open(case[1])
      scene.nvim:lua('vim.cmd("silent edit! ++enc=cp932")')
      local before = scene.read()
      same(case[3], before.problem ~= nil)
      local reply = scene.change({ replace(1, 2, { '2' }) }, true, before.tick)
      same(before.problem, reply.problem)
      same(case[2], scene.bytes())
    end
    -- co does not write a buffer with unsaved changes: the person does.
    scene.nvim:lua('vim.bo.modified = true')
    same(nil, scene.read().problem)
  end)

  it('keeps a buffer unlisted', function()
    local scene = start()
    scene.open('one\n')
    scene.nvim:lua('vim.bo.buflisted = false')
    scene.change({ replace(0, 1, { '1' }) }, true)
    same(false, scene.nvim:lua('return vim.bo.buflisted'))
  end)

  it('keeps the marks and the cursor of lines that change, and moves those below', function()
    local scene = start()
    scene.open('one\ntwo\nthree\nfour\n')
    scene.nvim:keys('jmajmb' .. 'jmcmAl')
    scene.nvim:wait('return vim.fn.col(".") == 2')
    scene.change({ replace(0, 2, { 'zero', 'one', '2' }), replace(2, 3, {}) }, true)
    same('zero\none\n2\nfour\n', scene.bytes())
    same(
      { 2, 0, 4, 4 },
      scene.nvim:lua([[return vim.tbl_map(function(mark)
      return vim.api.nvim_buf_get_mark(0, mark)[1]
    end, { 'a', 'b', 'c', 'A' })]])
    )
    same({ 4, 1 }, scene.nvim:lua('return vim.api.nvim_win_get_cursor(0)'))
  end)

  it('is taken back if a plugin changes the text meanwhile', function()
    local scene = start()
    scene.open('one\ntwo\n')
    scene.nvim:lua([[
      local set = vim.api.nvim_buf_set_text
      vim.api.nvim_buf_set_text = function(buf, row, from, last, to, lines)
        set(buf, row, from, last, to, lines[1] == '1' and { '1!' } or lines)
      end
    ]])
    same(
      'its buffer took another text than the approved one, so the old text is back',
      scene.change({ replace(0, 1, { '1' }) }, true).problem
    )
    same({ 'one\ntwo\n', false }, { scene.read().text, scene.read().modified })
    same('one\ntwo\n', scene.bytes())
  end)
end)
