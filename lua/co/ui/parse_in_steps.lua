--- Parses a text and works on its syntax trees in short steps, between which Neovim handles keys.
local M = {}

local api = vim.api

-- Neovim 0.10 cannot interrupt a parser, and Neovim 0.12 only one of a buffer.
M.INTERRUPTS = vim.fn.has('nvim-0.11') == 1
local NEEDS_BUFFER = vim.fn.has('nvim-0.12') == 1
-- The most milliseconds that a parser may work at once. The longer it works on the wrong text, the less it heeds interruptions.
local ONE_PARSING = 10
-- Milliseconds of one step, and of the pause after it.
local STEP, PAUSE = 2, 5
-- The most children of a node that is an error, and the most nodes above one. The time of queries grows with their square.
local WIDEST_ERROR, DEEPEST = 2000, 500
-- Nodes between two looks at the clock.
local TOGETHER = 64
-- The most brackets that are open at a time. With thousands, a parser heeds no interruption for a long time.
local MOST_OPEN = 100
-- The queries for injected languages. Only markdown has any: Neovim runs them before co can look at the tree, and for code they
-- may take seconds.
---@type table<string, string>
local INJECTIONS = setmetatable({}, {
  __index = function(_, lang)
    return not vim.startswith(lang, 'markdown') and '' or nil
  end,
})

---@class (exact) co.SteppedWork
---@field lines string[] the text
---@field lang string
---@field injections boolean languages inside markdown are parsed too
---@field most_parsing number the most milliseconds of the parser
---@field most number the most milliseconds of all
---@field goes_on fun(): boolean is called before each step; false ends the work without `done`
---@field work async fun(parser: vim.treesitter.LanguageTree) works on the trees, and yields now and then
---@field done fun(complete: boolean, took: number) gets the milliseconds of all steps

--- Returns the milliseconds that Neovim has computed so far. Unlike the clock, they do not grow while other programs run.
---@return number
local function computed()
  return os.clock() * 1e3
end

--- Returns whether a text has more open brackets than any code.
---@param lines string[]
---@return boolean
local function opens_too_many(lines)
  local open = 0
  for _, line in ipairs(lines) do
    for bracket in line:gmatch('[%(%)%[%]{}]') do
      local opens = bracket == '(' or bracket == '[' or bracket == '{'
      open = math.max(0, open + (opens and 1 or -1))
      if open > MOST_OPEN then
        return true
      end
    end
  end
  return false
end

-- Unloaded buffers. They are used again, so that the buffers of the person get no high numbers.
---@type integer[]
local unused = {}

--- Calls a function without autocommands.
---@generic T
---@param act fun(): T
---@return T
local function without_events(act)
  local before = vim.o.eventignore
  vim.cmd('noautocmd set eventignore=all')
  local ok, result = pcall(act)
  vim.cmd.set({ args = { 'eventignore=' .. before }, mods = { noautocmd = true } })
  return assert(ok and result)
end

--- Returns a buffer with a text.
---@param lines string[]
---@return integer
local function take_buffer(lines)
  return without_events(function()
    local buf = table.remove(unused)
    if not buf or not api.nvim_buf_is_valid(buf) then
      buf = api.nvim_create_buf(false, true)
    end
    api.nvim_buf_set_lines(buf, 0, -1, false, lines)
    vim.bo[buf].buftype, vim.bo[buf].swapfile = 'nofile', false
    return buf
  end)
end

--- Unloads a buffer, which ends its parser.
---@param buf integer
local function return_buffer(buf)
  if api.nvim_buf_is_loaded(buf) then
    without_events(function()
      api.nvim_buf_delete(buf, { force = true, unload = true })
      return true
    end)
    unused[#unused + 1] = buf
  end
end

--- Returns whether a syntax tree is narrow and flat enough for queries. It yields now and then.
---@param tree TSTree
---@return boolean
---@async
local function is_bounded(tree)
  local nodes, depths, seen = { tree:root() }, { 0 }, 0
  while #nodes > 0 do
    ---@type TSNode, integer
    local node, depth = table.remove(nodes), table.remove(depths)
    local count = node:child_count()
    if depth > DEEPEST or count > WIDEST_ERROR and node:type() == 'ERROR' then
      return false
    end
    for child in node:iter_children() do
      nodes[#nodes + 1], depths[#depths + 1] = child, depth + 1
      seen = seen + 1
      if seen % TOGETHER == 0 then
        coroutine.yield()
      end
    end
  end
  return true
end

--- Returns whether all syntax trees of a parser and of injected languages are narrow and flat enough.
---@param parser vim.treesitter.LanguageTree
---@return boolean
---@async
local function all_bounded(parser)
  for _, tree in pairs(parser:trees()) do
    if not is_bounded(tree) then
      return false
    end
  end
  for _, child in pairs(parser:children()) do
    if not all_bounded(child) then
      return false
    end
  end
  return true
end

--- Goes on after a pause, or gives up if it took too long.
---@param work co.SteppedWork
---@param took number milliseconds so far
---@param most number
---@param go_on fun()
local function go_on_later(work, took, most, go_on)
  if took > most then
    work.done(false, took)
  else
    vim.defer_fn(go_on, PAUSE)
  end
end

--- Runs `thread` for one step, and the next steps later.
---@param work co.SteppedWork
---@param thread thread returns false if it gives up
---@param took number milliseconds so far
---@param used? number those of this step
local function run(work, thread, took, used)
  if not work.goes_on() then
    return
  end
  local began, ok, complete = computed(), true, nil
  local passed = 0 ---@type number
  while ok and passed + (used or 0) < STEP and coroutine.status(thread) ~= 'dead' do
    -- A query that another plugin broke fails.
    ok, complete = coroutine.resume(thread)
    passed = computed() - began
  end
  took = took + passed
  if coroutine.status(thread) == 'dead' then
    work.done(complete ~= false, took)
  else
    go_on_later(work, took, work.most, function()
      run(work, thread, took)
    end)
  end
end

--- Parses, then works on the trees, or gives up if it takes too long or a tree would block queries.
---@param parser vim.treesitter.LanguageTree
---@param work co.SteppedWork
---@param began number the computed milliseconds at the start
local function parse(parser, work, began)
  ---@param interrupted? any
  local function after(interrupted)
    local took = computed() - began
    if not work.goes_on() then
      return
    elseif not interrupted then
      local thread = coroutine.create(function()
        if not all_bounded(parser) then
          return false
        end
        work.work(parser)
      end)
      run(work, thread, took, took)
    else
      go_on_later(work, took, work.most_parsing, function()
        parse(parser, work, began)
      end)
    end
  end
  local all = work.injections or nil
  if not M.INTERRUPTS then
    parser:parse(all)
    after()
    return
  end
  -- Neovim looks at 'redrawtime' once, for the time that the parser may work.
  local before = vim.o.redrawtime
  vim.cmd(('noautocmd set redrawtime=%d'):format(ONE_PARSING))
  local ok = pcall(parser.parse, parser, all, after)
  vim.cmd(('noautocmd set redrawtime=%d'):format(before))
  if not ok then
    work.done(false, computed() - began)
  end
end

--- Parses a text and works on its trees, or gives up.
---@param work co.SteppedWork
function M.start(work)
  if opens_too_many(work.lines) then
    work.done(false, 0)
    return
  end
  local options = { injections = INJECTIONS }
  if not NEEDS_BUFFER then
    local text = table.concat(work.lines, '\n') .. '\n'
    local parser = vim.treesitter.get_string_parser(text, work.lang, options)
    parse(parser, work, computed())
    return
  end
  local buf = take_buffer(work.lines)
  local own = vim.tbl_extend('force', work, {
    goes_on = function()
      local goes_on = work.goes_on()
      if not goes_on then
        return_buffer(buf)
      end
      return goes_on
    end,
    done = function(complete, took)
      return_buffer(buf)
      work.done(complete, took)
    end,
  }) --[[@as co.SteppedWork]]
  parse(assert(vim.treesitter.get_parser(buf, work.lang, options)), own, computed())
end

return M
