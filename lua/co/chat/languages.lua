--- Loads treesitter languages in small steps between which Neovim handles keys.
---
--- Loading one takes up to 30 ms. During an answer a person would notice that.
local M = {}

-- Milliseconds between two steps.
local PAUSE = 5

--- Returns a query of a language, if there is one.
---@param lang string
---@param kind 'highlights'|'injections'
---@return vim.treesitter.Query?
function M.query(lang, kind)
  local ok, found = pcall(vim.treesitter.query.get, lang, kind)
  return ok and found or nil
end

---@type (fun())[]
local steps = {}
---@type table<string, true>
local prepared = {}
local preparing = false

--- Runs the next step and starts the timer for the one after it.
local function run_next_step()
  local step = table.remove(steps, 1)
  preparing = step ~= nil
  if step then
    -- First, because a step may fail.
    vim.defer_fn(run_next_step, PAUSE)
    step()
  end
end

--- Loads a language in the next steps.
---@param lang string
function M.prepare(lang)
  if prepared[lang] then
    return
  end
  prepared[lang] = true
  vim.list_extend(steps, {
    function()
      pcall(vim.treesitter.language.add, lang)
    end,
    function()
      M.query(lang, 'highlights')
    end,
    function()
      M.query(lang, 'injections')
    end,
    function()
      pcall(function()
        vim.treesitter.get_string_parser('', lang):parse(true)
      end)
    end,
  })
  if not preparing then
    preparing = true
    vim.defer_fn(run_next_step, PAUSE)
  end
end

--- Loads the languages of the code blocks in `lines`.
---@param lines string[]
function M.prepare_fences(lines)
  for _, line in ipairs(lines) do
    local name = line:match('^%s*```+%s*([%w_+#-]+)') or line:match('^%s*~~~+%s*([%w_+#-]+)')
    if name then
      M.prepare(vim.treesitter.language.get_lang(name:lower()) or name:lower())
    end
  end
end

--- Returns whether all languages are loaded.
---@return boolean
function M.ready()
  return #steps == 0
end

--- Calls a function after the steps that are due now.
---@param callback fun()
function M.after_steps(callback)
  if preparing then
    steps[#steps + 1] = callback
  else
    callback()
  end
end

return M
