--- Highlight groups: links by default, and groups made from a terminal's SGR codes.
local M = {}

local api = vim.api

--- Every group with what it is a link to; `:help co-highlights` lists them.
M.links = {
  CoApproval = 'NormalFloat',
  CoApprovalBorder = 'FloatBorder',
  CoApprovalTitle = 'FloatTitle',
  CoApprovalCommand = 'String',
  CoApprovalSpan = 'Underlined',
  CoApprovalLabel = 'Comment',
  CoApprovalReason = 'WarningMsg',
  CoApprovalKey = 'Special',
  CoApprovalDestructive = 'DiagnosticError',
  CoPromptRule = 'Comment',
  CoRunCommand = 'Title',
  CoRunRunning = 'Comment',
  CoRunOk = 'Comment',
  CoRunFailed = 'DiagnosticError',
  CoRunSkipped = 'Comment',
}

-- What xterm shows where the colour scheme sets no `g:terminal_color_N`, but for a blue that a dark ground swallows.
local palette = {
  [0] = '#000000',
  '#cd0000',
  '#00cd00',
  '#cdcd00',
  '#3b78ff',
  '#cd00cd',
  '#00cdcd',
  '#e5e5e5',
  '#7f7f7f',
  '#ff0000',
  '#00ff00',
  '#ffff00',
  '#5c5cff',
  '#ff00ff',
  '#00ffff',
  '#ffffff',
}

---@param index integer 0 to 255
---@return string
local function indexed(index)
  if index < 16 then
    return vim.g['terminal_color_' .. index] or palette[index]
  elseif index < 232 then
    local cube = index - 16
    local function level(n)
      return n == 0 and 0 or 55 + 40 * n
    end
    return ('#%02x%02x%02x'):format(
      level(math.floor(cube / 36)),
      level(math.floor(cube / 6) % 6),
      level(cube % 6)
    )
  end
  local grey = 8 + 10 * (index - 232)
  return ('#%02x%02x%02x'):format(grey, grey, grey)
end

local attributes = {
  [1] = 'bold',
  [3] = 'italic',
  [4] = 'underline',
  [7] = 'reverse',
  [9] = 'strikethrough',
}

--- Reads the colour after a 38 or 48 at `at`.
---@param codes integer[]
---@param at integer
---@return string? colour
---@return integer? terminal index
---@return integer next position
local function extended(codes, at)
  if codes[at + 1] == 5 and codes[at + 2] then
    local index = math.min(codes[at + 2], 255)
    return indexed(index), index, at + 3
  elseif codes[at + 1] == 2 and codes[at + 4] then
    return ('#%02x%02x%02x'):format(codes[at + 2] % 256, codes[at + 3] % 256, codes[at + 4] % 256),
      nil,
      at + 5
  end
  return nil, nil, #codes + 1
end

--- What `nvim_set_hl` takes for SGR parameters such as `1;38;5;208`.
---@param sgr string
---@return table<string, any>
function M.definition(sgr)
  local codes = {}
  for code in sgr:gmatch('%d+') do
    codes[#codes + 1] = tonumber(code) --[[@as integer]]
  end
  ---@type table<string, any>
  local hl = {}
  local at = 1
  while at <= #codes do
    local code = codes[at]
    local ground = code % 10 == 8 and (code == 38 and 'fg' or code == 48 and 'bg') or nil
    if ground then
      local colour, index, after = extended(codes, at)
      hl[ground], hl['cterm' .. ground] = colour, index
      at = after
    else
      local base = code >= 100 and 100 or code >= 90 and 90 or code >= 40 and 40 or 30
      local index = code - base + (base >= 90 and 8 or 0) --[[@as integer]]
      if attributes[code] then
        hl[attributes[code]] = true
      elseif code >= 30 and code <= 107 and code - base <= 7 then
        local where = (base == 30 or base == 90) and 'fg' or 'bg'
        hl[where], hl['cterm' .. where] = indexed(index --[[@as integer]]), index
      end
      at = at + 1
    end
  end
  -- A terminal's own attributes follow the ones of the screen.
  hl.cterm = { bold = hl.bold, italic = hl.italic, underline = hl.underline, reverse = hl.reverse }
  return hl
end

---@type table<string, string>
local groups = {}
-- Those of a terminal's first 16 colours, and those of others.
local few, many = 0, 0

-- Neovim has room for 20,000 groups, everybody's, and gives none back. A picture alone has more colours:
-- so many of either are exact, then some of the others as near as 216 colours are, and the rest is left plain.
local EXACT = 4000
local MOST = 6000

--- A level of the colour cube, 0 to 5, for one of 0 to 255.
---@param value string
---@return integer
local function level_of(value)
  local number = math.min(tonumber(value) or 0, 255)
  return number < 48 and 0 or number < 115 and 1 or math.floor((number - 35) / 40)
end

---@param sgr string
---@return string
local function coarse(sgr)
  local near = sgr:gsub('([34]8);2;(%d+);(%d+);(%d+)', function(ground, red, green, blue)
    local index = 16 + 36 * level_of(red) + 6 * level_of(green) + level_of(blue)
    return ('%s;5;%d'):format(ground, index)
  end)
  return near
end

--- The group of SGR parameters, made on first use; none where too many were made.
---@param sgr string
---@return string?
function M.group(sgr)
  if not groups[sgr] and many >= EXACT then
    sgr = coarse(sgr)
  end
  local group = groups[sgr]
  local rich = sgr:find('[34]8;') ~= nil
  if not group and (rich and many < MOST or not rich and few < EXACT) then
    group = 'CoSgr_' .. sgr:gsub('[^%d]+', '_')
    groups[sgr] = group
    few, many = few + (rich and 0 or 1), many + (rich and 1 or 0)
    api.nvim_set_hl(0, group, M.definition(sgr) --[[@as vim.api.keyset.highlight]])
  end
  return group
end

local function define()
  for group, link in pairs(M.links) do
    api.nvim_set_hl(0, group, { link = link, default = true })
  end
  for sgr, group in pairs(groups) do
    api.nvim_set_hl(0, group, M.definition(sgr) --[[@as vim.api.keyset.highlight]])
  end
end

local defined = false

--- Defines the groups once; a colour scheme that clears them gets them again.
function M.ensure()
  if defined then
    return
  end
  defined = true
  define()
  api.nvim_create_autocmd('ColorScheme', {
    group = api.nvim_create_augroup('co.highlight', {}),
    callback = define,
  })
end

return M
