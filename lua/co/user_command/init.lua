--- The user commands `:Co` and `:Co!`.
local M = {}

local api = vim.api
local backend = require('co.backend')
local callbacks = require('co.chat.callbacks')
local directory = require('co.ui.directory')
local file_names = require('co.user_command.file_names')
local focus = require('co.ui.focus')
local notify = require('co.ui.notify')
local printable = require('co.ui.printable')
local windows = require('co.ui.windows')

--- Returns the lines of the range, if the command has one.
---@param opts vim.api.keyset.create_user_command.command_args
---@return string[]?
local function range_lines(opts)
  if opts.range == 0 then
    return nil
  end
  return api.nvim_buf_get_lines(0, opts.line1 - 1, opts.line2, false)
end

--- Carries out what a person typed into a chat: `!cmd` runs a command, `/name` is a slash command, other text is a prompt.
---@param chat co.Chat
---@param text string
---@param cwd string
---@param context? co.Context[]
---@param range? co.LineRange
---@return boolean taken
function M.submit(chat, text, cwd, context, range)
  focus.asked()
  local send = require('co.chat.send')
  local command = text:match('^!%s*(.-)%s*$')
  if command then
    local expanded, problem = file_names.expand(command, cwd)
    if not expanded then
      notify.error(problem --[[@as string]])
      return false
    end
    return send.run(chat, expanded, cwd)
  end
  local name, args = text:match('^/(%S*)%s*(.-)%s*$')
  if name then
    return require('co.user_command.slash').run(name, args or '', chat, cwd, context)
  end
  return send.prompt(chat, text, cwd, context, range)
end

--- Sends a prompt to the current chat and shows the chat. The focus stays.
---@param text string
---@param context? co.Context[]
---@param range? co.LineRange
---@return boolean taken
function M.prompt(text, context, range)
  backend.start_early(true)
  local chat = require('co.chat.registry').current() or require('co.chat').new()
  local cwd = chat and directory.existing()
  if not chat or not cwd then
    return false
  end
  -- An earlier `:{range}Co` was for a prompt that is typed into the chat.
  chat.range = nil
  -- Contexts are read before a window opens.
  local taken = M.submit(chat, text, cwd, context, range)
  if taken and not text:match('^/') then
    require('co.chat.prompt').remember(text)
    require('co.chat.window').show(chat, false)
  end
  return taken
end

--- Carries out `:Co!`.
---@param opts vim.api.keyset.create_user_command.command_args
local function run_command(opts)
  if printable.trim(opts.args) == '' then
    require('co.run').rerun()
    return
  end
  local plain, options, wrong = require('co.run.options').parse(printable.trim(opts.args))
  if not plain or plain == '' then
    notify.error(
      wrong and 'not run: ' .. wrong
        or 'a command is missing: :Co! ++pty htop runs one in a terminal'
    )
    return
  end
  local cwd = directory.existing()
  if not cwd then
    return
  end
  local command, problem = file_names.expand(plain, cwd)
  if not command then
    notify.error(problem --[[@as string]])
    return
  end
  backend.start_early(false)
  local lines = range_lines(opts)
  require('co.run').run(command, cwd, lines and table.concat(lines, '\n') .. '\n' or nil, options)
end

--- Carries out `:Co`, or passes `:Co!` on.
---@param opts vim.api.keyset.create_user_command.command_args
local function carry_out(opts)
  if opts.bang then
    run_command(opts)
    return
  end
  local text = printable.trim(opts.args)
  local name, args = text:match('^/(%S*)%s*(.-)%s*$')
  local lines = range_lines(opts)
  local contexts = require('co.chat.context')
  local range
  if name == 'edit' and lines and args and args ~= '' then
    text = contexts.edit_prompt(opts.line1, opts.line2, args)
    range = contexts.line_range(opts.line1, opts.line2)
  elseif name then
    local chat = require('co.chat.registry').current()
    local context = lines and { contexts.range(opts.line1, opts.line2) } or nil
    require('co.user_command.slash').run(name, args or '', chat, vim.fn.getcwd(), context)
    return
  end
  local context = lines and { contexts.range(opts.line1, opts.line2) } or nil
  if text == '' then
    require('co.chat').open()
    local chat = require('co.chat.registry').current()
    if chat then
      chat.range = context and context[1]
    end
    if chat and context then
      notify.info('type the prompt; @selection gives it these lines')
    end
    return
  end
  M.prompt(text, context, range)
end

--- Carries out `:Co` or `:Co!`.
---@param opts vim.api.keyset.create_user_command.command_args
function M.run(opts)
  -- This reads `vim.g.co` again.
  require('co.config').get()
  windows.attempt(function()
    carry_out(opts)
  end)
end

callbacks.submit = function(chat, text)
  return M.submit(chat, text, chat.state.cwd)
end

callbacks.complete = function(findstart, base)
  return require('co.user_command.complete').omnifunc(findstart, base)
end

return M
