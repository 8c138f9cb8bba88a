--- The chats: two buffers each, and the messages of the backend that change them.
local M = {}

local api = vim.api
local backend = require('co.backend')
local buffer = require('co.ui.buffer')
local callbacks = require('co.chat.callbacks')
local changed_lines = require('co.buffers.changed_lines')
local chat_text = require('co.chat.text')
local chat_prompt = require('co.chat.prompt')
local directory = require('co.ui.directory')
local drafts = require('co.chat.drafts')
local earlier_text = require('co.chat.earlier_text')
local events = require('co.ui.events')
local gate = require('co.ui.gate')
local guarded = require('co.ui.guarded')
local keys = require('co.chat.keys')
local notify = require('co.ui.notify')
local pair = require('co.chat.pair')
local registry = require('co.chat.registry')
local reload = require('co.ui.reload')
local session = require('co.chat.session')
local utf8 = require('co.ui.utf8')
local window = require('co.chat.window')
local window_options = require('co.chat.window_options')
local windows = require('co.ui.windows')

---@class (exact) co.Chat
---@field id integer
---@field buf integer the buffer of its text
---@field text co.ChatText
---@field prompt co.PromptBuffer
---@field state co.State
---@field cwd string the directory that it was opened in; `state` has the present one
---@field range? co.Context the lines of `:{range}Co`, for the next prompt
---@field gathering co.GatheringPrompt[] the waiting prompts whose contexts are not gathered yet
---@field waiting_prompts string[] the prompts that were sent and still wait for their turn, the newest last
---@field draft co.Draft as it was saved
---@field unloaded? string the id of its transcript, if the present backend has not loaded it
---@field agent? string the agent that works in it
---@field lost_choice? { name: 'agent'|'model', args: string } the chosen agent or model that the backend does not know

-- Milliseconds from the end of a turn. Plugins that render markdown drop an event that comes soon after another one, such
-- as the scrolling of the window.
local RENDER_AFTER = 250

-- For each buffer that `:edit` loads again: its text, the messages in the text, and the number of bytes above the text.
---@type table<integer, { lines: string[], messages: co.MessageRow[], above: integer }>
local unloaded = {}

--- Updates the winbars of all chats.
function M.update_winbars()
  for _, chat in ipairs(registry.all()) do
    window_options.update_winbar(chat)
  end
end

gate.on_delay(M.update_winbars)

--- Ends a chat.
---@param chat co.Chat
local function forget(chat)
  if registry.get(chat.id) ~= chat then
    return
  end
  registry.remove(chat)
  session.note()
  backend.send_if_running({ type = 'close', chat = chat.id })
  require('co.question').withdraw(chat.id)
  require('co.chat.plan').forget(chat.id)
end

--- Ends a chat if one of its buffers is deleted. If `:edit` unloads a buffer and loads it again, keeps the chat and its
--- text.
---@param chat co.Chat
---@param buf integer
local function on_unload(chat, buf)
  if vim.v.exiting == vim.NIL then
    unloaded[buf] = unloaded[buf]
      or {
        lines = api.nvim_buf_get_lines(buf, 0, -1, false),
        messages = buf == chat.buf and chat.text.messages:between() or {},
        above = chat.text.above,
      }
  end
  if buf == chat.buf then
    chat.text:end_calls()
  end
  vim.schedule(function()
    unloaded[buf] = nil
    if buffer.alive(chat.buf) and buffer.alive(chat.prompt.buf) then
      return
    end
    forget(chat)
    for _, own in ipairs({ chat.buf, chat.prompt.buf }) do
      guarded.delete_buffer(own)
    end
  end)
end

--- Returns the first lines of the commands that run in the chats.
---@return string[]
local function running_commands()
  ---@type string[]
  local commands = {}
  for _, chat in ipairs(registry.all()) do
    vim.list_extend(commands, chat.state.commands or {})
  end
  return commands
end

--- Sets the autocommands and the keys of a chat's buffers.
---@param chat co.Chat
local function set_up(chat)
  local group = api.nvim_create_augroup('co.chat.' .. chat.id, {})
  for _, buf in ipairs({ chat.buf, chat.prompt.buf }) do
    local function on(event, callback)
      api.nvim_create_autocmd(event, { group = group, buffer = buf, callback = callback })
    end
    on({ 'BufUnload', 'BufWipeout' }, function()
      on_unload(chat, buf)
    end)
    on('BufEnter', function()
      registry.use(chat)
    end)
  end
  api.nvim_create_autocmd({ 'TextChanged', 'TextChangedI', 'TextChangedP' }, {
    group = group,
    buffer = chat.prompt.buf,
    callback = function()
      chat.prompt:update_hint()
      drafts.save_soon(chat)
    end,
  })
  -- The person is about to type.
  api.nvim_create_autocmd('InsertEnter', {
    group = group,
    buffer = chat.prompt.buf,
    callback = function()
      backend.start_early(true)
    end,
  })
  pair.watch(chat, group)
  keys.map(chat, M.cancel)
  require('co.ui.highlight').ensure()
  require('co.question').watch_keys()
  require('co.ui.last_window').watch()
  require('co.ui.quit').refuse_while('running', running_commands)
  drafts.watch()
end

--- Makes a buffer the buffer of a chat's text.
---@param id integer
---@param buf? integer
---@return co.ChatText
local function make_text(id, buf)
  buf = buffer.scratch('co://chat/' .. id, 'co-chat', buf)
  local before = unloaded[buf] or {}
  return chat_text.new(buf, before.lines, before.messages, before.above)
end

--- Makes a buffer the buffer of a chat's prompt.
---@param id integer
---@param buf? integer
---@return co.PromptBuffer
local function make_prompt(id, buf)
  buf = buffer.scratch(('co://chat/%d/prompt'):format(id), 'co-prompt', buf)
  return chat_prompt.new(buf, (unloaded[buf] or {}).lines)
end

--- Creates a chat and its buffers.
---@param id integer
---@param cwd string
---@param existing? { text?: integer, prompt?: integer } its buffers, if there are some
---@return co.Chat
local function create(id, cwd, existing)
  existing = existing or {}
  local text = make_text(id, existing.text)
  ---@type co.Chat
  local chat = {
    id = id,
    buf = text.buf,
    text = text,
    prompt = make_prompt(id, existing.prompt),
    cwd = cwd,
    waiting_prompts = {},
    gathering = {},
    draft = { text = '' },
    state = {
      state = 'idle',
      detail = '',
      model = '',
      cwd = cwd,
      confinement = '',
      input = 0,
      output = 0,
      queued = 0,
      taken_prompts = 0,
    },
  }
  registry.add(chat)
  set_up(chat)
  return chat
end

--- Returns a new chat in a directory, by default that of the current window; nil, after a notice, if it cannot be used.
---
--- The model reads the name of the directory, so the name must be UTF-8.
---@param cwd? string
---@return co.Chat?
function M.new(cwd)
  local existing = directory.existing(cwd)
  if existing and not utf8.valid(existing) then
    notify.error(utf8.NO_PLACE)
    return nil
  end
  return existing and create(registry.next_id(), existing)
end

--- Shows the buffer `other` in the windows of the buffer `buf`, and deletes `buf`.
---@param buf integer
---@param other integer
local function show_instead(buf, other)
  if not (api.nvim_buf_is_valid(buf) and api.nvim_buf_is_valid(other)) then
    return
  end
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    guarded.set_buf(win, other)
  end
  guarded.delete_buffer(buf)
end

--- Makes a chat of a buffer that a session file or `:edit` named.
---@param buf integer
---@param id integer
---@param is 'text'|'prompt'
function M.adopt(buf, id, is)
  local chat = registry.get(id)
  if not chat then
    create(id, vim.fn.getcwd(), { [is] = buf })
    return
  elseif chat.buf == buf then
    chat.text = make_text(id, buf)
  elseif chat.prompt.buf == buf then
    chat.prompt = make_prompt(id, buf)
  else
    vim.schedule(function()
      show_instead(buf, is == 'text' and chat.buf or chat.prompt.buf)
    end)
    return
  end
  set_up(chat)
end

--- Takes over the buffers that a session file left, and loads the chats again.
function M.restore()
  for _, left in ipairs(session.take()) do
    local chat = create(left.id, vim.fn.getcwd(), { text = left.text, prompt = left.prompt })
    chat.unloaded = left.transcript
    for _, win in ipairs(vim.fn.win_findbuf(chat.buf)) do
      window_options.set_for_text(chat, win)
    end
    for _, win in ipairs(vim.fn.win_findbuf(chat.prompt.buf)) do
      window_options.set_for_prompt(win)
    end
    pair.mend(chat)
    require('co.chat.send').message(chat, {
      type = 'command',
      chat = chat.id,
      name = 'resume',
      args = left.transcript,
      cwd = chat.cwd,
    }, chat.cwd)
  end
end

--- Shows the current chat, or a new one, with the cursor at its prompt.
function M.open()
  local chat = registry.current() or M.new()
  if chat then
    window.show(chat, true)
  end
end

--- Hides the current chat if it has the cursor, else shows it with the cursor at its prompt.
function M.toggle()
  local chat = registry.current()
  local here = api.nvim_get_current_buf()
  if chat and (here == chat.buf or here == chat.prompt.buf) then
    window.hide(chat)
  else
    M.open()
  end
end

--- Cancels the turn of a chat; if none runs, the queue.
---@param chat co.Chat
function M.cancel(chat)
  -- The backend answers only later, and a change may become possible before.
  gate.withdraw({ chat = chat.id })
  backend.send_if_running({ type = 'cancel', chat = chat.id })
end

--- Returns the chat of a message; nil if its buffer is gone. The message may be older than `close`.
---@param message { chat?: integer }
---@return co.Chat?
local function of_message(message)
  local chat = registry.get(message.chat)
  return chat and buffer.alive(chat.buf) and chat or nil
end

--- Changes the text of the chat of a message. Windows that show its end show the new end.
---@param message { chat?: integer }
---@param change fun(text: co.ChatText)
---@return co.Chat? chat nil if its buffer is gone
local function change_text(message, change)
  local chat = of_message(message)
  if chat then
    windows.follow(chat.buf, function()
      change(chat.text)
    end)
  end
  return chat
end

--- Adds text to the end of a chat.
---@param message co.Append
function M.append(message)
  change_text(message, function(text)
    text:append(message.text)
  end)
end

--- Reloads the buffers of files that a turn changed, or a command of the person between two turns.
---@param chat co.Chat
local function reload_changed(chat)
  local in_turn = chat.state.state ~= 'idle'
  reload.changed_files(in_turn and changed_lines.compare or nil)
end

--- Shows a call at the end of a chat, or the new state of a call.
---@param message co.CallMessage
function M.call(message)
  local chat = change_text(message, function(text)
    text:call(message)
  end)
  -- It may have changed files without an output.
  if chat and message.kept and not message.block and message.state ~= 'looks' then
    reload_changed(chat)
  end
end

--- Changes the output of a call.
---@param message co.BlockMessage
function M.block(message)
  local chat = change_text(message, function(text)
    text:patch(message.block, message.patch, message.done)
  end)
  if chat and message.done then
    reload_changed(chat)
  end
end

--- Raises TextChanged for a buffer that a window shows. Plugins that render markdown wait for this event, but Neovim
--- raises it only for the current buffer. Other plugins rely on that, so the buffer is the current buffer during the
--- event.
---@param buf integer
local function tell_renderers(buf)
  vim.defer_fn(function()
    local win = vim.fn.win_findbuf(buf)[1]
    if win then
      api.nvim_win_call(win, function()
        guarded.run_autocommands('TextChanged', { buffer = buf })
      end)
    end
  end, RENDER_AFTER)
end

--- Gives the buffer of a chat a name with the title of the chat.
---@param chat co.Chat
local function name_text(chat)
  local name, title = 'co://chat/' .. chat.id, chat.state.title or ''
  buffer.rename(chat.buf, title == '' and name or buffer.titled(name, 'co', title))
end

--- Stores the new state of a chat and shows it.
---@param message co.State
function M.state(message)
  local chat = of_message(message)
  if chat then
    local taken = math.max(0, message.taken_prompts - chat.state.taken_prompts)
    chat.waiting_prompts = vim.list_slice(chat.waiting_prompts, taken + 1)
    if chat.state.state == 'idle' and message.state ~= 'idle' then
      changed_lines.clear()
    elseif chat.state.state ~= 'idle' and message.state == 'idle' then
      -- An agent need not tell what it changes. The person may have changed files too, so the lines get no signs.
      reload.changed_files()
    end
    local begun = message.transcript ~= chat.state.transcript
    -- A question may wait for long, so plugins draw the text before its answer too.
    local rests = vim.list_contains({ 'idle', 'asking' }, message.state)
    local came_to_rest = rests and chat.state.state ~= message.state
    chat.state = message
    if came_to_rest then
      tell_renderers(chat.buf)
    end
    if begun then
      session.note()
    end
    name_text(chat)
    window_options.update_winbar(chat)
  end
end

--- Puts a prompt that the backend did not accept back into the prompt.
---@param message co.Unsent
function M.unsent(message)
  local chat = of_message(message)
  if chat then
    require('co.chat.send').waits_no_longer(chat, message.text)
    chat.prompt:restore(message.text)
  end
end

callbacks.unsent = M.unsent

--- Notes that a message of the person or the model begins.
---@param message co.MessageBegins
function M.message_begins(message)
  local chat = of_message(message)
  if chat then
    chat.text:begin_message(message.at)
  end
end

--- Notes that the text that follows is the model's last answer.
---@param message co.AnswerBegins
function M.answer_begins(message)
  local chat = of_message(message)
  if chat then
    chat.text:begin_answer()
  end
end

--- Puts a blank line above the last answer, which ends its turn after calls.
---@param message co.SeparateAnswer
function M.separate_answer(message)
  change_text(message, function(text)
    text:separate_answer()
  end)
end

--- Folds the last answer, which the model no longer sees.
---@param message co.FoldAnswer
function M.fold_answer(message)
  change_text(message, function(text)
    text:fold_answer()
  end)
end

--- Replaces the whole text of a chat. If the text is long, the message has only its end.
---@param message co.Replace
function M.replace(message)
  local chat = change_text(message, function(text)
    text:replace(message)
  end)
  if chat then
    earlier_text.ask(chat)
  end
end

--- Carries out `/resume` and `/delete` for a transcript that is open in this Neovim. The backend cannot do that.
---@param name string of a slash command
---@param args string
---@return boolean done
function M.use_open(name, args)
  local open = (name == 'resume' or name == 'delete') and registry.with_transcript(args)
  if not open then
    return false
  elseif name == 'resume' then
    window.go_to(open)
    notify.info(('chat %d has it open already'):format(open.id))
  else
    notify.warn(('not deleted: chat %d has it open; :bdelete its buffer first'):format(open.id))
  end
  return true
end

--- Offers choices and sends the chosen one as a command. It marks transcripts that are open in this Neovim.
---@param message co.Choose
function M.choose(message)
  local chat = of_message(message)
  if not chat then
    return
  end
  for _, choice in ipairs(message.choices) do
    local open = registry.with_transcript(choice.value)
    if open then
      choice.label = ('%s · open: %s'):format(
        choice.label,
        open == chat and 'this chat' or 'chat ' .. open.id
      )
    end
  end
  require('co.chat.choice').offer(chat, message, function(value)
    if M.use_open(message.name, value) then
      return
    end
    backend.send_if_running({
      type = 'command',
      chat = chat.id,
      name = message.name,
      args = value,
      cwd = chat.state.cwd,
    })
  end)
end

--- Shows that the backend of a chat ended. Moves the prompts that did not start a turn back into the prompt buffer.
---@param chat co.Chat
---@param reason string
---@param held co.FromEditor[] messages that the next backend gets
---@return boolean interrupted a turn was running
local function handle_exit(chat, reason, held)
  local interrupted = chat.state.state ~= 'idle'
  chat.unloaded = chat.state.transcript or chat.unloaded
  if chat.state.chosen and (chat.state.title or '') == '' then
    chat.lost_choice = { name = chat.agent and 'agent' or 'model', args = chat.state.model }
  end
  -- The next backend numbers its own blocks.
  chat.text:end_calls()
  local gathering = vim.tbl_map(function(prompt)
    require('co.chat.send').waits_no_longer(chat, prompt.message.text)
    return prompt.message.text
  end, chat.gathering)
  chat.gathering = {}
  local prompts = vim.tbl_filter(function(message)
    return message.type == 'prompt' and message.chat == chat.id
  end, held)
  local waiting = chat.waiting_prompts
  local unread = vim.list_slice(waiting, 1, #waiting - #prompts)
  chat.waiting_prompts = vim.list_slice(waiting, #unread + 1)
  vim.list_extend(unread, gathering)
  local fresh =
    { state = 'idle', detail = '', commands = {}, queued = 0, steering = 0, taken_prompts = 0 }
  chat.state = vim.tbl_extend('force', chat.state, fresh)
  if buffer.alive(chat.buf) then
    chat.text:stop_loading()
    if interrupted then
      windows.follow(chat.buf, function()
        chat.text:append(('\n\n*%s*\n'):format(reason))
      end)
    end
    window_options.update_winbar(chat)
    if #unread > 0 then
      chat.prompt:restore(table.concat(unread, '\n'))
    end
  end
  return interrupted
end

backend.on_exit(function(reason, unsent, held)
  -- The last one first, because each goes in front of the text in the prompt.
  for index = #unsent, 1, -1 do
    local message = unsent[index]
    local text = message.type == 'prompt' and message.text
      or message.name == '!' and '!' .. message.args
    if message.chat and text then
      M.unsent({ type = 'unsent', chat = message.chat, text = text })
    end
  end
  ---@type integer[]
  local interrupted = {}
  for _, chat in ipairs(registry.all()) do
    if handle_exit(chat, reason, held) then
      interrupted[#interrupted + 1] = chat.id
    end
  end
  return function()
    for _, id in ipairs(interrupted) do
      events.raise('CoTurnDone', { chat = id, reason = 'interrupted' })
    end
  end
end)

return M
