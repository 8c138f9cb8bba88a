--- Names of symbols as people and models write them, such as `Type::method`, `module.function()` or `Class#method`.
local M = {}

-- Bytes of one part of a name. All bytes beyond ASCII count.
local WORD = '[%w_$\128-\255]'
-- The separators between two parts of a name.
local SEPARATORS = { '::', '->', '.', '#', ':' }
-- The most bytes of a name. A longer word is no name.
local LONGEST = 200

--- Returns the end of the separator that begins at a byte, and of the part after it.
---@param text string
---@param at integer
---@return integer?
local function next_part(text, at)
  for _, separator in ipairs(SEPARATORS) do
    if text:sub(at, at + #separator - 1) == separator then
      local _, stop = text:find('^' .. WORD .. '+', at + #separator)
      return stop
    end
  end
end

--- Returns the name at a byte of a line: up to the part that has this byte in it, so that `Type::method` is `Type` at its first part.
---@param text string
---@param at integer 1-based
---@return string?
function M.at(text, at)
  if not text:sub(at, at):find(WORD) then
    return nil
  end
  local start, stop = text:find(WORD .. '+', math.max(at - LONGEST, 1))
  while start and stop and start <= at do
    if stop >= at then
      local name = text:sub(start, stop)
      return #name <= LONGEST and not name:find('^%d') and name or nil
    end
    local longer = next_part(text, stop + 1)
    if longer then
      stop = longer
    else
      start, stop = text:find(WORD .. '+', stop + 1)
    end
  end
end

--- Returns the name that a text consists of, such as `Type::method` of `Type::method()`; nil if it is none.
---@param text string
---@return string?
function M.whole(text)
  if #text > 2 * LONGEST then
    return nil
  end
  local name = text:gsub('%b()$', ''):gsub('!$', '')
  return #name <= LONGEST and M.at(name, #name) == name and name or nil
end

--- Returns the parts of a name.
---@param name string
---@return string[]
local function parts(name)
  local found = {}
  for part in name:gmatch(WORD .. '+') do
    found[#found + 1] = part
  end
  return found
end

--- Returns the texts by which language servers search for a name in a workspace, the first one first.
---@param name string
---@return string[]
function M.searches(name)
  local all = parts(name)
  local last = all[#all] or name
  -- rust-analyzer finds only types, unless the text ends with "#": https://rust-analyzer.github.io/book/features.html
  return { last, last .. '#' }
end

--- Returns whether a symbol has a name. If a language server tells no container, the last part of the name decides.
---@param name string
---@param symbol lsp.WorkspaceSymbol|lsp.SymbolInformation
---@return boolean
function M.names(name, symbol)
  local wanted = parts(name)
  local container = symbol.containerName
  container = type(container) == 'string' and #container <= 2 * LONGEST and container or ''
  if #symbol.name > 2 * LONGEST then
    return false
  end
  local own = parts((symbol.name:gsub('%b()$', ''):gsub('%b<>$', '')))
  local known = parts((container:gsub('%b<>$', '')))
  vim.list_extend(known, own)
  if wanted[#wanted] ~= own[#own] then
    return false
  elseif #wanted == 1 or #known == 1 then
    return true
  end
  return wanted[#wanted - 1] == known[#known - 1]
end

return M
