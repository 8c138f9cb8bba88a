-- Runs the specs: nvim --headless --clean -l tests/lua/run.lua [pattern]
--
-- A spec is a file `*_spec.lua` that calls `describe` and `it`; a pattern picks those whose full name has it. Two Neovims share the
-- files, because a spec mostly waits for its own Neovim or backend.

local root = vim.fs.dirname(
  vim.fs.dirname(vim.fs.dirname(vim.fn.fnamemodify(arg[0] or vim.env.CO_TEST_RUN, ':p')))
)

local SHARES = 2
--- The exit code of a Neovim whose files have no spec for the pattern.
local NONE = 3

if not vim.env.CO_TEST_RUN then
  -- A Neovim that runs a script with -l has 80 columns whatever it is told; the screens in tests need more.
  local function pass(_, data)
    io.stdout:write(data or '')
    io.stdout:flush()
  end
  local runs = {}
  for share = 1, SHARES do
    -- The Neovims of tests leave undo files and logs.
    local own = vim.fn.tempname()
    local env = {
      CO_TEST_RUN = root .. '/tests/lua/run.lua',
      CO_TEST_PATTERN = arg[1],
      CO_TEST_SHARE = tostring(share),
    }
    for _, kind in ipairs({ 'CONFIG', 'DATA', 'STATE', 'CACHE' }) do
      env[('XDG_%s_HOME'):format(kind)] = ('%s/%s'):format(own, kind:lower())
    end
    runs[share] = {
      own = own,
      nvim = vim.system({
        vim.v.progpath,
        '--headless',
        '--clean',
        '-n',
        '-i',
        'NONE',
        '-c',
        'luafile ' .. root .. '/tests/lua/run.lua',
      }, { env = env, stdout = pass, stderr = pass }),
    }
  end
  local code, empty = 0, 0
  for _, run in ipairs(runs) do
    local own = run.nvim:wait().code
    if own == NONE then
      empty = empty + 1
    elseif own ~= 0 then
      code = own
    end
    vim.fn.delete(run.own, 'rf')
  end
  if empty == SHARES then
    io.stdout:write(('no spec has "%s" in its name\n'):format(tostring(arg[1])))
    code = 1
  end
  os.exit(code)
end

vim.opt.rtp:prepend(root)
package.path = root .. '/tests/lua/?.lua;' .. package.path
_G.co_root = root

local pattern, share = vim.env.CO_TEST_PATTERN, tonumber(vim.env.CO_TEST_SHARE)
vim.env.CO_TEST_RUN, vim.env.CO_TEST_PATTERN, vim.env.CO_TEST_SHARE = nil, nil, nil
local passed, failed = 0, 0
local names = {}
---@type fun()[]
local cleanups = {}

---@param name string
---@param body fun()
function _G.describe(name, body)
  names[#names + 1] = name
  body()
  names[#names] = nil
end

--- Runs `cleanup` when the test that runs now has ended, however it ended.
---@param cleanup fun()
function _G.defer(cleanup)
  cleanups[#cleanups + 1] = cleanup
end

---@param name string
---@param body fun()
function _G.it(name, body)
  local full = table.concat(names, ' ') .. ' ' .. name
  if pattern and not full:find(pattern, 1, true) then
    return
  end
  local ok, problem = xpcall(body, debug.traceback)
  for index = #cleanups, 1, -1 do
    pcall(cleanups[index])
  end
  cleanups = {}
  if ok then
    passed = passed + 1
  else
    failed = failed + 1
    io.stdout:write(('FAILED %s\n%s\n\n'):format(full, problem))
  end
end

---@param expected any
---@param actual any
---@param about? string
function _G.same(expected, actual, about)
  if not vim.deep_equal(expected, actual) then
    error(
      ('%sexpected %s\n     got %s'):format(
        about and about .. ': ' or '',
        vim.inspect(expected),
        vim.inspect(actual)
      ),
      2
    )
  end
end

---@param value any
---@param about? string
function _G.yes(value, about)
  if not value then
    error(about or 'expected something true', 2)
  end
end

local files = vim.fn.sort(vim.fn.glob(root .. '/tests/lua/**/*_spec.lua', true, true))
for index = share, #files, SHARES do
  local file = files[index]
  local chunk, problem = loadfile(file)
  if not chunk then
    failed = failed + 1
    io.stdout:write(('FAILED %s\n'):format(problem))
  else
    local ok, trace = xpcall(chunk, debug.traceback)
    if not ok then
      failed = failed + 1
      io.stdout:write(('FAILED %s\n%s\n'):format(file, trace))
    end
  end
end

if passed + failed == 0 then
  os.exit(NONE)
end
io.stdout:write(('%d passed, %d failed\n'):format(passed, failed))
os.exit(failed == 0 and 0 or 1)
