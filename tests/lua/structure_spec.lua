-- The files of the plugin require each other without cycles.

--- The layers, the lowest first: folders, and files at the top. Each requires only itself and lower layers.
local LAYERS = {
  { 'ui', 'version', 'types', 'install', 'settings' },
  { 'config' },
  { 'alert' },
  { 'backend' },
  { 'buffers', 'hooks', 'question', 'run' },
  { 'chat' },
  { 'user_command' },
  { 'init', 'handlers', 'health', 'blink', 'cmp' },
}

-- The functions by which text from outside reaches the screen, and those that run autocommands of other plugins. Only these
-- files call them: they bound the text, and guard co from errors in the autocommands.
local FUNNELS = {
  ['nvim_buf_set_lines'] = {
    'ui/buffer',
    'chat/call',
    'chat/text',
    -- A buffer of the person, or text that the person wrote.
    'buffers/replace_lines',
    'chat/commit',
    'chat/prompt',
    'question/text_input',
    -- The text that the buffer had.
    'run/shell_copy',
    -- No window shows it.
    'ui/parse_in_steps',
  },
  ['nvim_buf_set_text'] = {
    'chat/bounds',
    'chat/call',
    'chat/text',
    'buffers/replace_lines',
    'run/shell_buffer',
    'ui/textlock',
  },
  ['vim%.notify'] = { 'ui/notify' },
  ['nvim_exec_autocmds'] = { 'ui/guarded' },
  ['nvim_open_win'] = { 'ui/guarded' },
  ['nvim_win_close'] = { 'ui/guarded' },
  ['nvim_win_set_buf'] = { 'ui/guarded' },
  ['nvim_set_current_win'] = { 'ui/guarded' },
  ['nvim_set_current_tabpage'] = { 'ui/guarded' },
  ['sbuffer'] = { 'ui/guarded' },
  ['%.filetype = '] = {},
  ['%.syntax = '] = {},
  ['nvim_echo'] = { 'ui/notify' },
  ['vim%.ui%.select'] = { 'ui/select' },
  -- For blanks alone, their time grows with the square of the number of these.
  ['vim%.trim'] = { 'ui/printable', 'install' },
  -- Neovim ends at a number that is not finite or has more than 53 bits.
  ['mpack'] = {},
  ['trimempty'] = { 'chat/send' },
}

--- Returns the name of the module in a file.
---@param path string below lua/co, without its ending
---@return string
local function module_of(path)
  return path == 'init' and 'co' or 'co.' .. path:gsub('/init$', ''):gsub('/', '.')
end

--- Returns the folder or the file at the top that a module belongs to.
---@param module string
---@return string
local function layer_of(module)
  return module:match('^co%.([%w_]+)') or 'init'
end

--- Returns the modules that a text names in `require`, also within strings, in `package.loaded`, and in the `to` of handlers.
---@param text string
---@return string[]
local function required(text)
  local found = {}
  for _, pattern in ipairs({
    'require[%s(]*\\?["\'](co[%w_.]*)',
    'package%.loaded%[["\'](co[%w_.]*)',
    "= to%('(co[%w_.]*)'",
  }) do
    for name in text:gmatch(pattern) do
      found[#found + 1] = name
    end
  end
  return found
end

--- Returns each module with the other modules that it requires.
---@return table<string, string[]>
local function graph()
  local edges = {}
  local root = _G.co_root .. '/lua/co/'
  for _, file in ipairs(vim.fn.glob(root .. '**/*.lua', true, true)) do
    local module = module_of(file:sub(#root + 1, -5))
    local text = table.concat(vim.fn.readfile(file), '\n')
    edges[module] = vim.tbl_filter(function(name)
      return name ~= module
    end, required(text))
  end
  return edges
end

--- Returns a cycle of modules, as a path whose last module is its first; nil if there is none.
---@param edges table<string, string[]>
---@return string?
local function cycle(edges)
  local done = {}
  local function visit(module, path)
    for index, earlier in ipairs(path) do
      if earlier == module then
        return table.concat(vim.list_slice(path, index), ' -> ') .. ' -> ' .. module
      end
    end
    if done[module] then
      return nil
    end
    path[#path + 1] = module
    for _, name in ipairs(edges[module] or {}) do
      local found = visit(name, path)
      if found then
        return found
      end
    end
    path[#path] = nil
    done[module] = true
  end
  for module in vim.spairs(edges) do
    local found = visit(module, {})
    if found then
      return found
    end
  end
end

describe('the files of the plugin', function()
  it('require each other without a cycle', function()
    same(nil, cycle(graph()))
    same('co.a -> co.b -> co.a', cycle({ ['co.a'] = { 'co.b' }, ['co.b'] = { 'co.c', 'co.a' } }))
    same(
      { 'co.a', 'co.b.c', 'co', 'co.d' },
      required(
        [[require('co.a') "v:lua.require'co.b.c'.f" require(\"co\") package.loaded['co.d'] 'co.e']]
      )
    )
  end)

  it('bring text from outside onto the screen in bounded ways only', function()
    local root = _G.co_root .. '/lua/co/'
    for _, file in ipairs(vim.fn.glob(root .. '**/*.lua', true, true)) do
      local text = table.concat(vim.fn.readfile(file), '\n'):gsub('%-%-[^\n]*', '')
      for name, files in pairs(FUNNELS) do
        local calls = text:find(name) ~= nil
        yes(not calls or vim.list_contains(files, file:sub(#root + 1, -5)), file .. ' has ' .. name)
      end
    end
  end)

  it('write nothing to the directories of the person in tests', function()
    for _, kind in ipairs({ 'config', 'data', 'state', 'cache' }) do
      local path = vim.fn.stdpath(kind) --[[@as string]]
      yes(not vim.startswith(path, vim.fn.expand('~') .. '/'), path)
    end
  end)

  it('require only files of their own folder and of lower ones', function()
    local rank = {}
    for index, names in ipairs(LAYERS) do
      for _, name in ipairs(names) do
        rank[name] = index
      end
    end
    local wrong, edges = {}, graph()
    for module, names in vim.spairs(edges) do
      local own = layer_of(module)
      yes(rank[own], 'no layer for ' .. module)
      for _, name in ipairs(names) do
        yes(edges[name], ('%s requires %s, which does not exist'):format(module, name))
        local other = layer_of(name)
        if other ~= own and rank[other] >= rank[own] then
          wrong[#wrong + 1] = module .. ' -> ' .. name
        end
      end
    end
    same({}, wrong)
  end)
end)
