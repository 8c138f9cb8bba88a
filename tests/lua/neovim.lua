--- A Neovim of its own for a test, driven by keys and asked over RPC; with a terminal it has a real screen.
local M = {}

local DEADLINE = 15000

--- Makes a directory and returns its real path.
---@return string
function M.dir()
  local dir = vim.fn.resolve(vim.fn.tempname())
  vim.fn.mkdir(dir, 'p')
  return dir
end

--- Returns as many lines, each of a word and its number.
---@param word string
---@param count integer
---@return string[]
function M.numbered(word, count)
  return vim.fn.map(vim.fn.range(1, count), function(_, number)
    return word .. number
  end)
end

--- Returns one field of each of the messages.
---@param messages table[]
---@param field string
---@return any[]
function M.pluck(messages, field)
  return vim.tbl_map(function(message)
    return message[field]
  end, messages)
end

---@class co.test.Neovim
---@field channel integer
---@field terminal? integer buffer that shows its screen
---@field job integer
---@field code? integer its exit status, when it has ended
---@field pid integer
local Neovim = {}
Neovim.__index = Neovim

local count = 0

-- In the place of the backend: what is sent is kept, what is received comes from the test.
local PREPARE = [[
  vim.opt.rtp:prepend(...)
  vim.cmd('runtime plugin/co.lua')
  vim.o.swapfile = false
  local backend = require('co.backend')
  _G.sent = {}
  backend.start = function() return true end
  -- The model may be sent each text of the editor and each file.
  _G.read_context = function(query)
    if query.kind == 'text' then
      return {}
    elseif query.kind ~= 'file' then
      return { problem = 'there is no ' .. query.kind }
    end
    local text, size = require('co.ui.file_text').read(query.path, 512 * 1024 + 1), vim.fn.getfsize(query.path)
    return text and { text = text, size = size } or { problem = 'there is no such file' }
  end
  backend.send = function(message)
    if message.type ~= 'read_context' then
      table.insert(_G.sent, message)
      return true
    end
    local answer = { type = 'context_read', request = message.request }
    _G.receive({ vim.tbl_extend('error', answer, _G.read_context(message.query)) })
    return true
  end
  backend.send_if_running = backend.send
  _G.receive = function(messages) require('co.handlers').receive(messages) end
  _G.notices = {}
  local notify = vim.notify
  vim.notify = function(message, level, opts) table.insert(_G.notices, message) notify(message, level, opts) end
]]

---@param path string
---@return integer
local function connect(path)
  local channel = 0
  M.wait('its socket', function()
    local ok, result = pcall(vim.fn.sockconnect, 'pipe', path, { rpc = true })
    channel = ok and result --[[@as integer]] or 0
    return channel > 0
  end)
  return channel
end

---@param command string[]
---@param columns integer
---@param lines integer
---@param opts table of `jobstart()`
---@return integer job
---@return integer buf
local function in_terminal(command, columns, lines, opts)
  vim.o.laststatus, vim.o.showtabline, vim.o.ruler = 0, 0, false
  vim.o.columns, vim.o.lines = columns, lines + 1
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_win_set_buf(0, buf)
  local own = { TERM = 'xterm-256color', COLORTERM = 'truecolor', NVIM_NOTTYFAST = '1' }
  opts.env = vim.tbl_extend('force', own, opts.env)
  if vim.fn.has('nvim-0.11') == 1 then
    opts.term = true
    return vim.fn.jobstart(command, opts), buf
  end
  ---@diagnostic disable-next-line: deprecated -- what 0.10 has
  return vim.fn.termopen(command, opts), buf
end

--- Waits until `condition` holds; fails with `what` where it does not in time.
---@param what string|fun(): string
---@param condition fun(): any
function M.wait(what, condition)
  if not vim.wait(DEADLINE, condition, 10) then
    error('waited in vain for ' .. (type(what) == 'function' and what() or what), 2)
  end
end

--- Starts a Neovim that ends with the test.
---@param opts? { screen?: boolean, columns?: integer, lines?: integer, bare?: boolean, env?: table<string, string>, root?: string|false }
---@return co.test.Neovim
function M.start(opts)
  opts = opts or {}
  count = count + 1
  local socket = ('%s/co-test-%d-%d'):format(
    vim.fn.fnamemodify(vim.fn.tempname(), ':h'),
    vim.fn.getpid(),
    count
  )
  local command = { vim.v.progpath, '--clean', '-n', '-i', 'NONE', '--listen', socket }
  local env = vim.tbl_extend('force', { NVIM = '' }, opts.env or {})
  local self = setmetatable({}, Neovim)
  local job = {
    env = env,
    on_exit = function(_, code)
      self.code = code
    end,
  }
  if opts.screen then
    self.job, self.terminal = in_terminal(command, opts.columns or 100, opts.lines or 30, job)
  else
    table.insert(command, '--headless')
    self.job = vim.fn.jobstart(command, job)
  end
  defer(function()
    self:stop()
  end)
  self.channel = connect(socket)
  self.pid = self:request('nvim_call_function', 'getpid', {})
  if opts.screen then
    -- Since 0.12, it asks the terminal for its colours first. It answers requests meanwhile, but takes no keys.
    M.wait('its screen', function()
      return self:lua('return vim.v.vim_did_enter') == 1 and #self:request('nvim_list_uis') > 0
    end)
  end
  if opts.root ~= false then
    local prepare = opts.bare and 'vim.opt.rtp:prepend(...)' or PREPARE
    self:lua(prepare, opts.root or co_root)
  end
  return self
end

--- Starts a Neovim that is in the prompt of a chat.
---@param opts? table
---@return co.test.Neovim
function M.chat(opts)
  local nvim = M.start(opts)
  nvim:enter_chat()
  return nvim
end

function Neovim:stop()
  pcall(vim.fn.chanclose, self.channel)
  local function ended()
    return self.code ~= nil
  end
  if not ended() then
    -- Not |jobstop()|: it closes the terminal, and an ending screen waits a second for the terminal's answer.
    vim.system({ 'kill', tostring(self.pid) }):wait()
    vim.wait(2000, ended, 10)
    pcall(vim.fn.jobstop, self.job)
  end
  if self.terminal then
    pcall(vim.api.nvim_buf_delete, self.terminal, { force = true })
  end
end

--- Waits for its end, and returns its exit status.
---@return integer
function Neovim:wait_exit()
  M.wait('its end', function()
    return self.code ~= nil
  end)
  return assert(self.code)
end

---@param method string
---@param ... any
---@return any
function Neovim:request(method, ...)
  return vim.rpcrequest(self.channel, method, ...)
end

--- Runs Lua there and gives what it returns.
---@param code string
---@param ... any
---@return any
function Neovim:lua(code, ...)
  return self:request('nvim_exec_lua', code, { ... })
end

--- Hands messages over as the backend does, without waiting: a Neovim that waits for a key takes them later.
---@param ... table
function Neovim:receive(...)
  vim.rpcnotify(self.channel, 'nvim_exec_lua', "require('co.handlers').receive(...)", { { ... } })
end

--- Types keys.
---@param keys string
function Neovim:keys(keys)
  self:request('nvim_input', keys)
end

--- Types keys and waits until the mode is `mode`.
---@param keys string
---@param mode string
function Neovim:keys_to(keys, mode)
  self:keys(keys)
  self:wait_mode(mode)
end

---@return string
function Neovim:mode()
  return self:request('nvim_get_mode').mode
end

---@param mode string
function Neovim:wait_mode(mode)
  M.wait(function()
    return ('the mode "%s", it is "%s"'):format(mode, self:mode())
  end, function()
    return self:mode() == mode
  end)
end

--- Waits until Lua there gives something true.
---@param code string
---@param ... any
function Neovim:wait(code, ...)
  local arguments = { ... }
  local last
  M.wait(function()
    return code .. '\n' .. vim.inspect(last) .. '\n' .. table.concat(self:screen(), '\n')
  end, function()
    last = self:lua(code, unpack(arguments))
    return last and last ~= vim.NIL
  end)
end

-- Measures the turns of the event loop. Processor time does not grow while other programs run.
local WATCH = [[
  local last = os.clock()
  _G.longest, _G.turns = 0, 0
  _G.watch = _G.watch or assert(vim.uv.new_timer())
  watch:start(0, 1, function()
    local now = os.clock()
    _G.longest, _G.turns = math.max(_G.longest, (now - last) * 1e3), _G.turns + 1
    last = now
  end)
]]

-- The most milliseconds of processor time that a turn of the event loop may take. With two other programs on each core, the
-- best of five tries took 51 ms.
local MOST_TURN = 100

--- Starts to measure the turns of the event loop.
function Neovim:watch_turns()
  self:lua(WATCH)
end

--- Returns the most milliseconds of processor time that a turn of the event loop has taken.
---@return number
function Neovim:longest_turn()
  self:lua('vim.cmd.redraw()')
  local turns = self:lua('return _G.turns')
  self:wait('return _G.turns > ' .. turns + 1)
  return self:lua('_G.watch:stop() return _G.longest')
end

--- Fails if a turn of the event loop takes too long. One that took long may have waited for memory that other programs use,
--- so there are several tries.
---@param what string
---@param try fun(): number returns the longest turn
function M.assert_quick(what, try)
  ---@type number[]
  local longest = {}
  for index = 1, 5 do
    longest[index] = try()
    if longest[index] < MOST_TURN then
      return
    end
  end
  error(('%s: %s ms'):format(what, vim.inspect(longest)), 2)
end

--- Fails if a turn of the event loop takes too long while `act` runs.
---@param what string
---@param act fun()
function Neovim:assert_quick(what, act)
  M.assert_quick(what, function()
    self:watch_turns()
    act()
    return self:longest_turn()
  end)
end

--- The lines of the screen.
---@return string[]
function Neovim:screen()
  return self.terminal and vim.api.nvim_buf_get_lines(self.terminal, 0, -1, false) or {}
end

---@param text string
---@return boolean
function Neovim:shows(text)
  return table.concat(self:screen(), '\n'):find(text, 1, true) ~= nil
end

--- Waits until each of the texts has been on the screen, in any order.
---@param ... string
function Neovim:wait_screen(...)
  for _, text in ipairs({ ... }) do
    M.wait(function()
      return ('"%s" on the screen:\n%s'):format(text, table.concat(self:screen(), '\n'))
    end, function()
      return self:shows(text)
    end)
  end
end

---@param text string
function Neovim:wait_gone(text)
  M.wait(function()
    return ('"%s" to leave the screen:\n%s'):format(text, table.concat(self:screen(), '\n'))
  end, function()
    return not self:shows(text)
  end)
end

--- The messages sent to the backend, or those of one type.
---@param kind? string
---@return table[]
function Neovim:sent(kind)
  return vim.tbl_filter(function(message)
    return not kind or message.type == kind
  end, self:lua('return _G.sent'))
end

--- Waits until so many messages, or messages of one type, were sent; returns the last of them.
---@param number integer
---@param kind? string
---@return table<string, any>
function Neovim:wait_sent(number, kind)
  M.wait(function()
    return ('%d messages: %s'):format(number, vim.inspect(self:sent(kind)))
  end, function()
    return #self:sent(kind) == number
  end)
  return self:sent(kind)[number]
end

--- Waits until co has told the person a text.
---@param text string
function Neovim:wait_notice(text)
  self:wait('return table.concat(_G.notices):find(..., 1, true) ~= nil', text)
end

--- Keeps what the newest event of a kind tells as `_G.done`.
---@param event string
function Neovim:keep_event(event)
  self:lua(
    [[
      vim.api.nvim_create_autocmd('User', { pattern = ..., callback = function(event)
        _G.done = event.data
      end })
    ]],
    event
  )
end

--- The lines of a buffer, by its name without what it is about.
---@param name string
---@return string[]
function Neovim:lines(name)
  return self:lua(
    'return vim.api.nvim_buf_get_lines(vim.fn.bufnr(...), 0, -1, false)',
    '^' .. name .. '{,/*: *}$'
  )
end

--- Waits until a buffer has a line with a text.
---@param name string
---@param text string
function Neovim:wait_line(name, text)
  self:wait(
    [[
      local name, text = ...
      local lines = vim.api.nvim_buf_get_lines(vim.fn.bufnr('^' .. name .. '{,/*: *}$'), 0, -1, false)
      return table.concat(lines, '\n'):find(text, 1, true)
    ]],
    name,
    text
  )
end

--- Makes a chat, and shows it beside the others.
---@param layout? string
function Neovim:add_chat(layout)
  self:lua(
    [[
      local chat = require('co.chat').new()
      require('co.chat.pair').open(chat, ...)
      require('co.chat.window').show(chat, true)
    ]],
    layout or 'vertical'
  )
end

--- Waits until Neovim has done what it was told, and a float that was just entered takes keys.
function Neovim:settle()
  -- A scheduled function may schedule another one.
  self:lua([[
    _G.settled = false
    local function later(times)
      if times == 0 then
        _G.settled = true
      else
        vim.schedule(function() later(times - 1) end)
      end
    end
    later(5)
  ]])
  self:wait("return _G.settled and not require('co.ui.focus').ignores_keys()")
end

--- Notes that the person asked for what co shows next, as their commands do.
function Neovim:asks()
  self:lua("require('co.ui.focus').asked()")
end

--- Types keys into a float that was just entered.
---@param keys string
function Neovim:press(keys)
  self:settle()
  self:keys(keys)
end

--- Goes to the prompt of the chat.
function Neovim:enter_chat()
  self:keys(':Co<CR>')
  self:wait("return vim.bo.filetype == 'co-prompt'")
end

return M
