--- Decides when a window that co opens may take the focus, and from when on its keys count. The person may have typed
--- them for something else.
---
--- `vim.on_key` and a timer tell the keys and the pauses. Both end when nothing needs them.
local M = {}

local api = vim.api
local log = require('co.ui.log')
local notify = require('co.ui.notify')
local textlock = require('co.ui.textlock')

local MS = 1000000
-- The longest time for which the person still waits for what they asked for.
local AWAITED = 2000 * MS
-- A pause is so many ticks of the timer without a key: after co took the focus, or after the person went to the window. The
-- ticks do not go on while Neovim is blocked: it gets the keys of this time later.
local PAUSES = { co = 10, person = 5 }
local TICK_MS = 50
-- The float takes the focus by the setting after this time without a key.
local IDLE = 500 * MS

local keys = api.nvim_create_namespace('co.focus')
local MOUSE_MOVE = vim.keycode('<MouseMove>')

-- When the person asked for something, if they have pressed no key since.
---@type integer?
local asked_at

--- A wait for a pause.
---@class (exact) co.focus.Wait
---@field pause integer
---@field left integer the ticks until its end
---@field discards? boolean keys get to no window
---@field discarded? boolean a key was discarded, so the keys that it is mapped to are discarded too

---@type co.focus.Wait?
local wait
---@type uv.timer?
local timer
---@type fun()[]
local after_wait = {}

-- The time of the last key, if the setting needs it.
---@type integer?
local last_key

--- The last key that the person pressed, while the code that it is mapped to may still run.
---@class (exact) co.focus.Press
---@field mapped boolean it has another meaning than the key itself
---@field mode string

---@type co.focus.Press?
local press
-- The number of keys that were pressed while somebody wanted to know it.
local presses = 0
local counts_presses = false

-- Offers that wait until the person asks for them again.
---@type { name: string, open: fun(by: co.focus.By) }[]
local offers = {}

---@alias co.focus.By 'co'|'person' who moved the focus

--- Takes note of a key that the person pressed.
---@param mapped boolean
local function note_press(mapped)
  presses = presses + 1
  local now = { mapped = mapped, mode = api.nvim_get_mode().mode }
  press = now
  -- Neovim does it after the code that the key is mapped to.
  vim.schedule(function()
    if press == now then
      press = nil
    end
  end)
end

--- Takes note of a key.
---@param key string
---@param typed? string
---@return string? the empty text for a key that gets to no window
local function on_key(key, typed)
  if not typed or typed == '' then
    return wait and wait.discards and wait.discarded and '' or nil
  elseif typed == MOUSE_MOVE then
    return
  end
  asked_at = nil
  last_key = last_key and vim.uv.hrtime()
  note_press(key ~= typed)
  if wait then
    wait.left, wait.discarded = wait.pause, true
    return wait.discards and '' or nil
  elseif not last_key and not counts_presses then
    vim.on_key(nil, keys)
  end
end

--- Notes that the person asked for something that co may show later.
function M.asked()
  asked_at = vim.uv.hrtime()
  vim.on_key(on_key, keys)
end

--- Returns whether the person has pressed no key since they asked for something.
---@return boolean
function M.is_waiting()
  return asked_at ~= nil
end

--- Returns whether the person may still wait for what they asked for: it was just now, and they pressed no key since.
---@return boolean
function M.awaited()
  return asked_at ~= nil and vim.uv.hrtime() - asked_at <= AWAITED
end

--- Calls the functions that wait for the pause.
local function call_after_wait()
  textlock.when_unlocked(function()
    local acts = wait and {} or after_wait
    after_wait = wait and after_wait or {}
    for _, act in ipairs(acts) do
      local ok, problem = xpcall(act, debug.traceback)
      if not ok then
        log.add('focus', tostring(problem))
      end
    end
  end)
end

--- Counts a tick. A list of Neovim itself waits for keys in a way that lets only timers run.
local function tick()
  if not wait or not timer then
    return
  elseif not wait.discards and api.nvim_get_mode().blocking then
    -- A key that may begin a mapping has not been told yet.
    wait.left = wait.pause
  end
  wait.left = wait.left - 1
  if wait.left < 0 then
    wait = nil
    timer:stop()
    if after_wait[1] then
      vim.schedule(call_after_wait)
    end
  end
end

--- Ignores keys in the window that has the focus, or now has something else to answer, until the first pause.
---@param by co.focus.By
---@param discards? boolean Neovim drops them (from 0.11 on)
function M.ignore_keys(by, discards)
  local pause = math.max(PAUSES[by], wait and wait.pause or 0)
  wait = { pause = pause, left = pause, discards = discards }
  vim.on_key(on_key, keys)
  timer = timer or assert(vim.uv.new_timer())
  timer:start(TICK_MS, TICK_MS, tick)
end

--- Ends a wait that discards keys: its window is closed.
function M.stop_discarding()
  if wait and wait.discards then
    wait.discards = nil
  end
end

--- Returns whether keys are ignored now.
---@return boolean
function M.ignores_keys()
  return wait ~= nil
end

--- Returns who moved the focus, if keys are ignored now.
---@return co.focus.By?
function M.ignored_after()
  return wait and (wait.pause > PAUSES.person and 'co' or 'person') or nil
end

--- Counts the keys that the person presses, or stops after the next one.
---@param on boolean
function M.count_presses(on)
  counts_presses = on
  if on then
    vim.on_key(on_key, keys)
  end
end

--- Returns the number of keys that the person has pressed. It is exact while they are counted.
---@return integer
function M.presses()
  return presses
end

--- Returns whether the code that runs now is what the person mapped a key to, and they pressed that key. Else it may run in
--- a macro, in a repeated command or by `:normal`, or a plugin runs it.
---@return boolean
function M.pressed()
  return press ~= nil
    and press.mapped
    and vim.fn.reg_executing() == ''
    -- The key ended a command line, and its command runs.
    and (press.mode ~= 'c' or api.nvim_get_mode().mode == 'c')
end

--- Calls `act` as soon as keys are not ignored any more.
---@param act fun()
function M.when_keys_count(act)
  after_wait[#after_wait + 1] = act
  if not wait then
    call_after_wait()
  end
end

--- Returns whether Neovim has keys that it has not read yet.
---@return boolean
function M.has_unread_keys()
  return api.nvim_get_mode().mode == 'n' and vim.fn.getchar(1) ~= 0
end

--- Opens something that takes the focus, if the person still waits for it. Else a notice tells how to open it.
---@param name string
---@param open fun(by: co.focus.By)
function M.offer(name, open)
  if M.awaited() then
    open('co')
    return
  end
  offers = vim.tbl_filter(function(offer)
    return offer.name ~= name
  end, offers)
  offers[#offers + 1] = { name = name, open = open }
  notify.info(('%s is ready: :Co /approve shows it'):format(name))
end

--- Withdraws an offer.
---@param name string
function M.withdraw(name)
  offers = vim.tbl_filter(function(offer)
    return offer.name ~= name
  end, offers)
end

--- Returns whether something is offered.
---@return boolean
function M.has_offer()
  return offers[1] ~= nil
end

--- Opens what was offered first. The person asked for it.
function M.open_offered()
  table.remove(offers, 1).open('person')
end

--- Notes the time of each key from now on.
function M.watch_idle()
  if not last_key then
    last_key = vim.uv.hrtime()
    vim.on_key(on_key, keys)
  end
end

--- Returns whether the last key was some time ago.
---@return boolean
function M.is_idle()
  return last_key ~= nil and vim.uv.hrtime() - last_key > IDLE
end

return M
