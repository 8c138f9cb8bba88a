--- The kind of question of `/commit`: the message, the files, and the command that makes the commit.
local command = require('co.question.command')
local kind = require('co.question.kind')
local printable = require('co.ui.printable')
local question_text = require('co.question.float_text')
local add = question_text.add

local LABEL = '     '
-- The most files of a list.
local MOST_FILES = 100

--- Adds a list with a label before its first line.
---@param text co.QuestionText
---@param label string
---@param lines string[]
local function add_list(text, label, lines)
  for index, line in ipairs(lines) do
    if index > MOST_FILES then
      add(text, ('%s… %d more'):format(LABEL, #lines - MOST_FILES))
      return
    end
    add(text, (index == 1 and label or LABEL) .. line, 'CoApprovalLabel', 0, 4)
  end
end

--- Returns the question.
---@param question co.CommandQuestion
---@return co.QuestionText
local function text_of(question)
  local commit = question.commit --[[@as co.Commit]]
  ---@type co.QuestionText
  local text = { lines = {}, spans = {} }
  for _, line in ipairs(vim.split(commit.message, '\n', { plain = true })) do
    add(text, line, 'CoApprovalCommand')
  end
  add(text, '')
  add_list(text, 'in   ', { question_text.place(question) })
  local git = commit.staged and 'git commit, with what is staged'
    or 'git commit, with all changes of tracked files'
  add_list(text, 'run  ', { git })
  add_list(text, 'with ', commit.files)
  add_list(text, 'not  ', commit.left_out)
  return text
end

return kind.new({
  keys = {
    question = {
      y = command.keys.question.y,
      n = command.keys.question.n,
      e = function(question)
        local about = {
          title = 'Commit with this message',
          text = question.commit.message,
          single = false,
          syntax = 'gitcommit',
          submits = 'commits',
        }
        require('co.question.text_input').open(about, function(message)
          local answer = require('co.question').answer
          if printable.trim(message) == '' then
            return
          elseif not answer(question.id, 'edited', { command = message }) then
            require('co.ui.notify').warn('no commit: the question was withdrawn meanwhile')
          end
        end)
      end,
    },
  },
  text = text_of,
  help = {
    { 'y', 'yes: make the commit' },
    { 'n', 'no' },
    { 'e', 'edit the message; <C-s> makes the commit with it' },
    { 'd', 'all of it, in a larger window' },
    { 'Y', 'list all questions' },
  },
  footer = { { 'y', 'commit' }, { 'n', 'no' }, { 'e', 'edit the message' } },
  entry = function(question)
    return {
      command = printable.line(question.commit.message),
      about = ('chat %d · commit'):format(question.chat),
      not_approved_because = 'read the files first',
    }
  end,
})
