--- The kind of question of `/undo` and `/redo`: the files that would change.
local change = require('co.question.change')
local kind = require('co.question.kind')

return kind.new({
  keys = { question = kind.keys_of(change, { 'y', 'n', 'd' }) },
  text = change.text,
  help = {
    { 'y', 'yes: make these changes' },
    { 'n', 'no' },
    { 'd', 'all of it, file by file' },
    { 'Y', 'list all questions' },
  },
  footer = { { 'y', 'yes' }, { 'n', 'no' } },
  d = change.d,
  entry = change.entry,
})
