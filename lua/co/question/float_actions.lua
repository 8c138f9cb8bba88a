--- The actions of the keys of the approval float: those of the kind of its question, and those of every kind.
local M = {}

--- The state of the float.
---@class (exact) co.float.State
---@field question? co.Question
---@field page co.QuestionPage
---@field large boolean it may take the whole screen
---@field total integer the questions that wait
---@field approved integer[] the ids of the questions that `y` approves in the list
---@field held? { id: integer, command: string } the question that the person answered with a command of their own
---@field finishing boolean the last question was answered, and the float still has the focus
---@field texts integer the number of texts that the float has shown
---@field partial boolean a part of the question is not in the text
---@field seen_before? integer the text that the person had seen when they went to the float
---@field warned boolean the person was told that a key is no answer yet

--- The functions that actions need.
---@class (exact) co.float.Functions
---@field show_page fun(page: co.QuestionPage)
---@field redraw fun()
---@field callbacks co.float.Callbacks

--- Returns the ids of all questions but those about trust in a file. `gN` skips these, because a no to a file is saved.
---@param questions co.Question[]
---@return integer[]
local function command_ids(questions)
  local ids = {}
  for _, question in ipairs(questions) do
    if question.kind.holds_turn then
      ids[#ids + 1] = question.id
    end
  end
  return ids
end

-- The page that `g?` opens on a page, and the page that it goes back to.
---@type table<co.QuestionPage, co.QuestionPage>
local help_pages = {
  question = 'help',
  menu = 'help',
  help = 'question',
  list = 'list_help',
  list_help = 'list',
}

---@type table<string, fun(state: co.float.State, float: co.float.Functions)>
local actions = {
  ['g?'] = function(state, float)
    float.show_page(help_pages[state.page])
  end,
  q = function(state, float)
    if state.page == 'question' then
      float.callbacks.hide()
    else
      float.show_page(state.page == 'list_help' and 'list' or 'question')
    end
  end,
  d = function(state, float)
    local question = state.question --[[@as co.Question]]
    if state.page == 'question' and question.kind.text(question, 'question').cut then
      float.callbacks.show_whole(question)
    elseif state.page == 'question' or state.page == 'list' then
      state.large = not state.large
      float.redraw()
    end
  end,
  Y = function(state, float)
    if state.page == 'question' then
      float.show_page('list')
    end
  end,
  y = function(state, float)
    if state.page == 'list' and #state.approved > 0 then
      state.page = 'question'
      float.callbacks.answer_all(state.approved, 'once')
    end
  end,
  gN = function(state, float)
    local ids = command_ids(float.callbacks.pending())
    if (state.page == 'question' or state.page == 'list') and #ids > 0 then
      state.page = 'question'
      float.callbacks.answer_all(ids, 'deny')
    end
  end,
}

--- Does what a key means on the page that is shown.
---@param key string
---@param state co.float.State
---@param float co.float.Functions
function M.act(key, state, float)
  local question = state.question
  if not question then
    return
  end
  local own = (question.kind.keys[state.page] or {})[key]
  local done = own and own(question) ~= false
  if not done and actions[key] then
    actions[key](state, float)
  end
end

return M
