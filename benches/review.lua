-- Opens the review of 200 hunks in 50,000 lines and writes the nanoseconds until it is drawn to standard error.
local lines, hunks = {}, {}
for line = 1, 50000 do
  lines[line] = ('local value_%d = compute(%d)'):format(line, line)
end
for hunk = 1, 200 do
  local row = (hunk - 1) * 250
  hunks[hunk] = { start = row, ['end'] = row + 1, lines = { 'local changed = 1' } }
end
local question = {
  id = 1,
  chat = 1,
  number = 1,
  command = 'edit_file long.lua',
  cwd = '/',
  reasons = {},
  destructive = false,
  change = {
    path = 'long.lua',
    unsaved = false,
    added = 200,
    removed = 200,
    diff = '',
    text = table.concat(lines, '\n') .. '\n',
    hunks = hunks,
  },
}
local review = require('co.question.review')
local start = vim.uv.hrtime()
review.open(question)
vim.cmd.redraw()
io.stderr:write(('%d'):format(vim.uv.hrtime() - start))
