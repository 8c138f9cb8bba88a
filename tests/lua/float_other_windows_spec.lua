local neovim = require('neovim')
local questions = require('questions')
local ask = require('messages').ask

--- The windows of all tab pages that show the buffer of the float.
local WINDOWS = [[
  local buf = vim.tbl_filter(function(buf)
    return vim.bo[buf].filetype == 'co-approval'
  end, vim.api.nvim_list_bufs())[1]
  return vim.fn.win_findbuf(buf)
]]

--- Waits until no window but the float shows the buffer of the float, in one tab page.
local function wait_alone(nvim)
  nvim:wait(([[
    local windows = (function() %s end)()
    local others = vim.tbl_filter(function(win)
      return vim.api.nvim_win_get_config(win).relative == ''
    end, windows)
    return #others == 0 and #windows <= 1 and vim.fn.tabpagenr('$') == 1
  ]]):format(WINDOWS))
end

--- Types keys without a pause between them, then waits for a pause.
local function type_at_once(nvim, keys)
  nvim:keys(keys)
  nvim:settle()
end

--- An editor whose person is at the float with the first of two questions. The keys count.
local function at_first()
  local nvim = questions.asked(ask(1, { destructive = true }), ask(2, { destructive = true }))
  nvim:lua('vim.o.hidden = true')
  nvim:settle()
  return nvim
end

describe("another window with the float's buffer", function()
  for _, keys in ipairs({
    '<C-w>s',
    '<C-w>v',
    '<C-w>T',
    ':split<CR>',
    ':vsplit<CR>',
    ':tab split<CR>',
    ':sbuffer<CR>',
    ':noautocmd split<CR>',
    '<C-w>s<C-w>o',
  }) do
    it('has no answer keys after ' .. keys, function()
      local nvim = at_first()
      type_at_once(nvim, keys .. 'yy')
      same({}, questions.answers(nvim))
    end)
  end

  for _, keys in ipairs({ '<C-w>s', '<C-w>v', '<C-w>T', ':tab split<CR>' }) do
    it('closes after ' .. keys, function()
      local nvim = at_first()
      nvim:keys(keys)
      wait_alone(nvim)
      same(
        1,
        nvim:lua(
          'return #vim.tbl_filter(function(win)'
            .. " return vim.api.nvim_win_get_config(win).relative == '' end, vim.api.nvim_list_wins())"
        )
      )
      questions.reach(nvim, 'y')
      questions.wait_answers(nvim, { { 1, 'once' } })
    end)
  end

  it('shows its earlier buffer again', function()
    for _, command in ipairs({ 'buffer', 'sbuffer' }) do
      local nvim = questions.shown(ask(1))
      local float =
        nvim:lua('return ' .. 'vim.api.nvim_win_get_buf((function() ' .. WINDOWS .. ' end)()[1])')
      type_at_once(nvim, (':%s %d<CR>yy'):format(command, float))
      wait_alone(nvim)
      same({}, questions.answers(nvim))
      same(
        { 'one', 'two', 'three' },
        nvim:lua('return vim.api.nvim_buf_get_lines(0, 0, -1, false)')
      )
      questions.reach(nvim, 'y')
      questions.wait_answers(nvim, { { 1, 'once' } })
    end
  end)

  it('gets another buffer if it is the last one', function()
    local nvim = at_first()
    type_at_once(nvim, '<C-w>s<C-w>oyy')
    nvim:wait("return vim.bo.filetype ~= 'co-approval' and vim.wo.winhighlight == ''")
    same({}, questions.answers(nvim))
    questions.reach(nvim, 'y')
    questions.wait_answers(nvim, { { 1, 'once' } })
  end)

  it('closes without an answer', function()
    local nvim = at_first()
    nvim:keys('<C-w>s')
    wait_alone(nvim)
    nvim:settle()
    nvim:keys('yy')
    neovim.wait('an answer', function()
      return #questions.answers(nvim) > 0
    end)
    nvim:settle()
    same({ { 1, 'once' } }, questions.answers(nvim))
    nvim:wait_screen('touch file2')
  end)
end)
