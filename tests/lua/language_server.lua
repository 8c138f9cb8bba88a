--- Attaches a scripted language server to the current buffer. Tests run this file in the Neovim that they drive.
---@param capabilities table
---@param methods table<string, fun(params: table, callback: fun(problem?: table, result?: any), exit: fun())> the others are
---not answered; `exit` ends the server
return function(capabilities, methods)
  vim.lsp.start({
    name = 'toy',
    root_dir = '/',
    cmd = function(dispatchers)
      local function exit()
        dispatchers.on_exit(0, 0)
      end
      return {
        request = function(method, params, callback)
          if method == 'initialize' then
            callback(nil, { capabilities = capabilities })
          elseif methods[method] then
            methods[method](params, callback, exit)
          end
          return true, 1
        end,
        notify = function()
          return true
        end,
        is_closing = function()
          return false
        end,
        terminate = exit,
      }
    end,
  })
end
