--- The slash commands. The plugin carries out some itself; the backend carries out the others.
local M = {}

local focus = require('co.ui.focus')
local log = require('co.ui.log')
local notify = require('co.ui.notify')
local printable = require('co.ui.printable')

---@class (exact) co.slash.Entry
---@field arguments? string what may follow the name, as the help says it
---@field about string
---@field words? string[]|fun(lead: string, wait: boolean): string[] the words that complete an argument; with `wait`, also those that the backend must ask for
---@field completion? string the type of completion by `getcompletion()`, in place of `words`
---@field needs_chat? boolean `run` is called only with a chat
---@field run? fun(args: string, chat?: co.Chat, cwd: string, context?: co.Context[]): boolean? it returns false if it did nothing; without it, the backend carries the command out

-- The most characters of a command in a completion.
local LABEL = 40

-- The prompt files that were named as hidden.
---@type table<string, true>
local hidden = {}

--- Returns a question's number with its command, as completion inserts it.
---@param question co.Question
---@return string
function M.numbered(question)
  local first = vim.split(question.command, '\n', { plain = true })[1]
  local label = vim.fn.strchars(first) > LABEL and vim.fn.strcharpart(first, 0, LABEL - 1) .. '…'
    or first
  return ('%d (%s)'):format(question.number, label)
end

--- Returns the questions that wait, as completion inserts them.
---@return string[]
local function numbered_questions()
  return vim.tbl_map(M.numbered, require('co.question').pending())
end

--- Returns the question that the arguments name, by default the first, and the other arguments.
---@param args string
---@return co.Question?
---@return string rest
local function find_question(args)
  local approve = require('co.question')
  local number, tail = args:match('^(%d+)%s*(.*)$')
  local rest = tail or ''
  local pending = approve.pending()
  if not number then
    return pending[1], args
  end
  for _, question in ipairs(pending) do
    local numbered = M.numbered(question)
    if vim.startswith(args, numbered) then
      return question, printable.trim(args:sub(#numbered + 1))
    elseif question.number == tonumber(number) then
      return question, rest
    end
  end
  return nil, rest
end

--- Shows a notice that no such question waits.
---@param args string
local function notify_none_waits(args)
  local number = args:match('^%d+')
  notify.info(
    number and ('no question %s waits: :Co /pending lists them'):format(number)
      or 'nothing waits for an answer'
  )
end

--- Carries out `/always`.
---@param args string
---@return boolean?
local function always(args)
  local question, scope = find_question(args)
  local scopes = vim.tbl_map(function(choice)
    return choice.scope
  end, question and question.kind.scopes(question) or {})
  if not question then
    notify_none_waits(args)
  elseif scope == '' then
    require('co.question').focus()
  elseif not vim.list_contains(scopes, scope) then
    local offered = table.concat(scopes, ', ')
    notify.error(
      offered == '' and ('question %d takes no /always'):format(question.number)
        or ('/always allows one of %s, not "%s"'):format(offered, scope)
    )
    return false
  else
    require('co.question').answer(question.id, 'always', {
      scope = scope --[[@as co.Scope]],
    })
  end
end

--- Carries out `/pending`.
local function pending()
  local lines = {}
  for _, question in ipairs(require('co.question').pending()) do
    local first = vim.split(question.command, '\n', { plain = true })[1]
    lines[#lines + 1] = (' %d  %s  %s '):format(
      question.number,
      printable.label(question.kind.title(question)),
      printable.label(first)
    )
  end
  if #lines == 0 then
    notify.info('nothing waits for an answer')
  else
    -- The log has the rows that do not fit.
    log.add('waiting', table.concat(lines, '\n'))
    require('co.ui.popup').show(lines, ' waiting: :Co /approve {number} ')
  end
end

--- All slash commands.
---@type table<string, co.slash.Entry>
M.commands = {
  approve = {
    words = numbered_questions,
    about = 'go to the question, or say yes to the one with this number',
    run = function(args)
      if args == '' then
        require('co.question').focus()
        return true
      end
      -- Require a number: the first question may not be the one that the person means.
      local question, rest = find_question(args)
      if not args:match('^%d') or rest ~= '' then
        notify.error(
          ('/approve takes the number of a question, not "%s": :Co /pending lists them'):format(
            args
          )
        )
        return false
      end
      if not question then
        notify_none_waits(args)
        return true
      end
      return require('co.question').answer(question.id, 'once')
    end,
  },
  deny = {
    arguments = '[number] [reason]',
    words = numbered_questions,
    about = 'say no to the first question or the one with this number, with a reason if you like',
    run = function(args)
      local question, reason = find_question(args)
      if not question then
        notify_none_waits(args)
        return true
      end
      return require('co.question').answer(
        question.id,
        'deny',
        { reason = reason ~= '' and reason or nil }
      )
    end,
  },
  always = {
    arguments = '[number] [scope]',
    words = function()
      local words = numbered_questions()
      return vim.list_extend(words, {
        'command',
        'prefix',
        'prefix_saved',
        'edits',
        'everything',
        'hosts',
        'hosts_saved',
        'server',
        'server_saved',
      })
    end,
    about = 'allow for longer: number and command, prefix, prefix_saved, edits or everything',
    run = always,
  },
  seen = {
    about = 'remove the signs at the lines that the last turn changed',
    run = function()
      require('co.buffers.changed_lines').clear()
    end,
  },
  pending = { about = 'list the questions that wait', run = pending },
  stop = {
    about = 'cancel the turn; again: what is queued',
    needs_chat = true,
    run = function(_, chat)
      require('co.chat').cancel(assert(chat))
    end,
  },
  steer = {
    arguments = '[text]',
    about = 'send a prompt into the turn that runs; without text: the one queued last',
    needs_chat = true,
    run = function(args, chat, cwd)
      if args:match('^[/!]') then
        notify.error(('/steer sends a prompt, not a command: type %s without /steer'):format(args))
        return false
      end
      return require('co.chat.send').steer(assert(chat), args, cwd)
    end,
  },
  plan = {
    arguments = '{task}',
    about = 'ask for a plan, by a turn that only looks; without text: open the plan',
    run = function(args, chat, cwd, context)
      chat = chat or require('co.chat').new(cwd)
      if not chat or not require('co.chat.plan').plan(chat, args, cwd, context) then
        return false
      end
      require('co.chat.window').show(chat, false)
    end,
  },
  explore = {
    arguments = '{task}',
    about = 'send a scout, which only looks and reports',
    run = function(args, chat, cwd, context)
      if args == '' then
        notify.error('/explore takes a task: what the scout is to find out')
        return false
      end
      chat = chat or require('co.chat').new(cwd)
      if
        not chat or not require('co.chat.send').prompt(chat, '/explore ' .. args, cwd, context)
      then
        return false
      end
      require('co.chat.window').show(chat, false)
    end,
  },
  go = {
    about = 'start the work with the plan',
    run = function(args, chat, cwd)
      if args ~= '' then
        notify.error('/go takes no text: write it into the plan, which /plan opens')
        return false
      elseif not chat then
        notify.info('there is no chat')
        return false
      end
      return require('co.chat.plan').go(chat, cwd)
    end,
  },
  new = {
    about = 'start another chat',
    run = function(_, _, cwd)
      local made = require('co.chat').new(cwd)
      if made then
        require('co.chat.window').show(made, true)
      end
      return made ~= nil
    end,
  },
  worktree = {
    arguments = '{name}',
    about = 'make a worktree of git with a new branch, and open a chat there',
    run = function(args, _, cwd)
      return require('co.user_command.worktree').make(args, cwd)
    end,
  },
  edit = {
    arguments = '{wish}',
    about = 'ask for a change of the lines of a range: :{range}Co /edit make it async',
    run = function()
      notify.error('/edit takes the lines of a file and a wish: :{range}Co /edit make it async')
      return false
    end,
  },
  commit = {
    about = 'write the message of the commit that is being edited, or make a commit',
    run = function(_, chat, cwd)
      chat = chat or require('co.chat').new(cwd)
      return chat ~= nil and require('co.chat.commit').write(chat, cwd)
    end,
  },
  jobs = {
    about = "list the runs of :Co! and the model's jobs",
    run = function()
      require('co.run.job_list').open()
    end,
  },
  history = {
    about = 'put an earlier command of :Co! on the command line',
    run = function()
      require('co.run.history').choose()
    end,
  },
  errors = {
    arguments = '[compiler]',
    completion = 'compiler',
    about = 'fill the quickfix list from the last run of :Co!, by the :compiler that follows',
    run = function(args)
      local run = require('co.run').last()
      if not run then
        notify.info('nothing has been run yet: :Co! {command} runs one')
        return false
      end
      require('co.run.errors').quickfix(run, args ~= '' and args or nil)
    end,
  },
  symbols = {
    about = 'fill the quickfix list with the files and names of an answer',
    needs_chat = true,
    run = function(_, chat)
      require('co.chat.symbols').list(assert(chat))
    end,
  },
  log = {
    about = 'show what went wrong',
    run = function()
      require('co.ui.log_window').open()
    end,
  },
  help = {
    about = 'open the help',
    run = function()
      local ok = pcall(vim.cmd.help, 'co.txt')
      if not ok then
        notify.info('no help tags yet: run :helptags ALL')
      end
    end,
  },
  restart = {
    about = 'start a new backend; chats continue',
    run = function()
      return require('co.user_command.restart').restart(false)
    end,
  },
  ['restart!'] = {
    about = 'the same, and end what runs',
    run = function()
      return require('co.user_command.restart').restart(true)
    end,
  },
  install = {
    about = 'install the backend of this version',
    run = function()
      require('co.user_command.install').run()
    end,
  },
  chats = {
    about = 'list the chats that are open and earlier ones, and go to one',
    run = function(_, chat, cwd)
      chat = chat or require('co.chat').new(cwd)
      if not chat then
        return false
      end
      local message = { type = 'command', chat = chat.id, name = 'chats', args = '', cwd = cwd }
      return require('co.chat.send').message(chat, message, cwd)
    end,
  },
  resume = { about = 'continue an earlier chat' },
  model = {
    arguments = '[name]',
    words = function(lead, wait)
      local agent = require('co.user_command.agent_words').current()
      return agent and agent.models or require('co.user_command.models').words(lead, wait)
    end,
    about = 'choose the model, also that of an agent',
  },
  mode = {
    arguments = '[name]',
    words = function()
      local agent = require('co.user_command.agent_words').current()
      return agent and agent.modes or {}
    end,
    about = 'choose the mode of the agent that works in the chat',
  },
  agent = {
    arguments = '[name]',
    words = function()
      local set = require('co.config').settings().agents
      local known = type(set) == 'table' and set or {}
      local presets = { claude = {}, codex = {}, gemini = {}, none = {}, opencode = {} }
      return vim.tbl_keys(vim.tbl_extend('force', presets, known))
    end,
    about = 'let an agent such as codex work in the chat, before its first prompt',
  },
  session = {
    arguments = '[id]',
    about = 'continue an earlier session of the agent, before the first prompt',
  },
  effort = {
    arguments = '[how]',
    words = function()
      local agent = require('co.user_command.agent_words').current()
      return agent and agent.efforts or { 'none', 'low', 'medium', 'high', 'max' }
    end,
    about = 'say how hard the model thinks: none, low, medium, high or max',
  },
  real = {
    about = 'run the command of the last trial for real',
    needs_chat = true,
    run = function(_, chat, cwd)
      assert(chat)
      for _, question in ipairs(require('co.question').pending()) do
        ---@cast question co.CommandQuestion
        if question.chat == chat.id and question.tried then
          return require('co.question').answer(question.id, 'real')
        end
      end
      local message = { type = 'command', chat = chat.id, name = 'real', args = '', cwd = cwd }
      return require('co.chat.send').message(chat, message, cwd)
    end,
  },
  undo = { about = 'take the changes of the last turn back' },
  rewind = { about = 'go back to before a prompt, with the chat, the files or both' },
  redo = { about = 'bring back what the last /undo took back' },
  changes = { about = 'review what the chat changed in files, and take parts back' },
  review = { about = 'review the changes that you have not answered yet' },
  retry = { about = 'have the last prompt answered again' },
  continue = { about = 'let the model continue its last answer' },
  rules = { about = 'show and remove what is always allowed, and which files are trusted' },
  skills = { about = 'list the skills of the workspace and yours, and read one to trust it' },
  mcp = {
    arguments = '[fetch|login|logout] [server]',
    words = { 'fetch', 'login', 'logout' },
    about = 'list the tool servers, their tools and their confinement; fetch one, or log in or out',
  },
  compact = { about = 'summarise the chat so far' },
  cd = { arguments = '{dir}', completion = 'dir', about = "change the chat's directory" },
  export = { arguments = '[file]', completion = 'file', about = 'write the chat to a file' },
  rename = { arguments = '{title}', about = 'give the chat a title' },
  delete = { about = 'delete an earlier chat' },
  fork = { about = 'continue in a copy of the chat' },
  usage = { about = 'say what the chat has used' },
  sandbox = {
    words = { 'auto', 'build', 'clean', 'docker', 'landlock', 'subprocess' },
    about = 'show the confinement of commands, or choose it: landlock, docker, subprocess, auto',
  },
}

--- Notes once that a prompt file cannot be used, since its command is one of co.
---@param name string
---@param cwd string
local function notify_hidden(name, cwd)
  local file = require('co.chat.prompt_files').get(name, cwd)
  if file and not hidden[file.path] then
    hidden[file.path] = true
    local path = vim.fn.fnamemodify(file.path, ':~:.')
    notify.warn(('%s is not used: /%s is a command of co'):format(path, name))
  end
end

--- Carries out a slash command, or sends a prompt file. An unknown one is an error and is not sent.
---@param name string
---@param args string
---@param chat? co.Chat commands of the backend create one if it is nil
---@param cwd string
---@param context? co.Context[] for a prompt file
---@return boolean taken
function M.run(name, args, chat, cwd, context)
  focus.asked()
  local of_agent = name:match('^agent:(.+)$')
  if of_agent then
    local problem = require('co.user_command.agent_words').problem(chat, of_agent)
    if problem or not chat then
      notify.error(problem --[[@as string]])
      return false
    end
    local text = printable.trim(('/%s %s'):format(name, args))
    return require('co.chat.send').prompt(chat, text, cwd, context)
  end
  local of_server = name:match('^mcp:(.*)$')
  if of_server then
    return require('co.user_command.server_words').run(of_server, args, chat, cwd)
  end
  local entry = M.commands[name]
  local file = not entry and require('co.chat.prompt_files').get(name, cwd)
  if entry then
    notify_hidden(name, cwd)
  elseif not file then
    notify.error(('unknown command /%s: :Co /<Tab> lists them'):format(name))
    return false
  end
  if entry and entry.needs_chat and not chat then
    notify.info('there is no chat')
    return false
  elseif name == 'sandbox' and args == 'build' then
    local options = { environment = 'inherit', timeout = 0, builds_image = true }
    return require('co.run').run('/sandbox build', cwd, nil, options) ~= nil
  elseif entry and entry.run then
    return entry.run(args, chat, cwd, context) ~= false
  elseif require('co.chat').use_open(name, args) then
    return true
  end
  chat = chat or require('co.chat').new(cwd)
  if not chat then
    return false
  end
  local send = require('co.chat.send')
  local taken
  if file then
    taken = send.prompt_file(chat, file, args, cwd, context)
  else
    local message = { type = 'command', chat = chat.id, name = name, args = args, cwd = cwd }
    taken = send.message(chat, message, cwd)
  end
  if taken then
    require('co.chat.window').show(chat, false)
  end
  return taken
end

return M
