--- The functions for other plugins: they await an answer, list chats, runs and questions, answer a question, and add
--- hooks.
---@class co.api
local M = {}

local api = vim.api
local printable = require('co.ui.printable')
local registry = require('co.chat.registry')

---@class (exact) co.api.Answer
---@field chat integer the number of the chat
---@field reason string how the turn ended, see |CoTurnDone|
---@field text string what the chat shows below the prompt, in markdown

---@class (exact) co.api.Chat
---@field chat integer
---@field buf integer the buffer of its text
---@field state co.StateName
---@field cwd string

---@class (exact) co.api.Run
---@field run integer
---@field command string
---@field cwd string
---@field running boolean
---@field status? string how it ended, for a person
---@field chat? integer the chat whose model started it

---@class (exact) co.api.Question
---@field id integer
---@field chat? integer
---@field command string the command, or what it is about
---@field reasons string[] what the command would do

---@class (exact) co.api.Edit
---@field chat integer
---@field files string[] the real path; of a move, the one before and the one after

--- Returns the text of the last message of a chat, without its heading.
---@param chat co.Chat
---@return string
local function last_message(chat)
  local messages = chat.text.messages:between()
  local last = messages[#messages]
  local lines = api.nvim_buf_get_lines(chat.buf, last and last.row + 1 or 0, -1, false)
  return printable.trim(table.concat(lines, '\n'))
end

--- Sends a prompt to the current chat, or to a new one, and calls `done` when its turn has ended.
---@param text string
---@param done fun(answer: co.api.Answer)
---@return boolean taken
function M.ask(text, done)
  if not require('co.user_command').prompt(text) then
    return false
  end
  local chat = assert(registry.current())
  local number = chat.state.taken_prompts + #chat.waiting_prompts
  api.nvim_create_autocmd('User', {
    pattern = 'CoTurnDone',
    desc = 'co: an answer that a plugin asked for',
    callback = function(event)
      if registry.get(chat.id) ~= chat then
        return true
      elseif event.data.chat ~= chat.id or chat.state.taken_prompts < number then
        -- The turn of an earlier prompt ends first.
        return
      end
      done({ chat = chat.id, reason = event.data.reason, text = last_message(chat) })
      return true
    end,
  })
  return true
end

--- Returns the open chats, the one that was used last at the end.
---@return co.api.Chat[]
function M.chats()
  return vim.tbl_map(function(chat)
    return { chat = chat.id, buf = chat.buf, state = chat.state.state, cwd = chat.state.cwd }
  end, registry.by_use())
end

--- Returns the runs of this Neovim, and the jobs of its chats.
---@return co.api.Run[]
function M.runs()
  return vim.tbl_map(function(run)
    return {
      run = run.id,
      command = run.command,
      cwd = run.cwd,
      running = run.running,
      status = run.status,
      chat = run.owner and run.owner.chat,
    }
  end, require('co.run').all())
end

--- Returns the questions that wait, in their order.
---@return co.api.Question[]
function M.questions()
  return vim.tbl_map(function(question)
    return {
      id = question.id,
      chat = question.chat,
      command = question.command,
      -- A question about trust has none.
      reasons = (question --[[@as co.CommandQuestion]]).reasons or {},
    }
  end, require('co.question').pending())
end

--- Calls `hook` before each command of a model starts. A text that it returns refuses the command.
---@param hook co.api.CommandHook
---@return fun() remove
function M.before_command(hook)
  return require('co.hooks').add(hook)
end

--- Calls `hook` after each change of a file by a tool of a model, with the buffers changed.
---@param hook fun(edit: co.api.Edit)
---@return fun() remove
function M.after_edit(hook)
  return require('co.hooks').add_after_edit(hook)
end

--- Answers a question as the keys `y` and `n` do. A reason for no goes to the model.
---@param id integer
---@param yes boolean
---@param reason? string
---@return boolean answered false if it waits no longer
function M.answer(id, yes, reason)
  local question = require('co.question')
  return question.answer(id, yes and 'once' or 'deny', { reason = not yes and reason or nil })
end

return M
