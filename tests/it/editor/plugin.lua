-- A plugin in the words of the help: co explains a file, and may run nothing for that.
local co = require('co')
local M = { answers = {}, asked = {} }

vim.api.nvim_create_autocmd('User', {
  pattern = 'CoApprovalRequested',
  callback = function()
    for _, question in ipairs(co.questions()) do
      M.asked[#M.asked + 1] = question
      co.answer(question.id, M.agrees or false, 'only explain')
    end
  end,
})

function M.explain(text)
  return co.ask(text, function(answer)
    M.answers[#M.answers + 1] = answer
    vim.notify(('%s (%s)'):format(vim.trim(answer.text):match('[^\n]*$'), answer.reason))
  end)
end

function M.hook()
  M.planned, M.edited, M.agrees = {}, {}, true
  M.unhook = co.before_command(function(command)
    M.planned[#M.planned + 1] = command
    return command.command:find('private') and 'not that one' or nil
  end)
  co.after_edit(function(edit)
    M.edited[#M.edited + 1] = vim.fs.basename(edit.files[1])
    vim.notify('my hook: ' .. M.edited[#M.edited])
  end)
end

function M.lists()
  return { chats = co.chats(), runs = co.runs(), questions = co.questions() }
end

return M
