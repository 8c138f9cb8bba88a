--- The kind of question that asks about a command, or about what is typed into a job.
local ask_text = require('co.question.text')
local float = require('co.question.float')

--- Answers a question; one that is gone is left alone.
---@param ask co.Ask
---@param decision co.Decision
---@param extra? co.answer.Extra
---@return boolean
local function answer(ask, decision, extra)
  return require('co.question').answer(ask.id, decision, extra)
end

--- Answers the question that a text was written about; it may be gone by now.
---@param ask co.Ask
---@param decision co.Decision
---@param extra co.answer.Extra
local function answer_with(ask, decision, extra)
  if not answer(ask, decision, extra) then
    require('co.ui.notify').warn('nothing was sent: the question was withdrawn meanwhile')
  end
end

---@type table<string, fun(ask: co.Ask)>
local question_keys = {
  y = function(ask)
    answer(ask, 'once')
  end,
  n = function(ask)
    answer(ask, 'deny')
  end,
  N = function(ask)
    local about = { title = 'No, because', text = '', single = true }
    require('co.question.text_input').open(about, function(reason)
      answer_with(ask, 'deny', { reason = reason ~= '' and reason or nil })
    end)
  end,
  a = function()
    float.turn('menu')
  end,
  e = function(ask)
    if ask.job then
      -- What was typed instead would be the model's text no longer: N tells it what to type.
      return
    end
    local about = { title = 'Run instead', text = ask.command, single = false }
    require('co.question.text_input').open(about, function(command)
      if vim.trim(command) ~= '' then
        answer_with(ask, 'edited', { command = command })
      end
    end)
  end,
}

---@param key string
---@return fun(ask: co.Ask)
local function choose_scope(key)
  return function(ask)
    for _, scope in ipairs(ask_text.scopes(ask)) do
      if scope.key == key then
        answer(ask, 'always', { scope = scope.scope })
        return
      end
    end
  end
end

---@type table<string, fun(ask: co.Ask)>
local menu_keys = {}
for _, key in ipairs({ 'c', 'p', 's', 'E' }) do
  menu_keys[key] = choose_scope(key)
end

---@type co.QuestionKind
return {
  holds_turn = true,
  keys = { question = question_keys, menu = menu_keys },
  title = function(ask)
    return ('chat %d'):format(ask.session)
  end,
  text = function(ask, page)
    if page == 'menu' then
      return ask_text.menu(ask)
    elseif page == 'help' then
      return ask_text.help()
    end
    return ask_text.question(ask)
  end,
  footer = function(ask)
    local long = 'y once · n no · N no, because · a always · e edit'
    local brief = 'y n N a e'
    if ask.job then
      return (long:gsub(' · e edit', '')), (brief:gsub(' e', ''))
    end
    return long, brief
  end,
  entry = function(ask)
    local about = { ('chat %d'):format(ask.session), ask_text.place(ask) }
    about[#about + 1] = ask_text.manner(ask)
    if ask.job then
      about[#about + 1] = ('typed into job %d'):format(ask.job)
    end
    return {
      lines = vim.split(ask.command, '\n', { plain = true }),
      about = table.concat(about, ' · '),
      not_approved_because = ask.destructive and ask_text.DESTRUCTIVE
        or ask.job and 'nobody knows what the program makes of it'
        or nil,
    }
  end,
  scopes = function(ask)
    return vim.tbl_map(function(scope)
      return scope.scope
    end, ask_text.scopes(ask))
  end,
  reply = function(ask, decision, extra)
    require('co.backend').tell({
      type = 'answer',
      id = ask.id,
      decision = decision,
      reason = extra.reason,
      scope = extra.scope,
      command = extra.command,
    })
  end,
}
