--- Maps the keys of the setting `question_keys` while a question is on the screen, in the buffers that the person
--- enters.
---
--- A map of a buffer wins over a global map, so the person's global maps can stay. The person's maps of a buffer come
--- back when no question is on the screen.
local M = {}

local api = vim.api
local config = require('co.config')
local log = require('co.ui.log')

--- The keys, by the answers.
---@type table<string, string>
M.keys = { yes = '<C-\\>y', no = '<C-\\>n', review = '<C-\\>r', try = '<C-\\>t' }

local MODES = { 'n', 'x', 's', 'o', 'i', 'c', 't' }

local DESCRIPTION = 'co: answer the question on the screen'

-- The functions that the keys are mapped to. A session file does not save maps to functions.
---@type table<string, fun(): string>
local functions = {}
for answer, lhs in pairs(M.keys) do
  functions[lhs] = function()
    return ('<Plug>(co-%s)'):format(answer)
  end
end

--- A map of the person that a map of co replaces.
---@class (exact) co.ReplacedMap
---@field lhs string
---@field modes string[]
---@field map table<string, any> as `maparg()` returns it

-- The replaced maps of each buffer that has the keys.
---@type table<integer, co.ReplacedMap[]>
local replaced = {}
local is_shown = false

--- Returns the buffer-local map of a key in the current buffer; nil if the buffer has no such map.
---@param lhs string
---@param mode string
---@return table<string, any>?
local function own_map(lhs, mode)
  local map = vim.fn.maparg(lhs, mode, false, true) --[[@as table<string, any>]]
  return map.buffer == 1 and map or nil
end

--- Adds the person's own maps of a key in the current buffer to a list.
---@param lhs string
---@param to co.ReplacedMap[]
local function save(lhs, to)
  ---@type table<string, co.ReplacedMap>
  local by_modes = {}
  for _, mode in ipairs(MODES) do
    local map = own_map(lhs, mode)
    if map and map.callback ~= functions[lhs] then
      if not by_modes[map.mode] then
        by_modes[map.mode] = { lhs = lhs, modes = {}, map = map }
        to[#to + 1] = by_modes[map.mode]
      end
      table.insert(by_modes[map.mode].modes, mode)
    end
  end
end

--- Maps the keys in the current buffer.
local function map_here()
  local buf = api.nvim_get_current_buf()
  replaced[buf] = replaced[buf] or {}
  for lhs, callback in pairs(functions) do
    save(lhs, replaced[buf])
    local options = { buffer = buf, expr = true, remap = true, nowait = true, desc = DESCRIPTION }
    vim.keymap.set(MODES, lhs, callback, options)
  end
end

--- Removes the keys from the current buffer and restores the person's maps. A key that the person has mapped meanwhile
--- keeps the new map.
---@param maps co.ReplacedMap[]
local function restore_here(maps)
  ---@type table<string, true>
  local free = {}
  for lhs, callback in pairs(functions) do
    for _, mode in ipairs(MODES) do
      local map = own_map(lhs, mode)
      if map and map.callback == callback then
        vim.keymap.del(mode, lhs, { buffer = 0 })
      end
      free[mode .. lhs] = (not map or map.callback == callback) or nil
    end
  end
  for _, saved in ipairs(maps) do
    local modes = vim.tbl_filter(function(mode)
      return free[mode .. saved.lhs] ~= nil
    end, saved.modes)
    if #modes == #saved.modes then
      vim.fn.mapset(saved.map)
    else
      for _, mode in ipairs(modes) do
        vim.fn.mapset(mode, false, saved.map)
      end
    end
  end
end

--- Calls `act`. Logs an error of `act`.
---@param act fun()
local function try(act)
  local ok, problem = xpcall(act, debug.traceback)
  if not ok then
    log.add('answer keys', tostring(problem))
  end
end

--- Maps the keys if a question is on the screen and the setting allows the keys. Otherwise restores the person's maps.
local function update()
  if is_shown and config.get().question_keys then
    try(map_here)
    return
  end
  for buf, maps in pairs(replaced) do
    replaced[buf] = nil
    if api.nvim_buf_is_valid(buf) then
      try(function()
        api.nvim_buf_call(buf, function()
          restore_here(maps)
        end)
      end)
    end
  end
end

--- Updates the keys. `shown` is true if a question is on the screen.
---@param shown boolean
function M.show(shown)
  if shown ~= is_shown then
    is_shown = shown
    update()
  end
end

config.on_change(update)

local group = api.nvim_create_augroup('co.answer_keys', {})
api.nvim_create_autocmd('BufEnter', {
  group = group,
  callback = function()
    if is_shown then
      update()
    end
  end,
})
api.nvim_create_autocmd({ 'BufDelete', 'BufWipeout' }, {
  group = group,
  callback = function(event)
    -- Its maps go with it.
    replaced[event.buf] = nil
  end,
})

return M
