-- co in a headless Neovim, for `servers.lua` and `turn.lua`. Call the function of this file with the root of the repository and the settings.

---@param root string
---@param settings table
return function(root, settings)
  vim.opt.runtimepath:prepend(root)
  vim.g.co = settings
  vim.cmd.runtime('plugin/co.lua')
  local scene = { turns = 0 }
  vim.api.nvim_create_autocmd('User', {
    pattern = 'CoTurnDone',
    callback = function()
      scene.turns = scene.turns + 1
    end,
  })

  --- Returns the text of the chat.
  ---@return string
  function scene.chat()
    for _, buf in ipairs(vim.api.nvim_list_bufs()) do
      local name = vim.api.nvim_buf_get_name(buf)
      if name:match('^co://chat/1') and not name:match('prompt') then
        return table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), '\n')
      end
    end
    return ''
  end

  --- Writes what happened as JSON, and ends Neovim.
  ---@param found table
  function scene.finish(found)
    found.chat = scene.chat()
    found.log = require('co.ui.log').lines()
    io.stdout:write(vim.json.encode(found))
    vim.cmd('qall!')
  end

  return scene
end
