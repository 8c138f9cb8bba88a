--- Attaches a scripted language server to the current buffer. Tests run this file in the Neovim that they drive.
---@param capabilities table
---@param methods table<string, fun(params: table, callback: fun(problem?: table, result?: any))> the others are not answered
return function(capabilities, methods)
  vim.lsp.start({
    name = 'toy',
    root_dir = '/',
    cmd = function()
      return {
        request = function(method, params, callback)
          if method == 'initialize' then
            callback(nil, { capabilities = capabilities })
          elseif methods[method] then
            methods[method](params, callback)
          end
          return true, 1
        end,
        notify = function()
          return true
        end,
        is_closing = function()
          return false
        end,
        terminate = function() end,
      }
    end,
  })
end
