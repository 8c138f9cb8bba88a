--- Parses a text and works on its syntax trees in short steps, between which Neovim handles keys.
local M = {}

-- Neovim 0.10 cannot interrupt a parser.
M.INTERRUPTS = vim.fn.has('nvim-0.11') == 1
-- The most milliseconds that a parser may work at once. The longer it works on the wrong text, the less it heeds interruptions.
local ONE_PARSING = 10
-- Milliseconds of one step, and of the pause after it.
local STEP, PAUSE = 4, 5
-- The most children of a node that is an error, and the most nodes above one. The time of queries grows with their square.
local WIDEST_ERROR, DEEPEST = 2000, 500
-- Nodes between two looks at the clock.
local TOGETHER = 64
-- The most brackets that are open at a time. With thousands, a parser heeds no interruption for a long time.
local MOST_OPEN = 100

---@class (exact) co.SteppedWork
---@field injections boolean injected languages are parsed too
---@field most_parsing number the most milliseconds of the parser
---@field most number the most milliseconds of all
---@field goes_on fun(): boolean is called before each step; false ends the work without `done`
---@field work async fun() works on the trees of the parser, and yields now and then
---@field done fun(complete: boolean, took: number) gets the milliseconds of all steps

--- Returns the milliseconds that Neovim has computed so far. Unlike the clock, they do not grow while other programs run.
---@return number
local function computed()
  return os.clock() * 1e3
end

--- Returns whether a text has more open brackets than any code.
---@param text string
---@return boolean
local function opens_too_many(text)
  local open = 0
  for bracket in text:gmatch('[%(%)%[%]{}]') do
    local opens = bracket == '(' or bracket == '[' or bracket == '{'
    open = math.max(0, open + (opens and 1 or -1))
    if open > MOST_OPEN then
      return true
    end
  end
  return false
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

--- Runs `thread` for one step, and the next steps later.
---@param work co.SteppedWork
---@param thread thread returns false if it gives up
---@param took number milliseconds so far
local function run(work, thread, took)
  if not work.goes_on() then
    return
  end
  local began, ok, complete = computed(), true, nil
  ---@type number
  local passed = 0
  while ok and passed < STEP and coroutine.status(thread) ~= 'dead' do
    -- A query that another plugin broke fails.
    ok, complete = coroutine.resume(thread)
    passed = computed() - began
  end
  took = took + passed
  if coroutine.status(thread) == 'dead' then
    work.done(complete ~= false, took)
  elseif took > work.most then
    work.done(false, took)
  else
    vim.defer_fn(function()
      run(work, thread, took)
    end, PAUSE)
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
        work.work()
      end)
      run(work, thread, took)
    elseif took > work.most_parsing then
      work.done(false, took)
    else
      vim.defer_fn(function()
        parse(parser, work, began)
      end, PAUSE)
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
---@param parser vim.treesitter.LanguageTree of a string
---@param work co.SteppedWork
function M.start(parser, work)
  local source = parser:source()
  if type(source) == 'string' and opens_too_many(source) then
    work.done(false, 0)
  else
    parse(parser, work, computed())
  end
end

return M
