--- The review of a change: the file in a tab page of its own, where the person answers each hunk.
---
--- The buffer is a copy. The file, its buffer, language servers and formatters see nothing before the answer.
local M = {}

local api = vim.api
local backend = require('co.backend')
local buffer = require('co.ui.buffer')
local notify = require('co.ui.notify')
local popup = require('co.ui.popup')
local review_state = require('co.question.review_state')
local review_view = require('co.question.review_view')
local windows = require('co.ui.windows')

---@class (exact) co.Review
---@field question co.CommandQuestion
---@field state co.review.State
---@field buf integer
---@field win integer
---@field from integer the tab page of the person
---@field side? integer the window with the text after the change

-- The review that is open.
---@type co.Review?
local current

-- Answers of reviews that were put away, by the ids of their questions.
---@type table<integer, co.review.State>
local kept = {}

---@type [string, string][]
local KEYS = {
  { ']c  [c', 'next, previous change' },
  { ']f  [f', 'next, previous file' },
  { 'f', 'choose a file from the list of those that wait' },
  { 'y  n', 'accept, refuse this change' },
  { 'Y  N', 'accept, refuse the rest; N asks for a reason' },
  { 'e', 'write another text for this change' },
  { 'c', 'write a comment on this change for the model' },
  { 'u', 'take the answer to this change back' },
  { '=', 'the text before and after the change, side by side' },
  { 'q', 'put the review away: the question still waits' },
}

--- Returns the questions that can be reviewed, in their order.
---@return co.CommandQuestion[]
local function reviewable()
  return vim.tbl_filter(M.possible, require('co.question').pending())
end

--- Returns the number of the hunk under the cursor.
---@param review co.Review
---@return integer
local function here(review)
  return review_state.at(review.state, api.nvim_win_get_cursor(review.win)[1] - 1)
end

---@param review co.Review
---@param number integer
local function go_to(review, number)
  api.nvim_win_set_cursor(review.win, { review_state.row(review.state, number) + 1, 0 })
end

--- Draws the hunks and the winbar.
---@param review co.Review
local function draw(review)
  local state, change = review.state, review.question.change --[[@as co.Change]]
  if not review.side then
    review_view.draw(review.buf, state)
    review_view.show_top(review.win, state)
  end
  local all, file = reviewable(), 1
  for index, question in ipairs(all) do
    file = question.id == review.question.id and index or file
  end
  local parts = {
    ('%s  +%d -%d'):format((change.path:gsub('%%', '%%%%')), change.added, change.removed),
    ('%d of %d answered'):format(#state.hunks - #review_state.open(state), #state.hunks),
    '%<y n e c u  ]c  Y N  =  q  g?',
  }
  if #all > 1 then
    table.insert(parts, 1, ('file %d of %d'):format(file, #all))
  end
  windows.options(review.win, { winbar = ' ' .. table.concat(parts, ' · ') })
end

--- Closes the window with the text after the change.
---@param review co.Review
local function close_side(review)
  local side = review.side
  review.side = nil
  if side and api.nvim_win_is_valid(side) then
    api.nvim_win_close(side, true)
  end
  if api.nvim_win_is_valid(review.win) then
    api.nvim_win_call(review.win, vim.cmd.diffoff)
  end
end

--- Closes the tab page of a review and goes back to where the person was.
---@param review co.Review
local function close(review)
  if current == review then
    current = nil
  end
  close_side(review)
  if api.nvim_buf_is_valid(review.buf) then
    local focused = api.nvim_get_current_buf() == review.buf
    -- This closes all windows of the buffer, unless one of them is the last window of Neovim.
    api.nvim_buf_delete(review.buf, { force = true })
    if focused and api.nvim_tabpage_is_valid(review.from) then
      api.nvim_set_current_tabpage(review.from)
    end
  end
end

--- Sends the answers, then goes on to the next file.
---@param review co.Review
local function send(review)
  local question, from = review.question, review.from
  kept[question.id] = nil
  close(review)
  local hunks = review_state.result(review.state)
  if not require('co.question').answer(question.id, 'reviewed', { hunks = hunks }) then
    notify.warn('nothing was sent: the question was withdrawn meanwhile')
  end
  local next = reviewable()[1]
  if next and next.chat == question.chat then
    M.open(next, from)
  end
end

--- Answers some hunks. When all are answered, sends the answers.
---@param review co.Review
---@param numbers integer[]
---@param fields co.review.HunkState
local function decide(review, numbers, fields)
  for _, number in ipairs(numbers) do
    review_state.set(review.state, number, fields)
  end
  local open = review_state.open(review.state, numbers[#numbers])
  if not open[1] then
    send(review)
    return
  end
  draw(review)
  go_to(review, open[1])
end

--- Opens a window in which the person writes. A review that was put away meanwhile gets nothing.
---@param review co.Review
---@param about co.entry.About
---@param done fun(text: string)
local function ask_text(review, about, done)
  require('co.question.text_input').open(about, function(text)
    if current == review then
      done(text)
    end
  end)
end

--- Shows the text before and after the change side by side, or no longer does.
---@param review co.Review
local function side_by_side(review)
  if review.side then
    close_side(review)
    draw(review)
    return
  end
  review_view.clear(review.buf)
  local buf = api.nvim_create_buf(false, true)
  api.nvim_buf_set_lines(buf, 0, -1, false, review_state.proposed(review.state))
  vim.bo[buf].modifiable, vim.bo[buf].bufhidden = false, 'wipe'
  vim.bo[buf].syntax = vim.bo[review.buf].syntax
  local win = api.nvim_open_win(buf, false, { split = 'right', win = review.win })
  windows.options(win, { winbar = ' after the change · = closes' })
  for _, each in ipairs({ review.win, win }) do
    api.nvim_win_call(each, vim.cmd.diffthis)
  end
  for _, lhs in ipairs({ '=', 'q' }) do
    buffer.map(buf, 'n', lhs, function()
      side_by_side(review)
    end, 'close the text after the change')
  end
  review.side = win
end

--- Goes to the review of another question.
---@param review co.Review
---@param other co.CommandQuestion
local function open_other(review, other)
  local from = review.from
  kept[review.question.id] = review.state
  close(review)
  M.open(other, from)
end

--- Goes to the review of the next file, or another number of files on.
---@param review co.Review
---@param step integer
local function other_file(review, step)
  local all = reviewable()
  for index, question in ipairs(all) do
    if question.id == review.question.id then
      open_other(review, all[(index - 1 + step) % #all + 1])
      return
    end
  end
end

--- Lets the person choose from the files that wait.
---@param review co.Review
local function choose_file(review)
  vim.ui.select(reviewable(), {
    prompt = 'Files that wait',
    format_item = function(question)
      local change = question.change
      local state = question.id == review.question.id and review.state or kept[question.id]
      local answered = state and #state.hunks - #review_state.open(state) or 0
      return ('%s  +%d -%d · %d of %d answered'):format(
        change.path,
        change.added,
        change.removed,
        answered,
        #change.hunks
      )
    end,
  }, function(question)
    -- Meanwhile the questions may have been withdrawn.
    if question and current == review and vim.tbl_contains(reviewable(), question) then
      open_other(review, question)
    end
  end)
end

---@type table<string, fun(review: co.Review)>
local actions = {
  y = function(review)
    decide(review, { here(review) }, { accept = true })
  end,
  n = function(review)
    decide(review, { here(review) }, { accept = false })
  end,
  Y = function(review)
    decide(review, review_state.open(review.state), { accept = true })
  end,
  N = function(review)
    ask_text(
      review,
      { title = 'No to the rest, because', text = '', single = true },
      function(reason)
        local open = review_state.open(review.state)
        review_state.set(review.state, open[1], { comment = reason ~= '' and reason or nil })
        decide(review, open, { accept = false })
      end
    )
  end,
  e = function(review)
    local number = here(review)
    local about = {
      title = ('Instead of change %d'):format(number),
      text = table.concat(review_state.lines(review.state, number), '\n'),
      single = false,
      syntax = vim.bo[review.buf].syntax,
    }
    ask_text(review, about, function(text)
      local lines = text == '' and {} or vim.split(text, '\n', { plain = true })
      decide(review, { number }, { accept = true, lines = lines })
    end)
  end,
  c = function(review)
    local number = here(review)
    local comment = review_state.answer(review.state, number).comment or ''
    local title = ('Comment on change %d'):format(number)
    ask_text(review, { title = title, text = comment, single = true }, function(text)
      review_state.set(review.state, number, { comment = text })
      draw(review)
    end)
  end,
  u = function(review)
    review.state.answers[here(review)] = nil
    draw(review)
  end,
  ['='] = side_by_side,
  [']c'] = function(review)
    go_to(review, math.min(here(review) + 1, #review.state.hunks))
  end,
  ['[c'] = function(review)
    local number = here(review)
    local inside = api.nvim_win_get_cursor(review.win)[1] - 1
      > review_state.row(review.state, number)
    go_to(review, inside and number or math.max(number - 1, 1))
  end,
  [']f'] = function(review)
    other_file(review, 1)
  end,
  ['[f'] = function(review)
    other_file(review, -1)
  end,
  f = choose_file,
  q = function(review)
    kept[review.question.id] = review.state
    close(review)
    require('co.question').show(review.question.id)
  end,
  ['<CR>'] = function() end,
}
actions['g?'] = function()
  local lines = vim.tbl_map(function(entry)
    return (' %-8s %s '):format(entry[1], entry[2])
  end, KEYS)
  popup.enter(lines, ' co · q closes ', 'g?')
end

--- Colours the text as the file would be. The buffer gets no file type, so that no plugin takes it for the file.
---@param buf integer
---@param path string
local function colour(buf, path)
  local filetype = vim.filetype.match({ filename = path, buf = buf }) or ''
  local language = vim.treesitter.language.get_lang(filetype)
  if not (language and pcall(vim.treesitter.start, buf, language)) then
    vim.bo[buf].syntax = filetype
  end
end

--- Makes the buffer of a review.
---@param review co.Review
local function make_buffer(review)
  local buf, change = review.buf, review.question.change --[[@as co.Change]]
  api.nvim_buf_set_lines(buf, 0, -1, false, review.state.text)
  pcall(
    api.nvim_buf_set_name,
    buf,
    ('co://review/%d/%s'):format(review.question.number, change.path)
  )
  vim.bo[buf].buftype, vim.bo[buf].bufhidden = 'acwrite', 'wipe'
  vim.bo[buf].modifiable, vim.bo[buf].modified, vim.bo[buf].swapfile = false, false, false
  api.nvim_create_autocmd('BufWriteCmd', {
    buffer = buf,
    callback = function()
      notify.info(':w accepts nothing: y accepts this change, Y the rest')
    end,
  })
  -- Another way to close it is `q` too.
  api.nvim_create_autocmd('BufWipeout', {
    buffer = buf,
    callback = function()
      if current == review then
        current = nil
        kept[review.question.id] = review.state
        vim.schedule(function()
          require('co.question').show(review.question.id)
        end)
      end
    end,
  })
  for key, act in pairs(actions) do
    buffer.map(buf, 'n', key, function()
      act(review)
    end, 'review')
  end
  colour(buf, change.path)
end

--- Returns whether a question is about a change that has hunks to review.
---@param question co.Question
---@return boolean
function M.possible(question)
  ---@cast question co.CommandQuestion
  local change = question.change
  return change ~= nil and change.text ~= nil and change.hunks[1] ~= nil
end

--- Returns the answers of a review that was put away, with a yes to the parts that have none; nil if it has no answers.
---@param question co.Question
---@return co.HunkAnswer[]?
function M.rest_accepted(question)
  local state = current and current.question.id == question.id and current.state
    or kept[question.id]
  return state and next(state.answers) and review_state.result(state) or nil
end

--- Returns whether the person has answered parts of a change in a review that was put away.
---@param question co.Question
---@return boolean
function M.is_begun(question)
  local state = kept[question.id]
  return state ~= nil and next(state.answers) ~= nil
end

--- Opens the review of a change.
---@param question co.CommandQuestion
---@param from? integer the tab page to go back to
function M.open(question, from)
  from = from or api.nvim_get_current_tabpage()
  require('co.question').put_away(question.id)
  if current then
    local inside = api.nvim_get_current_buf() == current.buf
    from = inside and current.from or from
    kept[current.question.id] = current.state
    close(current)
  end
  ---@type co.Review
  local review = {
    question = question,
    state = kept[question.id] or review_state.new(question.change --[[@as co.Change]]),
    buf = api.nvim_create_buf(false, true),
    win = -1,
    from = from,
  }
  make_buffer(review)
  vim.cmd(('tab sbuffer %d'):format(review.buf))
  review.win = api.nvim_get_current_win()
  windows.options(review.win, { signcolumn = 'yes', foldenable = false, wrap = false })
  current = review
  go_to(review, review_state.open(review.state)[1] or 1)
  draw(review)
end

--- Closes the review of a question that no longer waits.
---@param id integer
local function settled(id)
  kept[id] = nil
  local review = current
  if review and review.question.id == id then
    close(review)
    notify.warn('the review was closed: its question no longer waits')
  end
end

api.nvim_create_autocmd('User', {
  group = api.nvim_create_augroup('co.review', {}),
  pattern = 'CoApprovalResolved',
  callback = function(event)
    settled(event.data.id)
  end,
})

backend.on_exit(function()
  kept = {}
end)

return M
