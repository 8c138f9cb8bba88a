--- The actions of the keys of the approval float: the actions of one kind of question, and the actions of all kinds.
local M = {}

-- For each page, the page that `g?` opens from there.
---@type table<co.QuestionPage, co.QuestionPage>
local help_pages = {
  question = 'help',
  menu = 'help',
  help = 'question',
  list = 'list_help',
  list_help = 'list',
}

---@type table<string, fun(float: co.Float, page: co.Page, question: co.Question)>
local actions = {
  ['g?'] = function(float, page)
    float:show_page(help_pages[page.name])
  end,
  q = function(float, page)
    if page.name == 'question' then
      float:emit({ type = 'hide' })
    else
      float:show_page(page.name == 'list_help' and 'list' or 'question')
    end
  end,
  d = function(float, page, question)
    if page.name == 'question' and question.kind.text(question, 'question').cut then
      float:emit({ type = 'show_whole', question = question })
    elseif page.name == 'question' or page.name == 'list' then
      page.large = not page.large
      float:redraw()
    end
  end,
  Y = function(float, page)
    if page.name == 'question' then
      float:show_page('list')
    end
  end,
  y = function(float, page)
    local ids = page.name == 'list' and page.list and page.list.approved or {}
    if #ids > 0 then
      page.name = 'question'
      float:emit({ type = 'answer_all', ids = ids, decision = 'once' })
    end
  end,
  gN = function(float, page)
    local ids = {}
    for _, question in ipairs(page.questions) do
      -- A no to a file is saved, so questions about trust stay.
      ids[#ids + 1] = question.kind.holds_turn and question.id or nil
    end
    if (page.name == 'question' or page.name == 'list') and #ids > 0 then
      page.name = 'question'
      float:emit({ type = 'answer_all', ids = ids, decision = 'deny' })
    end
  end,
}

--- Does what a key means on the page that is shown.
---@param key string
---@param float co.Float
---@param page co.Page
function M.act(key, float, page)
  local question = page.question
  if not question then
    return
  end
  local own = (question.kind.keys[page.name] or {})[key]
  local done = own and own(question, float) ~= false
  if not done and actions[key] then
    actions[key](float, page, question)
  end
end

return M
