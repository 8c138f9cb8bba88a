--- Returns the contexts that the words with `@` in `text` add in a Neovim.
---@param nvim co.test.Neovim
---@param text string
---@return any[]
return function(nvim, text)
  nvim:lua(
    [[
      _G.found = nil
      local send = require('co.backend').send
      local read = require('co.chat.workspace_context').reader(1, vim.fn.getcwd(), send)
      local wanted = { text = ..., read = read }
      require('co.ui.async').run(function()
        _G.found = require('co.chat.context').gather(wanted)
      end)
    ]],
    text
  )
  nvim:wait('return _G.found ~= nil')
  return nvim:lua('return _G.found') --[[@as any[] ]]
end
