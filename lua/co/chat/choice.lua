--- Offers choices of the backend, such as the models of `/model`, and takes no key that was meant for something else.
local M = {}

local buffer = require('co.ui.buffer')
local focus = require('co.ui.focus')
local select = require('co.ui.select')
local textlock = require('co.ui.textlock')

--- Choices, and the name of the slash command that they are about.
---@class (exact) co.Offer
---@field name string
---@field title string
---@field choices { label: string, value: any, confirm?: string }[]

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

--- Shows the list.
---@param message co.Choose|co.Offer
---@param done fun(value: any)
local function show(message, done)
  select.show(message.choices, {
    prompt = message.title,
    format_item = function(choice)
      return choice.label
    end,
  }, function(choice)
    focus.stop_discarding()
    -- Another list may follow.
    focus.asked()
    if choice and choice.confirm then
      confirm(choice, done)
    elseif choice then
      done(choice.value)
    end
  end)
end

--- Lets the person choose. If the person no longer waits for the list, only offers the list. Returns at once, because
--- the backend waits for the return.
---@param chat co.Chat
---@param message co.Choose|co.Offer
---@param done fun(value: any)
function M.offer(chat, message, done)
  vim.schedule(function()
    textlock.when_unlocked(function()
      focus.offer(('the list of /%s'):format(message.name), function(by)
        if buffer.alive(chat.buf) then
          focus.ignore_keys(by, true)
          show(message, done)
        end
      end)
    end)
  end)
end

return M
