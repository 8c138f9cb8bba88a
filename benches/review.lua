-- Opens the review of 200 hunks in 50,000 lines and writes the nanoseconds until the first one is drawn to standard error.
local lines = {}
for line = 1, 50000 do
  local text = ('local value_%d = compute(%d)'):format(line, line)
  local changes = line % 250 == 1
  lines[line] = changes and ('@\n-%s\n+local changed = 1'):format(text) or ' ' .. text
end
local text = table.concat(lines, '\n') .. '\n'
local FIRST = 65536
local question = {
  id = 1,
  chat = 1,
  number = 1,
  command = 'edit_file long.lua',
  cwd = '/',
  reasons = {},
  destructive = false,
  change = {
    unsaved = false,
    added = 200,
    removed = 200,
    facts = {},
    diff = '',
    files = {
      {
        path = 'long.lua',
        added = 200,
        removed = 200,
        parts = 200,
        text = text:sub(1, FIRST),
        more = true,
      },
    },
  },
}
local review = require('co.question.review')
local start = vim.uv.hrtime()
review.open_question(question)
vim.cmd.redraw()
io.stderr:write(('%d'):format(vim.uv.hrtime() - start))
