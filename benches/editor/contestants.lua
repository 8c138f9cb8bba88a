-- Loaded into each Neovim: both ways to run a command, and what tells their ends to the client.
local api, uv = vim.api, vim.uv or vim.loop

_G.bench = {}

-- Co's way.
local began
api.nvim_create_autocmd('User', {
  pattern = 'CoJobDone',
  callback = function(event)
    vim.rpcnotify(1, 'exit', uv.hrtime() - began, event.data.exit or -1)
  end,
})

---@param command string
function bench.co(command)
  began = uv.hrtime()
  vim.cmd('Co! ' .. command)
end

-- What a plugin in Lua does: a job whose output is appended to a buffer in a window.
local buf, win

---@param argv string[]
function bench.job(argv)
  if not buf then
    buf = api.nvim_create_buf(false, true)
    vim.bo[buf].undolevels = -1
    win = api.nvim_open_win(buf, false, { split = 'below', height = 12 })
  end
  local start = uv.hrtime()
  local function put(_, data)
    api.nvim_buf_set_text(buf, -1, -1, -1, -1, data)
    api.nvim_win_set_cursor(win, { api.nvim_buf_line_count(buf), 0 })
  end
  vim.fn.jobstart(argv, {
    on_stdout = put,
    on_stderr = put,
    on_exit = function(_, code)
      vim.rpcnotify(1, 'exit', uv.hrtime() - start, code)
    end,
  })
end

---@param argv string[]
function bench.system(argv)
  local start = uv.hrtime()
  vim.system(argv, {}, function(result)
    vim.schedule(function()
      vim.rpcnotify(1, 'exit', uv.hrtime() - start, result.code)
    end)
  end)
end

-- The least backend there could be.
local least, told

---@param argv string[]
function bench.start_least(argv)
  told = uv.hrtime()
  least = vim.fn.jobstart(argv, { rpc = true })
end

function bench.least_ready()
  vim.rpcnotify(1, 'ready', uv.hrtime() - told)
end

---@param argv string[]
function bench.least(argv)
  if not least then
    bench.start_least(argv)
  end
  told = uv.hrtime()
  vim.rpcnotify(least, 'run')
end

function bench.least_ended()
  vim.rpcnotify(1, 'exit', uv.hrtime() - told, 0)
end

-- Makes this process bigger.
---@param megabytes integer
function bench.grow(megabytes)
  local ffi = require('ffi')
  bench.ballast = ffi.new('char[?]', megabytes * 1048576)
  ffi.fill(bench.ballast, megabytes * 1048576, 1)
end

-- A key whose effect the client hears of.
vim.keymap.set('n', '<F2>', function()
  vim.rpcnotify(1, 'key')
end)

---@return number milliseconds the plugin file took, the fastest of many
function bench.plugin()
  local file = api.nvim_get_runtime_file('plugin/co.lua', false)[1]
  local chunk = assert(loadfile(file))
  local best = math.huge
  for _ = 1, 50 do
    vim.g.loaded_co = nil
    local start = uv.hrtime()
    chunk()
    best = math.min(best, uv.hrtime() - start)
  end
  return best / 1e6
end

-- From `jobstart` to the greeting.
function bench.greet()
  local backend = require('co.backend')
  local ready, jobstart = backend.on_ready, vim.fn.jobstart
  local start
  vim.fn.jobstart = function(...)
    start = uv.hrtime()
    return jobstart(...)
  end
  backend.on_ready = function(message)
    ready(message)
    vim.rpcnotify(1, 'ready', uv.hrtime() - start)
  end
  backend.start()
end
