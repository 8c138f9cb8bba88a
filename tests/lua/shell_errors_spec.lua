-- The places that the output of a run names.

local messages = require('messages')
local neovim = require('neovim')
local shell_buffer = require('shell_buffer')
local enter, wait_line = shell_buffer.enter, shell_buffer.wait_line
local ended, output, patch = messages.ended, messages.output, messages.patch

--- Starts a Neovim that shows the errors of runs as diagnostics, and a run beside the file `x.c`.
---@return co.test.Neovim
local function compiling()
  local nvim = neovim.start()
  local dir = vim.fn.resolve(vim.fn.tempname())
  vim.fn.mkdir(dir)
  vim.fn.writefile({ 'one', 'two' }, dir .. '/x.c')
  nvim:lua("vim.g.co = { run_diagnostics = true } vim.cmd('cd ' .. ...) vim.cmd('Co! cc')", dir)
  return nvim
end

describe('the output of a run', function()
  it('goes to file:line with paths as seen from the run', function()
    local nvim = neovim.start()
    local dir = vim.fn.resolve(vim.fn.tempname())
    vim.fn.mkdir(dir .. '/src', 'p')
    vim.fn.writefile({ 'one', 'two', 'three' }, dir .. '/src/a b.rs')
    vim.fn.writefile({ 'one', 'two', 'three' }, dir .. '/src/main.rs')
    nvim:lua(
      "_G.home = vim.api.nvim_get_current_win() vim.cmd('lcd ' .. ...) vim.cmd('Co! make') vim.cmd('lcd /')",
      dir
    )
    nvim:receive(output(1, patch(0, { 'error[E1]: bad', '  --> src/main.rs:2:3', 'no.rs:1: x' })))
    wait_line(nvim, 'no.rs:1: x')
    enter(nvim)
    nvim:keys('gg3G<CR>')
    nvim:wait('return vim.api.nvim_buf_get_name(0) == ...', dir .. '/src/main.rs')
    same({ 2, 2 }, nvim:lua('return vim.api.nvim_win_get_cursor(0)'))
    yes(nvim:lua('return vim.api.nvim_get_current_win() == _G.home'), 'in the window of the person')
    enter(nvim)
    nvim:keys('gg4Ggf')
    nvim:wait_notice('no file under the cursor')
    same('co-shell', nvim:lua('return vim.bo.filetype'))
  end)

  it('/errors reads the last run by the compiler of a buffer, and says which', function()
    local nvim = neovim.start()
    nvim:lua([[
      vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'a file' })
      vim.b.current_compiler, vim.bo.errorformat = 'own', '%f at %l says %m'
    ]])
    local function entries()
      return nvim:lua([[
        local list = vim.fn.getqflist({ items = 0, title = 0 })
        local found = { list.title }
        for _, item in ipairs(list.items) do
          found[#found + 1] = item.lnum .. ' ' .. item.text
        end
        return found
      ]])
    end
    nvim:keys(':Co! check<CR>')
    nvim:receive(output(1, patch(0, { 'a.c at 7 says no', 'b.c:8: yes' })))
    wait_line(nvim, 'b.c:8: yes')
    nvim:keys(':Co /errors<CR>')
    nvim:wait("return vim.bo.filetype == 'qf'")
    same({ 'Co! check (:compiler own)', '7 no' }, entries())
    nvim:keys('<C-w>p:Co /errors gcc<CR>')
    nvim:wait("return vim.fn.getqflist({ title = 0 }).title:find('gcc') ~= nil")
    same({ 'Co! check (:compiler gcc)', '8 yes' }, entries())
    nvim:keys(':Co /errors none<CR>')
    nvim:wait_notice('there is no :compiler none')
  end)

  it('<C-q> reads the earlier lines of a long output as the backend shows them', function()
    local nvim = neovim.start()
    nvim:keys(':Co! cc<CR>')
    local shown = patch(0, { '2', 'x.c:4: end' })
    shown.skipped = 2
    local done = ended(1, 1)
    done.spill = '/output of 1'
    nvim:receive(output(1, shown), done)
    wait_line(nvim, 'x.c:4: end')
    enter(nvim)
    nvim:keys('<C-q>')
    local asked = nvim:wait_sent(1, 'read_output')
    same({ '/output of 1', 2 }, { asked.file, asked.lines })
    local lines = { 'x.c:2:1: error: no', '1' }
    nvim:receive({ type = 'output_read', request = asked.request, lines = lines })
    nvim:wait("return vim.bo.filetype == 'qf'")
    same(
      { 2, 4 },
      nvim:lua('return vim.tbl_map(function(item) return item.lnum end, vim.fn.getqflist())')
    )
  end)

  it('leaves the person where they typed meanwhile', function()
    local nvim = neovim.start()
    nvim:keys(':Co! cc<CR>')
    local shown = patch(0, { 'x.c:4: end' })
    shown.skipped = 2
    local done = ended(1, 1)
    done.spill = '/output of 1'
    nvim:receive(output(1, shown), done)
    wait_line(nvim, 'x.c:4: end')
    nvim:keys(':Co /errors<CR>')
    local asked = nvim:wait_sent(1, 'read_output')
    nvim:keys_to('i', 'i')
    nvim:receive({ type = 'output_read', request = asked.request, lines = {} })
    nvim:wait('return #vim.fn.getqflist() == 1')
    nvim:keys('typed')
    nvim:wait("return vim.api.nvim_get_current_line() == 'typed'")
    same({ 'i', '' }, { nvim:mode(), nvim:lua('return vim.bo.filetype') })
  end)

  it('<C-q> makes no entry of a name that is no file', function()
    local nvim, dir = neovim.start(), neovim.dir()
    -- As paths, these names lead to files.
    vim.fn.mkdir(dir .. '/term:', 'p')
    vim.fn.writefile({}, dir .. '/term:/touch made')
    nvim:lua('vim.fn.chdir(...)', dir)
    nvim:keys(':Co! cc<CR>')
    local names =
      { 'term://touch made', 'http://x', 'scp://host/x', 'zipfile:x.zip', 'x.c', '/a:b' }
    local lines = vim.tbl_map(function(name)
      return name .. ':3:1: error: no'
    end, names)
    nvim:receive(output(1, patch(0, lines)), ended(1, 1))
    wait_line(nvim, 'x.c:3:1: error: no')
    enter(nvim)
    nvim:keys('<C-q>')
    nvim:wait("return vim.bo.filetype == 'qf'")
    local found = nvim:lua([[
      return vim.tbl_map(function(item)
        return vim.fn.fnamemodify(vim.api.nvim_buf_get_name(item.bufnr), ':t')
      end, vim.fn.getqflist())
    ]])
    same({ 'zipfile:x.zip', 'x.c', 'a:b' }, found)
  end)

  it('<C-q> fills the quickfix list through errorformat', function()
    local nvim = neovim.start()
    local dir = vim.fn.resolve(vim.fn.tempname())
    vim.fn.mkdir(dir .. '/src', 'p')
    vim.fn.writefile({ 'one', 'two' }, dir .. '/src/x.c')
    nvim:lua("vim.cmd('lcd ' .. ...) vim.cmd('Co! cc') vim.cmd('lcd /')", dir)
    nvim:receive(
      output(1, patch(0, { 'a\0b', 'src/x.c:2:1: error: no\0', 'chatter' })),
      ended(1, 1)
    )
    wait_line(nvim, 'chatter')
    enter(nvim)
    nvim:keys('<C-q>')
    nvim:wait("return vim.bo.filetype == 'qf'")
    local entries = nvim:lua([[
      return vim.tbl_map(function(item)
        return { vim.api.nvim_buf_get_name(item.bufnr), item.lnum, vim.trim(item.text) }
      end, vim.fn.getqflist())
    ]])
    same({ { dir .. '/src/x.c', 2, 'error: no' } }, entries)
  end)

  it('shows its errors as diagnostics until the next run has ended, if that is set', function()
    local nvim = compiling()
    nvim:receive(output(1, patch(0, { 'x.c:2:1: error: no', 'y.c:2:1: gone' })), ended(1, 1))
    wait_line(nvim, 'exit 1 · 0.1 s · 1 line')
    local shown = nvim:lua([[
      return vim.tbl_map(function(item)
        local name = vim.fs.basename(vim.api.nvim_buf_get_name(item.bufnr))
        return { name, item.lnum, item.message, item.source }
      end, vim.diagnostic.get())
    ]])
    same({ { 'x.c', 1, 'error: no', "'errorformat'" } }, shown)
    nvim:lua("vim.cmd('Co! cc')")
    nvim:receive(ended(2, 0))
    wait_line(nvim, 'exit 0 · 0.1 s · 1 line')
    same({}, nvim:lua('return vim.diagnostic.get()'))
  end)

  it('shows as warnings and notes the diagnostics that say so and have no type', function()
    local nvim = compiling()
    local lines = {}
    for _, text in ipairs({ 'warning: a', ' Warning b', 'NOTE: c', 'noted d', 'error: warning' }) do
      lines[#lines + 1] = 'x.c:1:1: ' .. text
    end
    nvim:receive(output(1, patch(0, lines)), ended(1, 1))
    wait_line(nvim, 'exit 1 · 0.1 s · 1 line')
    local severities = nvim:lua([[
      return vim.tbl_map(function(item)
        return vim.diagnostic.severity[item.severity]
      end, vim.diagnostic.get())
    ]])
    same({ 'WARN', 'WARN', 'INFO', 'ERROR', 'ERROR' }, severities)
  end)
end)
