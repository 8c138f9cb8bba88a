--- The languages that treesitter knows, made ready in parts that no key is late for.
---
--- The first use of one takes up to 30 ms, which in the middle of an answer would be felt.
local M = {}

-- Milliseconds between two parts.
local PAUSE = 5

--- The query of a language, where there is one.
---@param lang string
---@param kind 'highlights'|'injections'
---@return vim.treesitter.Query?
function M.query(lang, kind)
  local ok, found = pcall(vim.treesitter.query.get, lang, kind)
  return ok and found or nil
end

---@type (fun())[]
local preparations = {}
---@type table<string, true>
local prepared = {}
local preparing = false

local function go_on()
  local step = table.remove(preparations, 1)
  preparing = step ~= nil
  if step then
    step()
    vim.defer_fn(go_on, PAUSE)
  end
end

--- Reads what belongs to a language, a little later.
---@param lang string
function M.prepare(lang)
  if prepared[lang] then
    return
  end
  prepared[lang] = true
  vim.list_extend(preparations, {
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
    vim.defer_fn(go_on, PAUSE)
  end
end

--- Prepares the languages of the fenced code in `lines`.
---@param lines string[]
function M.prepare_fences(lines)
  for _, line in ipairs(lines) do
    local name = line:match('^%s*```+%s*([%w_+#-]+)') or line:match('^%s*~~~+%s*([%w_+#-]+)')
    if name then
      M.prepare(vim.treesitter.language.get_lang(name:lower()) or name:lower())
    end
  end
end

--- Whether all that was asked for is there.
---@return boolean
function M.ready()
  return #preparations == 0
end

return M
