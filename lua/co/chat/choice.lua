--- Offers choices of the backend, such as the models of `/model`, and takes no key that was meant for something else.
local M = {}

local api = vim.api
local buffer = require('co.ui.buffer')
local notify = require('co.ui.notify')
local select = require('co.ui.select')
local textlock = require('co.ui.textlock')

--- Choices, and the name of the slash command that they are about.
---@class (exact) co.Offer
---@field name string
---@field title string
---@field choices { label: string, value: any, confirm?: string }[]

--- Returns whether the person is typing, other than in the empty prompt of the chat that asked.
---@param chat co.Chat
---@return boolean
local function typing(chat)
  local mode = api.nvim_get_mode().mode
  if mode == 'n' or mode == 'nt' then
    return false
  end
  local asked = mode:match('^i') and api.nvim_get_current_buf() == chat.prompt.buf
  return not (asked and chat.prompt:empty())
end

--- Asks the person whether a choice is meant.
---@param choice co.Choice
---@param done fun(value: any)
local function confirm(choice, done)
  -- Some pickers close after they have called back.
  vim.schedule(function()
    select.show({ 'no', 'yes' }, { prompt = choice.confirm }, function(answer)
      if answer == 'yes' then
        done(choice.value)
      end
    end)
  end)
end

--- Shows the list, or waits until the person stops typing.
---@param chat co.Chat
---@param message co.Choose|co.Offer
---@param done fun(value: any)
local function show(chat, message, done)
  if not buffer.alive(chat.buf) then
    return
  elseif typing(chat) then
    api.nvim_create_autocmd('ModeChanged', {
      pattern = '*:n*',
      once = true,
      callback = vim.schedule_wrap(function()
        show(chat, message, done)
      end),
    })
    return
  end
  select.show(message.choices, {
    prompt = message.title,
    format_item = function(choice)
      return choice.label
    end,
  }, function(choice)
    if choice and choice.confirm then
      confirm(choice, done)
    elseif choice then
      done(choice.value)
    end
  end)
end

--- Lets the person choose once they are in normal mode. It returns at once: the backend waits for it.
---@param chat co.Chat
---@param message co.Choose|co.Offer
---@param done fun(value: any)
function M.offer(chat, message, done)
  vim.schedule(function()
    textlock.when_unlocked(function()
      if buffer.alive(chat.buf) and typing(chat) then
        notify.info(('the list of /%s waits until you are in normal mode'):format(message.name))
      end
      show(chat, message, done)
    end)
  end)
end

return M
