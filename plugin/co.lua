-- Defines `:Co` and the <Plug> maps; everything else is loaded on first use.
if vim.g.loaded_co then
  return
end
vim.g.loaded_co = true

if vim.fn.has('nvim-0.10') == 0 then
  vim.api.nvim_create_user_command('Co', function()
    vim.api.nvim_echo(
      { { 'co needs Neovim 0.10 or later: please update Neovim', 'ErrorMsg' } },
      true,
      {}
    )
  end, { nargs = '*', bang = true, range = true })
  return
end

vim.api.nvim_create_user_command('Co', function(opts)
  require('co.user_command').run(opts)
end, {
  nargs = '*',
  bang = true,
  range = true,
  complete = function(lead, line, position)
    return require('co.user_command.complete').command_line(lead, line, position)
  end,
  desc = 'Ask co, or with ! run a command',
})

local map = vim.keymap.set
local approve = '<Cmd>lua require("co").approve()<CR>'
local to_question = { desc = 'co: go to the question' }
-- The function leaves the mode of an insert itself, because the float leads back to this mode.
map({ 'n', 'i' }, '<Plug>(co-approve)', approve, to_question)
-- <C-\><C-N> leaves whatever mode there is first: a key meant for the float must not land in a command line.
map({ 'x', 's', 'o', 'c' }, '<Plug>(co-approve)', '<C-\\><C-N>' .. approve, to_question)
map('t', '<Plug>(co-approve)', '<C-\\><C-N><Cmd>lua require("co").approve("terminal")<CR>')
for answer, plug in pairs({
  yes = '<Plug>(co-yes)',
  no = '<Plug>(co-no)',
  review = '<Plug>(co-review)',
  try = '<Plug>(co-try)',
}) do
  local press = ('<Cmd>lua require("co.question.elsewhere").press("%s")<CR>'):format(answer)
  local desc = { desc = ('co: answer the question on the screen: %s'):format(answer) }
  map({ 'n', 'x', 's', 'i', 'c', 't' }, plug, press, desc)
  -- An operator would take it for a motion, and repeat it.
  map('o', plug, '<C-\\><C-N>' .. press, desc)
end
map(
  'n',
  '<Plug>(co-chat)',
  '<Cmd>lua require("co").toggle()<CR>',
  { desc = 'co: show or hide the chat' }
)
map('x', '<Plug>(co-chat)', ':Co<Space>', { desc = 'co: ask about the selection' })
map('n', '<Plug>(co-stop)', '<Cmd>lua require("co").stop()<CR>', { desc = 'co: cancel the turn' })
map(
  'n',
  '<Plug>(co-shell)',
  '<Cmd>lua require("co").shell()<CR>',
  { desc = 'co: show the shell buffer' }
)
map(
  'n',
  '<Plug>(co-next-change)',
  '<Cmd>lua require("co.buffers.changed_lines").jump(1)<CR>',
  { desc = 'co: next line that the last turn changed' }
)
map(
  'n',
  '<Plug>(co-previous-change)',
  '<Cmd>lua require("co.buffers.changed_lines").jump(-1)<CR>',
  { desc = 'co: previous line that the last turn changed' }
)
map(
  'n',
  '<Plug>(co-repeat)',
  '<Cmd>lua require("co").rerun()<CR>',
  { desc = 'co: repeat the last run' }
)

local group = vim.api.nvim_create_augroup('co.plugin', {})
-- A session file gives these names to empty buffers. It raises the event for each buffer, and may use them until its end.
vim.api.nvim_create_autocmd('SessionLoadPost', {
  group = group,
  pattern = 'co://*',
  callback = vim.schedule_wrap(function()
    require('co').restore()
  end),
})

-- The session file names several buffers, and Neovim tells each name: together they are more than one line. The file sets the
-- option back at its end.
vim.api.nvim_create_autocmd('BufFilePost', {
  group = group,
  pattern = 'co://*',
  callback = function()
    if vim.g.SessionLoad == 1 then
      vim.opt.shortmess:append('F')
    end
  end,
})

-- `:edit` names these buffers: give them back to the plugin.
vim.api.nvim_create_autocmd('BufReadCmd', {
  group = group,
  pattern = { 'co://chat/*', 'co://shell' },
  callback = function(event)
    require('co').adopt(event.buf, event.match)
  end,
})
