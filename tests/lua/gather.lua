--- Returns the contexts that the words with `@` in `text` add in a Neovim.
---@param nvim co.test.Neovim
---@param text string
---@return any[]
return function(nvim, text)
  nvim:lua(
    [[
      _G.found = nil
      require('co.chat.context').gather(..., nil, nil, function(found) _G.found = found end)
    ]],
    text
  )
  nvim:wait('return _G.found ~= nil')
  return nvim:lua('return _G.found') --[[@as any[] ]]
end
