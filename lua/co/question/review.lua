--- The review of changes: each file in a tab page of its own, where the person answers each hunk.
---
--- The buffer is a copy. The file, its buffer, language servers and formatters see nothing before the answer.
local M = {}

local api = vim.api
local buffer = require('co.ui.buffer')
local notify = require('co.ui.notify')
local popup = require('co.ui.popup')
local review_items = require('co.question.review_items')
local review_state = require('co.question.review_state')
local review_view = require('co.question.review_view')
local review_words = require('co.question.review_words')
local select = require('co.ui.select')
local windows = require('co.ui.windows')

--- The changes that are reviewed together, and what becomes of the answers.
---@class (exact) co.review.Source
---@field words co.review.Words
---@field items fun(): co.ReviewItem[]
---@field opened fun(item: co.ReviewItem)
---@field answered fun(item: co.ReviewItem): co.ReviewItem? takes the answers to all hunks; returns the next item
---@field left fun(item: co.ReviewItem, cancelled?: boolean) the person closed the review

---@class (exact) co.Review
---@field item co.ReviewItem
---@field state co.review.State
---@field buf integer
---@field win integer
---@field from integer the tab page of the person
---@field side? integer the window with the text after the change
---@field quiet_until? integer keys before this time are ignored

-- The review that is open.
---@type co.Review?
local current

--- Returns the files of the questions that can be reviewed, in their order.
---@return co.ReviewItem[]
local function reviewable()
  local items = {}
  for _, question in ipairs(require('co.question').pending()) do
    vim.list_extend(items, review_items.of(question))
  end
  return items
end

--- Returns the question that an item belongs to.
---@param item co.ReviewItem
---@return co.Question
local function question_of(item)
  return item.question or item --[[@as co.Question]]
end

--- The questions about changes.
---@type co.review.Source
local queue = {
  words = review_words.question,
  items = reviewable,
  opened = function(item)
    require('co.question').put_away(question_of(item).id)
  end,
  answered = function(item)
    local question = question_of(item)
    local items = review_items.of(question)
    local other = review_items.unanswered(items)
    if other then
      return other
    end
    local hunks = review_items.answers(items)
    if not require('co.question').answer(question.id, 'reviewed', { hunks = hunks }) then
      notify.warn('nothing was sent: the question was withdrawn meanwhile')
    end
    review_items.forget(question.id)
    local next = reviewable()[1]
    return next and next.chat == item.chat and next or nil
  end,
  left = function(item)
    require('co.question').show(question_of(item).id)
  end,
}

---@param item co.ReviewItem
---@return co.review.Source
local function source_of(item)
  return item.source or queue
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
  local state, change = review.state, review.item.change --[[@as co.Change]]
  if not review.side then
    review_view.draw(review.buf, state)
    review_view.show_top(review.win, state)
  end
  local all, file = source_of(review.item).items(), 1
  for index, item in ipairs(all) do
    file = item.id == review.item.id and index or file
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

--- Closes a review whose hunks are all answered, then shows the next file.
---@param review co.Review
local function finish(review)
  local item, from = review.item, review.from
  close(review)
  local next = source_of(item).answered(item)
  if next then
    M.open(next, from)
  end
end

--- Answers some hunks. When all are answered, closes the review.
---@param review co.Review
---@param numbers integer[]
---@param fields co.review.HunkState
local function decide(review, numbers, fields)
  for _, number in ipairs(numbers) do
    review_state.set(review.state, number, fields)
  end
  local open = review_state.open(review.state, numbers[#numbers])
  if not open[1] then
    finish(review)
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
  for _, lhs in ipairs({ '=', 'q', '<C-c>' }) do
    buffer.map(buf, 'n', lhs, function()
      side_by_side(review)
    end, 'close the text after the change')
  end
  review.side = win
end

--- Goes to the review of another file.
---@param review co.Review
---@param other co.ReviewItem
local function open_other(review, other)
  local from = review.from
  close(review)
  M.open(other, from)
end

--- Goes to the review of the next file, or another number of files on.
---@param review co.Review
---@param step integer
local function other_file(review, step)
  local all = source_of(review.item).items()
  for index, item in ipairs(all) do
    if item.id == review.item.id then
      open_other(review, all[(index - 1 + step) % #all + 1])
      return
    end
  end
end

--- Lets the person choose from the files.
---@param review co.Review
local function choose_file(review)
  local items = source_of(review.item).items
  select.show(items(), {
    prompt = 'Files',
    format_item = function(item)
      local change = item.change --[[@as co.Change]]
      local counts = ('%s  +%d -%d'):format(change.path, change.added, change.removed)
      local answered = review_items.count(item)
      return ('%s · %d of %d answered'):format(counts, answered, #change.hunks)
    end,
  }, function(item)
    -- Meanwhile the questions may have been withdrawn.
    if item and current == review and vim.tbl_contains(items(), item) then
      open_other(review, item)
    end
  end)
end

--- Closes a review before its end.
---@param review co.Review
---@param cancelled? boolean
local function leave(review, cancelled)
  close(review)
  source_of(review.item).left(review.item, cancelled)
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
      { title = review.state.words.reason, text = '', single = true },
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
  q = leave,
  ['<C-c>'] = function(review)
    leave(review, true)
  end,
  ['<CR>'] = function() end,
}
actions['g?'] = function(review)
  local lines = vim.tbl_map(function(entry)
    return (' %-8s %s '):format(entry[1], entry[2])
  end, review_words.keys(review.state.words))
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
  local buf, change = review.buf, review.item.change --[[@as co.Change]]
  api.nvim_buf_set_lines(buf, 0, -1, false, review.state.text)
  pcall(api.nvim_buf_set_name, buf, ('co://review/%s/%s'):format(review.item.number, change.path))
  vim.bo[buf].buftype, vim.bo[buf].bufhidden = 'acwrite', 'wipe'
  vim.bo[buf].modifiable, vim.bo[buf].modified, vim.bo[buf].swapfile = false, false, false
  api.nvim_create_autocmd('BufWriteCmd', {
    buffer = buf,
    callback = function()
      notify.info(review.state.words.write)
    end,
  })
  -- Another way to close it is `q` too.
  api.nvim_create_autocmd('BufWipeout', {
    buffer = buf,
    callback = function()
      if current == review then
        current = nil
        vim.schedule(function()
          source_of(review.item).left(review.item)
        end)
      end
    end,
  })
  for key, act in pairs(actions) do
    buffer.map(buf, 'n', key, function()
      if vim.uv.hrtime() >= (review.quiet_until or 0) then
        act(review)
      end
    end, 'review')
  end
  colour(buf, change.path)
end

--- Opens the review of a question about changes.
---@param question co.Question
---@param quiet_until? integer
function M.open_question(question, quiet_until)
  local items = review_items.of(question)
  M.open(review_items.unanswered(items) or items[1], nil, quiet_until)
end

--- Opens the review of a change.
---@param item co.ReviewItem
---@param from? integer the tab page to go back to
---@param quiet_until? integer
function M.open(item, from, quiet_until)
  from = from or api.nvim_get_current_tabpage()
  local source = source_of(item)
  source.opened(item)
  if current then
    local other = current
    local inside = api.nvim_get_current_buf() == other.buf
    from = inside and other.from or from
    close(other)
    if source_of(other.item) ~= source then
      source_of(other.item).left(other.item)
    end
  end
  ---@type co.Review
  local review = {
    item = item,
    state = review_items.state(item),
    buf = api.nvim_create_buf(false, true),
    win = -1,
    from = from,
    quiet_until = quiet_until,
  }
  make_buffer(review)
  vim.cmd(('tab sbuffer %d'):format(review.buf))
  review.win = api.nvim_get_current_win()
  windows.options(review.win, { signcolumn = 'yes', foldenable = false, wrap = false })
  current = review
  go_to(review, review_state.open(review.state)[1] or 1)
  draw(review)
end

--- Closes the review of an item that no longer waits, and forgets its answers.
---@param id integer|string
function M.settled(id)
  review_items.forget(id)
  local review = current
  if review and (review.item.id == id or question_of(review.item).id == id) then
    close(review)
    notify.warn('the review was closed: its question no longer waits')
  end
end

api.nvim_create_autocmd('User', {
  group = api.nvim_create_augroup('co.review', {}),
  pattern = 'CoApprovalResolved',
  callback = function(event)
    M.settled(event.data.id)
  end,
})

return M
