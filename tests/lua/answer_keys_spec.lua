local messages = require('messages')
local neovim = require('neovim')
local questions = require('questions')
local ask = messages.ask
local answers = questions.answers
local wait_answers = questions.wait_answers

-- Describes the maps of the keys in a buffer, and the global ones, in each mode.
local MAPS = [[
  local of = ...
  local function described(map)
    if next(map) == nil then
      return 'none'
    end
    map = vim.deepcopy(map)
    for index, callback in ipairs(_G.callbacks or {}) do
      if map.callback == callback then
        map.callback = 'callback ' .. index
      end
    end
    map.callback = type(map.callback) == 'function' and 'another' or map.callback
    return map
  end
  local all = {}
  vim.api.nvim_buf_call(of, function()
    for _, key in ipairs({ 'y', 'n', 'r', 't' }) do
      for _, mode in ipairs({ 'n', 'x', 's', 'o', 'i', 'c', 't' }) do
        all[mode .. key] = described(vim.fn.maparg('<C-\\>' .. key, mode, false, true))
      end
    end
  end)
  for _, mode in ipairs({ 'n', 'x', 's', 'o', 'i', 'c', 't' }) do
    all['global ' .. mode] = vim.tbl_map(described, vim.tbl_filter(function(map)
      return not map.lhs:find('Plug')
    end, vim.api.nvim_get_keymap(mode)))
  end
  return all
]]

-- Maps of many kinds.
local OWN = [[
  _G.callbacks = {
    function() vim.b.own = 'y' end,
    function() return 'n' end,
  }
  vim.keymap.set({ 'n', 'x', 'i' }, '<C-\\>y', callbacks[1], { buffer = 0, desc = 'my own' })
  vim.keymap.set('n', '<C-\\>n', callbacks[2], { buffer = 0, expr = true, silent = true })
  vim.cmd([=[
    noremap <buffer> <C-\>r iown<Esc>
    noremap! <buffer> <expr> <script> <C-\>t "own"
    nnoremap <C-\>y :let g:global = 1<CR>
    tnoremap <C-\>n global
  ]=])
]]

--- An editor with the setting, and maps of the person in the current buffer and others.
local function editor(opts)
  local nvim = questions.editor(opts)
  nvim:lua("require('co').setup({ question_keys = true })")
  nvim:lua(OWN)
  nvim.before = nvim:lua(MAPS, 1)
  return nvim
end

local function wait_seen(nvim)
  nvim:wait("return require('co.question.sight').seen()")
end

--- Checks that the maps of the first buffer are those of the person.
local function own_maps(nvim)
  neovim.wait('the maps of the person', function()
    return vim.deep_equal(nvim.before, nvim:lua(MAPS, 1))
  end)
end

describe('the keys of question_keys', function()
  for key, decision in pairs({ y = 'once', n = 'deny', t = 'try' }) do
    it(
      'answer ' .. decision .. ' while a question is on the screen, and are the own ones after',
      function()
        local nvim = editor()
        nvim:receive(ask(1, { may_try = true }))
        nvim:wait_screen('touch file1', '<C-\\>y yes · <C-\\>n no')
        wait_seen(nvim)
        nvim:keys('<C-Bslash>' .. key)
        wait_answers(nvim, { { 1, decision } })
        own_maps(nvim)
        nvim:keys('<C-Bslash>y')
        nvim:wait("return vim.b[1].own == 'y'")
      end
    )
  end

  it('work in Insert and Terminal mode, and in the buffers that the person goes to', function()
    local nvim = editor()
    nvim:receive(ask(1), ask(2))
    nvim:wait_screen('touch file1')
    nvim:lua('vim.cmd.new()')
    nvim:keys_to('i', 'i')
    wait_seen(nvim)
    nvim:keys('<C-Bslash>y')
    wait_answers(nvim, { { 1, 'once' } })
    nvim:wait_screen('touch file2')
    nvim:keys_to('<Esc>', 'n')
    nvim:lua("vim.cmd.new() vim.cmd.terminal('cat')")
    nvim:keys_to('i', 't')
    wait_seen(nvim)
    nvim:keys('<C-Bslash>n')
    wait_answers(nvim, { { 1, 'once' }, { 2, 'deny' } })
    own_maps(nvim)
    same(
      {},
      nvim:lua([[
        local left = {}
        for _, buf in ipairs(vim.api.nvim_list_bufs()) do
          for _, mode in ipairs({ 'n', 'x', 's', 'o', 'i', 'c', 't' }) do
            for _, map in ipairs(vim.api.nvim_buf_get_keymap(buf, mode)) do
              left[#left + 1] = (map.desc or ''):find('on the screen') and map.lhs or nil
            end
          end
        end
        return left
      ]])
    )
  end)

  it('work in the window of the command line, and end an operator', function()
    local nvim = editor()
    nvim:receive(ask(1), ask(2))
    nvim:wait_screen('touch file1')
    wait_seen(nvim)
    nvim:keys('q:<C-Bslash>y')
    wait_answers(nvim, { { 1, 'once' } })
    nvim:keys(':q<CR>')
    nvim:wait_screen('touch file2')
    wait_seen(nvim)
    nvim:keys('d<C-Bslash>y')
    wait_answers(nvim, { { 1, 'once' }, { 2, 'once' } })
    same({ 'one', 'two', 'three' }, nvim:lua('return vim.api.nvim_buf_get_lines(1, 0, -1, false)'))
    own_maps(nvim)
  end)

  it('open the review of a change', function()
    local nvim = editor()
    local file = messages.file('src/a.rs', '@\n-old\n+new\n')
    nvim:receive(
      ask(1, { change = messages.change({ excerpt = '-old\n+new\n', files = { file } }) })
    )
    nvim:wait_screen('touch file1')
    wait_seen(nvim)
    nvim:keys('<C-Bslash>r')
    nvim:wait_screen('change 1 of 1')
    own_maps(nvim)
  end)

  for what, ends in pairs({
    ['the question is withdrawn'] = function(nvim)
      nvim:receive({ type = 'settled', id = 1, decision = 'withdrawn' })
    end,
    ['the float is closed'] = function(nvim)
      nvim:keys(':only<CR>')
    end,
    ['the buffer of the float is deleted'] = function(nvim)
      nvim:lua([[
        for _, buf in ipairs(vim.api.nvim_list_bufs()) do
          if vim.bo[buf].filetype == 'co-approval' then
            vim.api.nvim_buf_delete(buf, { force = true })
          end
        end
      ]])
    end,
    ['the question is hidden'] = function(nvim)
      questions.reach(nvim, 'q')
    end,
    ['it was answered in the float'] = function(nvim)
      questions.reach(nvim, 'n')
    end,
    ['the backend ends'] = function(nvim)
      nvim:lua("require('co.backend').handle_exit(1)")
    end,
    ['the setting is off'] = function(nvim)
      nvim:lua("require('co').setup({ question_keys = false })")
    end,
    ['the question cannot be shown'] = function(nvim)
      nvim:receive({ type = 'settled', id = 1, decision = 'withdrawn' }, ask(2, { command = 7 }))
    end,
    ['the person was in another buffer'] = function(nvim)
      nvim:keys(':new<CR>')
      nvim:wait('return vim.api.nvim_get_current_buf() ~= 1')
      nvim:receive({ type = 'settled', id = 1, decision = 'withdrawn' })
    end,
  }) do
    it('are the own ones again after ' .. what, function()
      local nvim = editor()
      nvim:receive(ask(1))
      nvim:wait_screen('touch file1')
      nvim:wait("return vim.fn.maparg('<C-Bslash>y', 'n', false, true).desc:find('on the screen')")
      ends(nvim)
      own_maps(nvim)
    end)
  end

  it('are still there if :qa is refused, and leave no trace', function()
    local nvim = editor()
    nvim:receive(ask(1))
    nvim:wait_screen('touch file1')
    wait_seen(nvim)
    nvim:keys(':qa<CR>')
    nvim:wait_screen('E37')
    nvim:keys('<CR><Esc>')
    nvim:wait_mode('n')
    nvim:wait_screen('touch file1')
    nvim:keys('<C-Bslash>n')
    wait_answers(nvim, { { 1, 'deny' } })
    own_maps(nvim)
  end)

  it('leave alone what the person maps meanwhile', function()
    local nvim = editor()
    nvim:receive(ask(1))
    nvim:wait_screen('touch file1')
    nvim:lua([[vim.cmd('nnoremap <buffer> <C-\\>y :let g:newer = 1<CR>')]])
    nvim:receive({ type = 'settled', id = 1, decision = 'withdrawn' })
    nvim:wait_gone('touch file1')
    same(':let g:newer = 1<CR>', nvim:lua([[return vim.fn.maparg('<C-\\>y', 'n')]]))
    same('my own', nvim:lua([[return vim.fn.maparg('<C-\\>y', 'i', false, true).desc]]))
  end)

  it('are in no session file', function()
    local nvim = editor()
    nvim:receive(ask(1))
    nvim:wait_screen('touch file1')
    local file = neovim.dir() .. '/session.vim'
    nvim:lua("vim.opt.sessionoptions:append('options,localoptions') vim.cmd.mksession(...)", file)
    for _, line in ipairs(vim.fn.readfile(file)) do
      yes(not line:find('<C-Bslash>.*Plug'), line)
    end
  end)

  it('are mapped only if the setting wants it', function()
    local nvim = questions.editor()
    local before = nvim:lua(MAPS, 1)
    nvim:receive(ask(1))
    nvim:wait_screen('touch file1')
    same(before, nvim:lua(MAPS, 1))
    same({}, answers(nvim))
  end)
end)
