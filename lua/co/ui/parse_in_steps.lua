--- Parses a text and works on its syntax trees in short steps, between which Neovim handles keys.
local M = {}

-- Neovim 0.10 cannot interrupt a parser.
M.INTERRUPTS = vim.fn.has('nvim-0.11') == 1
-- The most milliseconds that a parser may work at once. The longer it works on the wrong text, the less it heeds interruptions.
local ONE_PARSING = 10
-- Milliseconds of one step, and of the pause after it.
local STEP, PAUSE = 4, 5

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

--- Runs `thread` for one step, and the next steps later.
---@param work co.SteppedWork
---@param thread thread
---@param took number milliseconds so far
local function run(work, thread, took)
  if not work.goes_on() then
    return
  end
  local began, ok = computed(), true
  ---@type number
  local passed = 0
  while ok and passed < STEP and coroutine.status(thread) ~= 'dead' do
    -- A query that another plugin broke fails.
    ok = coroutine.resume(thread)
    passed = computed() - began
  end
  took = took + passed
  if coroutine.status(thread) == 'dead' then
    work.done(true, took)
  elseif took > work.most then
    work.done(false, took)
  else
    vim.defer_fn(function()
      run(work, thread, took)
    end, PAUSE)
  end
end

--- Parses, then works on the trees, or gives up.
---@param parser vim.treesitter.LanguageTree
---@param work co.SteppedWork
---@param began? number the computed milliseconds at the start
function M.start(parser, work, began)
  began = began or computed()
  ---@param interrupted? any
  local function after(interrupted)
    local took = computed() - began
    if not work.goes_on() then
      return
    elseif not interrupted then
      run(work, coroutine.create(work.work), took)
    elseif took > work.most_parsing then
      work.done(false, took)
    else
      vim.defer_fn(function()
        M.start(parser, work, began)
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

return M
