--- The prompt of a chat: the text in its buffer, and the history of the prompts that were sent.
---
--- The person edits the buffer, with undo. The module knows no chats, keys or windows.
local M = {}

local api = vim.api
local bounds = require('co.chat.bounds')
local buffer = require('co.ui.buffer')
local config = require('co.config')
local gate = require('co.ui.gate')
local guarded = require('co.ui.guarded')
local languages = require('co.chat.languages')
local log = require('co.ui.log')
local markdown = require('co.chat.markdown')

local hints = api.nvim_create_namespace('co.prompt')

-- The most entries of the history.
local HISTORY_LENGTH = 200
---@type string[][]
local history = {}

---@class (exact) co.PromptBuffer
---@field buf integer
---@field entry integer the entry of the history that it shows: 1 is the newest; 0 is the draft
---@field draft string[]
---@field plain boolean the text is over a bound, so that no parser may see it
local Prompt = {}
Prompt.__index = Prompt

--- Prepares the buffer of a prompt.
---@param buf integer
---@param lines? string[] the text that it begins with
---@return co.PromptBuffer
function M.new(buf, lines)
  local self = setmetatable({ buf = buf, entry = 0, draft = {}, plain = false }, Prompt) --[[@as co.PromptBuffer]]
  if markdown.supported() then
    self:watch()
    -- Later: the first start takes 25 ms, and the first prompt may be sent meanwhile.
    markdown.prepare()
    languages.after_steps(function()
      if buffer.alive(buf) then
        self:start_highlights()
      end
    end)
  else
    guarded.set_option(buf, 'syntax', 'markdown')
  end
  if lines then
    self:set(lines)
  end
  self:update_hint()
  return self
end

--- Stops the highlights as soon as the text is over a bound, also those that another plugin started.
function Prompt:watch()
  api.nvim_buf_attach(self.buf, false, {
    on_lines = function(_, buf, _, first, _, last)
      if not bounds.may_parse(buf, first, last) then
        self.plain = true
        vim.treesitter.stop(buf)
      end
    end,
  })
end

--- Starts the highlights, unless the text is over a bound. If Neovim cannot load them, the prompt has none.
function Prompt:start_highlights()
  self.plain = not bounds.may_parse(self.buf, 0, -1)
  if self.plain then
    return
  end
  local ok, problem = pcall(function()
    guarded.call(function()
      vim.treesitter.start(self.buf, 'markdown')
    end)
  end)
  if not ok then
    log.add('highlights', tostring(problem))
  end
end

--- Returns the lines of the prompt.
---@return string[]
function Prompt:lines()
  return api.nvim_buf_get_lines(self.buf, 0, -1, false)
end

--- Returns whether the prompt contains no text.
---@return boolean
function Prompt:empty()
  return table.concat(self:lines()) == ''
end

--- Replaces the prompt. Undo gives the earlier text back.
---@param lines string[]
function Prompt:set(lines)
  -- In insert mode, the change would otherwise be one with the text that was just typed.
  buffer.close_undo_block(self.buf)
  api.nvim_buf_set_lines(self.buf, 0, -1, false, lines)
  buffer.close_undo_block(self.buf)
  self:update_hint()
end

--- Returns the draft: the text of the prompt, or the one behind the entry of the history that is shown.
---@return string
function Prompt:draft_text()
  local browses = self.entry > 0 and self:browses_history()
  return table.concat(browses and self.draft or self:lines(), '\n')
end

--- Puts text in front of the text that is there, as soon as no command of the person is half done in it.
---@param text? string
---@param old? string a text to remove first if it is still there
function Prompt:restore(text, old)
  gate.when_open({ self.buf }, function()
    if not buffer.alive(self.buf) then
      return
    end
    local lines = text and vim.split(text, '\n', { plain = true }) or {}
    local stays = not self:empty() and table.concat(self:lines(), '\n') ~= old
    if stays then
      vim.list_extend(lines, self:lines())
    end
    if #lines > 0 or not self:empty() then
      self.entry = 0
      self:set(lines)
    end
  end)
end

--- Adds a prompt to the history.
---@param text string
local function remember(text)
  local lines = vim.split(text, '\n', { plain = true })
  if not vim.deep_equal(history[#history], lines) then
    history[#history + 1] = lines
  end
  if #history > HISTORY_LENGTH then
    table.remove(history, 1)
  end
end

M.remember = remember

--- Makes the prompts of a chat the newest ones of the history.
---@param prompts string[] from the oldest to the newest
function M.add_history(prompts)
  ---@type table<string, true>
  local known = {}
  for _, text in ipairs(prompts) do
    known[text] = true
  end
  history = vim.tbl_filter(function(lines)
    return not known[table.concat(lines, '\n')]
  end, history)
  for _, text in ipairs(prompts) do
    remember(text)
  end
end

--- Empties the prompt after it was sent, and adds its text to the history.
---@param text string
function Prompt:sent(text)
  remember(text)
  self.entry = 0
  self:set({})
end

--- Returns whether the prompt is empty or an unchanged entry of the history.
---@return boolean
function Prompt:browses_history()
  if self.entry == 0 then
    return self:empty()
  end
  return vim.deep_equal(self:lines(), history[#history - self.entry + 1])
end

--- Shows an earlier or later entry of the history.
---@param step 1|-1 1 goes back
---@return boolean changed
function Prompt:recall(step)
  local wanted = self.entry + step
  if wanted < 0 or wanted > #history then
    return false
  end
  if self.entry == 0 then
    self.draft = self:lines()
  end
  self.entry = wanted
  self:set(wanted == 0 and self.draft or history[#history - wanted + 1])
  return true
end

--- Returns the hint of an empty prompt. The person who has sent no prompt yet also reads what `/` and `@` do.
---@return string
local function hint()
  local keys = config.get().keys.chat
  ---@param action string
  ---@param text string
  local function with_key(action, text)
    local lhs = keys[action]
    lhs = type(lhs) == 'table' and lhs[1] or lhs
    return lhs and ('%s %s'):format(lhs, text) or nil
  end
  local parts = {}
  if #history == 0 then
    parts[#parts + 1] = with_key('help', 'keys')
    vim.list_extend(parts, { '/ commands', '@ files and more' })
    parts[#parts + 1] = with_key('send', 'sends')
  else
    parts[#parts + 1] = 'prompt'
    parts[#parts + 1] = with_key('send', 'sends it')
    parts[#parts + 1] = with_key('help', 'lists the keys')
  end
  return table.concat(parts, ' · ')
end

--- Shows in an empty prompt which keys send it and list the others, and the highlights of any other.
function Prompt:update_hint()
  if self.plain then
    self:start_highlights()
  end
  api.nvim_buf_clear_namespace(self.buf, hints, 0, -1)
  if not self:empty() then
    return
  end
  api.nvim_buf_set_extmark(self.buf, hints, 0, 0, {
    virt_text = { { hint(), 'CoPromptHint' } },
    virt_text_pos = 'overlay',
  })
end

return M
