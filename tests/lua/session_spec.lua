-- Session files of `:mksession`.

local messages = require('messages')
local neovim = require('neovim')

local IN_PROMPT = "return vim.bo.filetype == 'co-prompt'"

local function chat()
  local nvim = neovim.start()
  nvim:lua("vim.o.columns, vim.o.lines = 160, 45 vim.cmd('Co')")
  nvim:wait(IN_PROMPT)
  return nvim
end

--- Returns another Neovim that has read a session file of this one.
---@param nvim co.test.Neovim
---@param options string more values of 'sessionoptions'
---@return co.test.Neovim
local function restored(nvim, options)
  local file = vim.fn.tempname()
  nvim:lua("vim.o.sessionoptions = 'buffers,blank,tabpages,winsize' .. ...", options)
  nvim:lua("vim.cmd('mksession! ' .. ...)", file)
  local other = neovim.start()
  other:lua('vim.o.columns, vim.o.lines = 160, 45')
  other:lua("vim.cmd('silent source ' .. ...)", file)
  return other
end

describe('a session file', function()
  for _, options in ipairs({ ',globals', ',globals,localoptions' }) do
    it('brings back a chat with its transcript' .. options, function()
      local nvim = chat()
      nvim:receive(messages.state('idle', { transcript = '2026-abc', title = 'mend it.rs' }))
      nvim:wait("return vim.g.CoChats == '1=2026-abc'")
      local other = restored(nvim, options)
      other:wait('return #_G.sent == 1')
      local sent = other:sent('command')[1]
      same({ 1, 'resume', '2026-abc' }, { sent.chat, sent.name, sent.args })
      same(3, other:lua('return #vim.api.nvim_list_wins()'))
      other:wait(IN_PROMPT)
      same(true, other:lua('return vim.wo.winfixbuf'))
      other:keys('ihello<C-s>')
      other:wait('return #_G.sent == 2')
      other:wait(
        "return vim.wo[vim.fn.bufwinid('^co://chat/1/co: mend it.rs $')].winbar:find('ready') ~= nil"
      )
    end)
  end

  it('asks for no key when it is read', function()
    local nvim = chat()
    nvim:receive(messages.state('idle', { transcript = '2026-abc', title = 'a title' }))
    nvim:wait("return vim.g.CoChats == '1=2026-abc'")
    for _, options in ipairs({ 'blank,buffers', 'blank,buffers,globals' }) do
      local file = vim.fn.tempname()
      nvim:lua('vim.o.sessionoptions = ...', options)
      nvim:lua("vim.cmd('mksession! ' .. ...)", file)
      local other = neovim.start({ screen = true })
      other:keys((':source %s<CR>'):format(file))
      neovim.wait('the end of the file', function()
        local mode = other:request('nvim_get_mode')
        yes(not mode.blocking, mode.mode .. table.concat(other:screen(), '\n'))
        return other:lua('return vim.v.this_session ~= "" and vim.g.SessionLoad == nil')
      end)
      other:settle()
      same(false, other:request('nvim_get_mode').blocking)
      same(false, other:lua("return vim.o.shortmess:find('F.*F') ~= nil"))
    end
  end)

  it('leaves the buffers alone that are in use', function()
    local nvim = chat()
    nvim:lua("vim.cmd('mksession! ' .. ...)", vim.fn.tempname())
    nvim:lua([[
      _G.review = vim.api.nvim_create_buf(false, true)
      vim.api.nvim_buf_set_name(_G.review, 'co://review/1/a')
      require('co').restore()
    ]])
    same(true, nvim:lua('return vim.api.nvim_buf_is_valid(_G.review)'))
    same(1, nvim:lua("return vim.fn.bufexists('co://chat/1')"))
  end)

  it('leaves out a chat whose transcript it does not know', function()
    for _, options in ipairs({ '', ',globals', ',localoptions' }) do
      local nvim = chat()
      if options ~= ',globals' then
        nvim:receive(messages.state('idle', { transcript = '2026-abc' }))
        nvim:wait('return vim.g.CoChats ~= nil')
      end
      local other = restored(nvim, options)
      other:wait('return #vim.api.nvim_list_wins() == 1')
      same(0, other:lua("return vim.fn.bufexists('co://chat/1')"))
      same({}, other:sent())
      other:keys(':Co<CR>')
      other:wait(IN_PROMPT)
    end
  end)

  it('leaves out the shell buffer', function()
    local nvim = neovim.start()
    nvim:keys(':Co! ls<CR>')
    nvim:wait('return #vim.api.nvim_list_wins() == 2')
    local other = restored(nvim, '')
    other:wait('return #vim.api.nvim_list_wins() == 1')
    same(0, other:lua("return vim.fn.bufexists('co://shell')"))
  end)
end)
