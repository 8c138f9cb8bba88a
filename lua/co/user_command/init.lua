--- `:Co` and `:Co!`.
local M = {}

local api = vim.api
local notify = require('co.ui.notify')
local utf8 = require('co.ui.utf8')

--- A directory, that of the current window by default; nil, once said, where it does not exist any more.
---@param cwd? string
---@return string?
function M.cwd(cwd)
  cwd = cwd or vim.fn.getcwd()
  if cwd ~= '' and vim.fn.isdirectory(cwd) == 1 then
    return cwd
  end
  local name = cwd ~= '' and cwd or 'the working directory'
  notify.error(('%s does not exist any more: choose another with :cd'):format(name))
end

--- A new chat in a directory, that of the current window by default; nil, once said, where no chat can be.
---
--- What it says of its directory to a model must be text.
---@param cwd? string
---@return co.Chat?
function M.new_chat(cwd)
  local there = M.cwd(cwd)
  if there and not utf8.valid(there) then
    notify.error(utf8.NO_PLACE)
    return nil
  end
  return there and require('co.chat').new(there)
end

---@param opts vim.api.keyset.create_user_command.command_args
---@return string[]?
local function ranged(opts)
  if opts.range == 0 then
    return nil
  end
  return api.nvim_buf_get_lines(0, opts.line1 - 1, opts.line2, false)
end

--- The modifier of a file name that begins at `at`, such as `:r` or `:s?from?to?`.
---@param command string
---@param at integer
---@return string?
local function modifier(command, at)
  return command:match('^:[8~.hpretS]', at) or command:match('^(:g?s([^%w%s]).-%2.-%2)', at) --[[@as string?]]
end

--- What a mark that stands for nothing would stand for.
---@param mark string
---@return string
local function meant(mark)
  if mark:sub(1, 2) == '##' then
    return 'argument list'
  end
  return mark:sub(1, 1) == '%' and 'current file' or 'alternate file'
end

--- Expands `%`, `#` and `##` as `:!` does; a backslash before one keeps it.
---@param command string
---@return string? expanded
---@return string? problem
function M.expand(command)
  local problem
  local function replace(escape, mark)
    if #escape % 2 == 1 then
      return escape:sub(2) .. mark:sub(1, 1), mark:sub(2)
    end
    local plain = vim.fn.expand(mark)
    if plain == '' then
      problem = ('%s stands for the %s, and there is none'):format(mark, meant(mark))
    end
    return escape .. plain, ''
  end
  local out, at = {}, 1
  while true do
    local start, stop, escape, mark = command:find('(\\*)([%%#])', at)
    if not start or not stop then
      break
    end
    local numbered = mark == '#' and command:match('^%d+', stop + 1)
      or mark == '#' and command:match('^#', stop + 1)
      or ''
    local rest = stop + 1 + #numbered
    local modifiers = ''
    local next = modifier(command, rest)
    while next do
      modifiers = modifiers .. next
      rest = rest + #next
      next = modifier(command, rest)
    end
    local text, kept = replace(escape, mark .. numbered .. modifiers)
    out[#out + 1] = command:sub(at, start - 1) .. text .. kept
    at = rest
  end
  if problem then
    return nil, problem
  end
  return table.concat(out) .. command:sub(at)
end

--- Sends a prompt to the current chat, which is shown without taking the focus.
---@param text string
---@param context? co.Context[]
---@return boolean
function M.prompt(text, context)
  local chats = require('co.chat')
  local chat = chats.current() or M.new_chat()
  local cwd = chat and M.cwd()
  if not chat or not cwd then
    return false
  end
  -- A range that was given before was for a prompt that is typed into the chat.
  chat.range = nil
  if chats.of_buffer() ~= chat then
    chat.origin = api.nvim_get_current_win()
  end
  -- What the prompt names is read before a window opens.
  local taken = require('co.chat.send').text(chat, text, cwd, context)
  if taken and not text:match('^/') then
    chats.show(chat, false)
  end
  return taken
end

---@param opts vim.api.keyset.create_user_command.command_args
local function shell(opts)
  local runs = require('co.run')
  if vim.trim(opts.args) == '' then
    runs.rerun()
    return
  end
  local plain, options, wrong = require('co.run.options').parse(vim.trim(opts.args))
  if not plain or plain == '' then
    notify.error(
      wrong and 'not run: ' .. wrong
        or 'a command is missing: :Co! ++pty htop runs one in a terminal'
    )
    return
  end
  local command, problem = M.expand(plain)
  if not command then
    notify.error(problem --[[@as string]])
    return
  end
  local cwd = M.cwd()
  if not cwd then
    return
  end
  local lines = ranged(opts)
  runs.run(command, cwd, lines and table.concat(lines, '\n') .. '\n' or nil, options)
end

---@param opts vim.api.keyset.create_user_command.command_args
local function carry_out(opts)
  if opts.bang then
    shell(opts)
    return
  end
  local text = vim.trim(opts.args)
  local name, args = text:match('^/(%S*)%s*(.-)%s*$')
  if name then
    local chat = require('co.chat').current()
    require('co.user_command.slash').run(name, args or '', chat, vim.fn.getcwd())
    return
  end
  local lines = ranged(opts)
  local context = lines and { require('co.chat.context').range(opts.line1, opts.line2) } or nil
  if text == '' then
    require('co').open()
    local chat = require('co.chat').current()
    if chat then
      chat.range = context and context[1]
    end
    if chat and context then
      notify.info('type the prompt; @selection gives it these lines')
    end
    return
  end
  M.prompt(text, context)
end

--- Carries out `:Co` or `:Co!`.
---@param opts vim.api.keyset.create_user_command.command_args
function M.run(opts)
  -- Notices whether `vim.g.co` has changed.
  require('co.config').get()
  require('co.ui.windows').attempt(function()
    carry_out(opts)
  end)
end

return M
