-- A plugin in the words of the help: co explains a file, and may run nothing for that.
local co = require('co')
local M = { answers = {}, asked = {} }

vim.api.nvim_create_autocmd('User', {
  pattern = 'CoApprovalRequested',
  callback = function()
    for _, question in ipairs(co.questions()) do
      M.asked[#M.asked + 1] = question
      co.answer(question.id, false, 'only explain')
    end
  end,
})

function M.explain(text)
  return co.ask(text, function(answer)
    M.answers[#M.answers + 1] = answer
  end)
end

function M.lists()
  return { chats = co.chats(), runs = co.runs(), questions = co.questions() }
end

return M
