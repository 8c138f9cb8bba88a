--- Keeps `<C-c>` working while Neovim is busy. If the key comes while Neovim draws or runs code, Neovim takes it for an
--- interruption, and does not run what the key is mapped to.
local M = {}

local api = vim.api

local INTERRUPT = vim.keycode('<C-c>')
local keys = api.nvim_create_namespace('co.interruption')

-- The actions of `<C-c>`, by buffers and modes.
---@type table<integer, table<string, fun()>>
local actions = {}

--- Runs the action of `<C-c>` if the key came as itself. A mapping that ran, and a key that ends half a command such as `f`, are
--- told otherwise.
---@param key string
local function on_key(key)
  if key ~= INTERRUPT then
    return
  end
  local mode = api.nvim_get_mode().mode
  local action = (actions[api.nvim_get_current_buf()] or {})[mode]
  -- The person may have mapped the key to something else, or to nothing.
  local is_mapped = action and vim.fn.maparg('<C-c>', mode, false, true).callback == action
  if is_mapped and vim.fn.state() == '' then
    vim.schedule(action)
  end
end

--- Runs an action also when `<C-c>` interrupts Neovim. Does nothing for other keys.
---@param buf integer
---@param modes string|string[]
---@param lhs string
---@param action fun()|string
function M.watch(buf, modes, lhs, action)
  if type(action) ~= 'function' or vim.keycode(lhs) ~= INTERRUPT then
    return
  end
  if not actions[buf] then
    actions[buf] = {}
    api.nvim_create_autocmd('BufWipeout', {
      buffer = buf,
      once = true,
      callback = function()
        actions[buf] = nil
        if not next(actions) then
          vim.on_key(nil, keys)
        end
      end,
    })
  end
  for _, mode in ipairs(type(modes) == 'table' and modes or { modes }) do
    actions[buf][mode] = action
  end
  vim.on_key(on_key, keys)
end

return M
