--- Waits for the diagnostics that a change of a buffer causes.
local M = {}

local api = vim.api

-- The longest time to wait for a language server, and the time without news after which it has told all.
local LONGEST_MS, QUIET_MS = 3000, 300
-- The most diagnostics that are told.
local MOST = 20

--- Returns a text for a diagnostic, without its place.
---@param diagnostic vim.Diagnostic
---@return string
function M.words(diagnostic)
  local source = diagnostic.source and (' [%s]'):format(diagnostic.source) or ''
  local severity = vim.diagnostic.severity[diagnostic.severity or 1]
  return ('%s: %s%s'):format(tostring(severity):lower(), diagnostic.message, source)
end

--- Counts the diagnostics of a buffer by their texts. Their places move with the lines.
---@param buf integer
---@return table<string, integer>
function M.count(buf)
  local counts = {}
  for _, diagnostic in ipairs(vim.diagnostic.get(buf)) do
    counts[M.words(diagnostic)] = (counts[M.words(diagnostic)] or 0) + 1
  end
  return counts
end

--- Returns the diagnostics that were not there before, each as `line:column: severity: message`.
---@param buf integer
---@param before table<string, integer> which `count` returned
---@return string[]
local function new_ones(buf, before)
  local left, found = vim.deepcopy(before), {}
  local all = vim.diagnostic.get(buf)
  table.sort(all, function(one, other)
    return one.lnum < other.lnum
  end)
  for _, diagnostic in ipairs(all) do
    local text = M.words(diagnostic)
    left[text] = (left[text] or 0) - 1
    if left[text] < 0 and #found < MOST then
      found[#found + 1] = ('%d:%d: %s'):format(diagnostic.lnum + 1, diagnostic.col + 1, text)
    end
  end
  return found
end

--- Waits until the language servers of a buffer have no more news, and calls `done` with the new diagnostics. If the
--- buffer has no language server, calls `done` at once with an empty list.
---@param buf integer
---@param before table<string, integer> which `count` returned before the change
---@param done fun(diagnostics: string[])
function M.wait(buf, before, done)
  if #vim.lsp.get_clients({ bufnr = buf }) == 0 then
    done({})
    return
  end
  local news, finished = 0, false
  ---@type integer
  local watcher
  local function finish()
    if not finished then
      finished = true
      api.nvim_del_autocmd(watcher)
      done(api.nvim_buf_is_valid(buf) and new_ones(buf, before) or {})
    end
  end
  watcher = api.nvim_create_autocmd('DiagnosticChanged', {
    buffer = buf,
    callback = function()
      news = news + 1
      local mine = news
      vim.defer_fn(function()
        if mine == news then
          finish()
        end
      end, QUIET_MS)
    end,
  })
  vim.defer_fn(finish, LONGEST_MS)
end

return M
