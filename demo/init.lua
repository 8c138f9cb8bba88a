--- The editor of `make demo`: nothing but the plugin, the local model and a start page.
local root = assert(vim.env.CO_DEMO_ROOT, 'start the demo with `make demo`')

vim.opt.runtimepath:prepend(root)
vim.o.swapfile = false
vim.o.linebreak = true
vim.o.breakindent = true
vim.g.co = {
  bin = vim.env.CO_DEMO_BIN,
  provider = 'openai',
  base_url = vim.env.CO_DEMO_MODEL .. '/v1',
  model = 'smollm2',
  agents = vim.env.CO_DEMO_AGENTS and vim.json.decode(vim.env.CO_DEMO_AGENTS) or nil,
}

vim.api.nvim_create_autocmd('VimEnter', {
  once = true,
  callback = function()
    if vim.fn.argc() > 0 then
      return
    end
    vim.api.nvim_buf_set_lines(0, 0, -1, true, vim.fn.readfile(root .. '/demo/start.md'))
    vim.bo.filetype = 'markdown'
    vim.bo.buftype = 'nofile'
    vim.bo.modifiable = false
  end,
})
