--- Highlight groups: links, and groups for SGR codes of terminal output.
local M = {}

local api = vim.api

--- Each group with the group that it links to by default. `:help co-highlights` lists them.
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
  CoDiffAdded = 'Added',
  CoDiffRemoved = 'Removed',
  CoLineChanged = 'Changed',
  CoLineRemoved = 'Removed',
  CoSpeaker = 'Title',
  CoRule = 'Comment',
  CoCall = '@none',
  CoCallWaits = 'DiagnosticWarn',
  CoCallLooks = 'Comment',
  CoCallDone = 'DiagnosticOk',
  CoCallFailed = 'DiagnosticError',
  CoCallDetail = 'Comment',
  CoCallOutput = 'Comment',
  CoPromptHint = 'Comment',
  CoRunCommand = 'Title',
  CoRunRunning = 'Comment',
  CoRunOk = 'Comment',
  CoRunFailed = 'DiagnosticError',
  CoRunSkipped = 'Comment',
}

--- The backgrounds of changed lines in a review, below the colours of their text: for the option 'background', light and dark.
M.backgrounds = {
  CoReviewAdded = { light = { '#d8f3dc', 194 }, dark = { '#12351d', 22 } },
  CoReviewRemoved = { light = { '#ffdcdc', 224 }, dark = { '#47191c', 52 } },
}

-- The colours of xterm, used if the colour scheme sets no `g:terminal_color_N`. The blue is lighter.
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

--- Returns the colour of an index of the 256 colours.
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

--- Reads the colour after the code 38 or 48 at `at`.
---@param codes integer[]
---@param at integer
---@return string? colour
---@return integer? terminal index
---@return integer next the position after it
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

--- Returns the arguments of `nvim_set_hl` for SGR codes such as `1;38;5;208`.
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
  -- The attributes for terminals without true colour.
  hl.cterm = { bold = hl.bold, italic = hl.italic, underline = hl.underline, reverse = hl.reverse }
  return hl
end

---@type table<string, string>
local groups = {}
-- The numbers of groups with the first 16 colours only, and of groups with other colours.
local few, many = 0, 0

-- Neovim has room for 20,000 groups and frees none. One picture has more colours than that. So the first groups have
-- exact colours, the next ones the nearest of 216 colours, and the rest of the text gets no colour.
local EXACT = 4000
local MOST = 6000
-- The most bytes of the codes of a group: its name has them.
local LONGEST = 120

--- Returns the level in the colour cube, 0 to 5, of a value from 0 to 255.
---@param value string
---@return integer
local function level_of(value)
  local number = math.min(tonumber(value) or 0, 255)
  return number < 48 and 0 or number < 115 and 1 or math.floor((number - 35) / 40)
end

--- Replaces true colours in SGR codes by the nearest of 216 colours.
---@param sgr string
---@return string
local function nearest_sgr(sgr)
  local near = sgr:gsub('([34]8);2;(%d+);(%d+);(%d+)', function(ground, red, green, blue)
    local index = 16 + 36 * level_of(red) + 6 * level_of(green) + level_of(blue)
    return ('%s;5;%d'):format(ground, index)
  end)
  return near
end

--- Returns the group for SGR codes and creates it on first use; nil if there are too many groups, or codes.
---@param sgr string
---@return string?
function M.group(sgr)
  if #sgr > LONGEST then
    return nil
  end
  if not groups[sgr] and many >= EXACT then
    sgr = nearest_sgr(sgr)
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

--- Defines all groups.
local function define()
  for group, link in pairs(M.links) do
    api.nvim_set_hl(0, group, { link = link, default = true })
  end
  for group, colours in pairs(M.backgrounds) do
    local bg = colours[vim.o.background]
    api.nvim_set_hl(0, group, { bg = bg[1], ctermbg = bg[2], default = true })
  end
  for sgr, group in pairs(groups) do
    api.nvim_set_hl(0, group, M.definition(sgr) --[[@as vim.api.keyset.highlight]])
  end
end

local defined = false

--- Defines the groups once, and again after each change of the colour scheme.
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

--- Highlights lines of output.
---@param buf integer
---@param namespace integer
---@param first integer row of the first line
---@param styles co.Style[]
---@param indent? integer bytes in front of the output in each line
function M.set_styles(buf, namespace, first, styles, indent)
  indent = indent or 0
  for _, style in ipairs(styles) do
    local group = M.group(style.sgr)
    if group then
      api.nvim_buf_set_extmark(buf, namespace, first + style.line, style.start + indent, {
        end_col = style['end'] + indent,
        hl_group = group,
        strict = false,
      })
    end
  end
end

return M
