--- The tab page in which the person reviews a file: they answer each part of its change.
---
--- The buffer is a copy, without the name and the type of the file: language servers, formatters and parsers see nothing of it.
local M = {}

local api = vim.api
local backend = require('co.backend')
local buffer = require('co.ui.buffer')
local guarded = require('co.ui.guarded')
local notify = require('co.ui.notify')
local change_rows = require('co.question.change_rows')
local counts = change_rows.counts
local focus = require('co.ui.focus')
local highlight = require('co.ui.highlight')
local popup = require('co.ui.popup')
local printable = require('co.ui.printable')
local review_items = require('co.question.review_items')
local review_state = require('co.question.review_state')
local review_text = require('co.question.review_text')
local review_words = require('co.question.review_words')
local select = require('co.ui.select')
local windows = require('co.ui.windows')

-- The largest number of lines and of bytes that can be edited, or shown side by side. Neovim compares a longer text for
-- seconds.
local MOST_LINES, MOST_BYTES = 5000, 256 * 1024
-- The most bytes of rows that are matched with each other.
local MOST_MATCHED = 40000

---@class (exact) co.Review
---@field item co.ReviewItem
---@field source co.review.Source
---@field reviews co.Reviews opens the next file
---@field state co.review.State
---@field text co.review.Text
---@field buf integer
---@field win integer
---@field from integer the tab page of the person
---@field goal? integer the part to go to when it is there, if the cursor has not moved
---@field opened boolean the person sees it
---@field closed boolean
---@field side? integer a buffer of the tab page that shows both texts side by side
local Review = {}
Review.__index = Review

-- For the rows that Neovim draws.
local drawings = api.nvim_create_namespace('co.review.drawings')

--- Returns the number of the part under the cursor; nil if the buffer has no part yet.
---@param review co.Review
---@return integer?
local function here(review)
  return review.text:at_row(api.nvim_win_get_cursor(review.win)[1] - 1)
end

--- Moves the cursor to a part, and shows as much of the part as possible. If co moves the cursor and the whole part was
--- not on the screen, keys do not count as answers for a while.
---@param review co.Review
---@param number integer
---@param by? co.focus.By nil: a key for it
local function go_to(review, number, by)
  local row = review.text:row(number)
  if not row or not api.nvim_win_is_valid(review.win) then
    return
  end
  local moves = api.nvim_win_get_cursor(review.win)[1] ~= row + 1
  local bottom = vim.fn.line('w$', review.win)
  if
    by
    and moves
    and (row + 1 < vim.fn.line('w0', review.win) or review.text:last_row(number) >= bottom)
  then
    focus.ignore_keys(by)
  end
  api.nvim_win_set_cursor(review.win, { row + 1, 0 })
  api.nvim_win_call(review.win, function()
    local last = math.min(review.text:last_row(number), row + api.nvim_win_get_height(review.win))
    if last >= vim.fn.line('w$') then
      vim.fn.winrestview({ topline = math.max(1, (review.text:first_row(number) or row) - 2) })
    end
  end)
end

--- Goes to the part that the person should see first, as soon as the buffer has this part. If the person has moved the
--- cursor, leaves it there.
---@param review co.Review
local function reach_goal(review)
  local goal = review.goal
  if not goal or not review.text:is_there(goal) then
    return
  end
  review.goal = nil
  if api.nvim_win_get_cursor(review.win)[1] == 1 then
    go_to(review, goal, review.opened and 'co' or nil)
  end
end

--- Returns the files of the step that is reviewed. Leaves out files whose parts the person cannot answer separately,
--- and files of questions that only a key in the float can answer with yes.
---@param review co.Review
---@return co.ReviewItem[]
local function step_items(review)
  return vim.tbl_filter(function(item)
    local alone = item.question and item.question.kind.alone(item.question)
    return item.chat == review.item.chat and not item.whole and not alone
  end, review.source.items())
end

--- Returns the number of parts of the step that have no answer and that the screen has not shown as a whole.
---@param review co.Review
---@return integer
local function count_unseen(review)
  local count = 0
  for _, item in ipairs(step_items(review)) do
    count = count + #review_state.unseen(review_items.state(item))
  end
  return count
end

--- Draws the winbar.
---@param review co.Review
local function draw_winbar(review)
  local state, change = review.state, review.item.change
  local file, files = review.reviews:number_of(review.item, review.source.items())
  local answered = ('%d of %d answered'):format(
    state.parts - #review_state.open(state),
    state.parts
  )
  local parts = {
    (printable.line(change.path .. '  ' .. counts(change)):gsub('%%', '%%%%')),
    review.item.whole and 'q goes back to the question' or answered,
    review.item.whole and '%<]c  =  q  g?' or '%<y n e c u  ]c  Y N  =  q  g?',
  }
  if files > 1 then
    table.insert(parts, 1, ('file %d of %d'):format(file, files))
  end
  if #step_items(review) > 1 and not review.item.whole then
    local unseen = count_unseen(review)
    table.insert(
      parts,
      #parts,
      unseen > 0 and ('%d to see'):format(unseen) or 'A accepts all files'
    )
  end
  windows.options(review.win, { winbar = ' ' .. table.concat(parts, ' · ') })
end

--- Notes the parts that are on the screen. Only rows that Neovim has drawn count: if keys scroll fast, Neovim skips
--- rows.
---@param review co.Review
---@param top integer the first row, from 0
---@param bottom integer the last one, or a later one
local function note_shown(review, top, bottom)
  local win, text = review.win, review.text
  if
    review.closed
    or not api.nvim_win_is_valid(win)
    or api.nvim_win_get_buf(win) ~= review.buf
    or api.nvim_win_get_tabpage(win) ~= api.nvim_get_current_tabpage()
  then
    return
  end
  local first, last = windows.whole_lines(win)
  if not first then
    return
  end
  first, last = math.max(first - 1, top), math.min(last - 1, bottom)
  local from, to = text:at_row(first), text:at_row(last)
  if not from or not to then
    return
  end
  local before = count_unseen(review)
  for number = from, to do
    local row = text:first_row(number)
    if row and text:is_there(number) and not review.state.seen[number] then
      local rows = text:last_row(number) - row + 1
      review_state.note_shown(review.state, number, rows, first - row, last - row)
    end
  end
  if count_unseen(review) ~= before then
    draw_winbar(review)
  end
end

--- Shows the answers to some parts.
---@param review co.Review
---@param numbers integer[]
local function draw(review, numbers)
  for _, number in ipairs(numbers) do
    review.text:refresh(number)
  end
  draw_winbar(review)
end

--- Closes the tab page with both texts.
---@param review co.Review
local function close_side(review)
  local side = review.side
  review.side = nil
  if side and api.nvim_buf_is_valid(side) then
    for _, win in ipairs(vim.fn.win_findbuf(side)) do
      local tab = api.nvim_win_get_tabpage(win)
      if api.nvim_tabpage_is_valid(tab) and #api.nvim_list_tabpages() > 1 then
        guarded.close_tab(tab)
      end
    end
  end
end

--- Closes the tab page of a review if the cursor is in a float there: Neovim keeps the last window below a float.
---@param review co.Review
---@return boolean closed
local function close_below_float(review)
  local tab = api.nvim_get_current_tabpage()
  local is_float = api.nvim_win_get_config(0).relative ~= ''
  local others = vim.tbl_filter(function(win)
    return win ~= review.win and api.nvim_win_get_config(win).relative == ''
  end, api.nvim_tabpage_list_wins(tab))
  local is_there = vim.list_contains(api.nvim_tabpage_list_wins(tab), review.win)
  if not is_float or not is_there or others[1] or #api.nvim_list_tabpages() == 1 then
    return false
  end
  guarded.close_tab(tab)
  return true
end

--- Closes the tab page and goes back to the person's earlier tab page.
function Review:close()
  self.closed = true
  api.nvim_set_decoration_provider(drawings, {})
  close_side(self)
  if api.nvim_buf_is_valid(self.buf) then
    local focused = api.nvim_get_current_buf() == self.buf
    focused = close_below_float(self) or focused
    -- This closes all windows of the buffer, unless one of them is the last window of Neovim.
    guarded.delete_buffer(self.buf)
    if focused and api.nvim_tabpage_is_valid(self.from) then
      guarded.go_to_tab(self.from)
    end
  end
end

--- Closes a review whose parts are all answered, then shows the next file.
---@param review co.Review
local function finish(review)
  review:close()
  local next = review.source.answered(review.item)
  if next then
    review.reviews:open(next, 'co', review.from)
  end
end

--- Accepts all parts of the step that have no answer, if the screen has shown each of them.
---@param review co.Review
local function accept_all(review)
  local items, unseen = step_items(review), count_unseen(review)
  if not vim.list_contains(items, review.item) then
    notify.warn('this question is answered alone: Y accepts its changes')
    return
  elseif unseen > 0 then
    local changes = unseen == 1 and '1 change was' or ('%d changes were'):format(unseen)
    notify.warn(('%s not on the screen as a whole yet: ]c goes on'):format(changes))
    return
  end
  local source = review.source
  review:close()
  ---@type co.ReviewItem?
  local next
  ---@type table<integer, true>
  local sent = {}
  for _, item in ipairs(items) do
    local state = review_items.state(item)
    for _, number in ipairs(review_state.open(state)) do
      review_state.set(state, number, { accept = true })
    end
    if source.changed then
      source.changed(item)
    end
  end
  for _, item in ipairs(items) do
    if not sent[item.request] then
      sent[item.request] = true
      next = source.answered(item)
    end
  end
  if next then
    review.reviews:open(next, 'co', review.from)
  end
end

--- Changes the answer to a part.
---@param review co.Review
---@param number integer
---@param fields co.review.PartState
local function set(review, number, fields)
  review_state.set(review.state, number, fields)
  local changed = review.source.changed
  if changed then
    changed(review.item)
  end
end

--- Gives the same answer to these parts. If the buffer does not have all lines of one of them yet, answers none. Closes
--- the review when all parts of the file are answered.
---@param review co.Review
---@param numbers integer[]
---@param fields co.review.PartState
local function decide(review, numbers, fields)
  for _, number in ipairs(numbers) do
    if not review.text:is_there(number) then
      notify.warn('not all of it is there yet: answer it when you have seen it')
      return
    end
  end
  for _, number in ipairs(numbers) do
    set(review, number, fields)
  end
  local open = review_state.open(review.state, numbers[#numbers])
  if not open[1] then
    finish(review)
    return
  end
  draw(review, numbers)
  go_to(review, open[1], 'person')
end

--- Opens a window in which the person writes a text. If the review was closed meanwhile, drops the text.
---@param review co.Review
---@param about co.entry.About
---@param done fun(text: string)
local function ask_text(review, about, done)
  require('co.question.text_input').open(about, function(text)
    if not review.closed then
      done(text)
    end
  end)
end

--- Makes a buffer with these lines. Neovim deletes the buffer when its window closes.
---@param lines string[]
---@return integer
local function frozen(lines)
  local buf = api.nvim_create_buf(false, true)
  buffer.set_lines(buf, 0, -1, lines)
  vim.bo[buf].modifiable, vim.bo[buf].bufhidden = false, 'wipe'
  return buf
end

--- Turns off the matching of rows in 'diffopt' while a buffer exists, if this matching would be slow. Also turns off
--- the marks of changed characters.
---@param review co.Review
---@param rows string[]
---@param buf integer
local function match_less(review, rows, buf)
  local longest = 0
  for _, row in ipairs(rows) do
    longest = math.max(longest, #row)
  end
  if review.text:most_pairs() * longest <= MOST_MATCHED then
    return
  end
  local before = vim.o.diffopt
  local less = vim.tbl_filter(function(item)
    return not item:find('^linematch') and not item:find('^inline')
  end, vim.split(before, ','))
  vim.o.diffopt = table.concat(less, ',')
  local set = vim.o.diffopt
  api.nvim_create_autocmd('BufWipeout', {
    buffer = buf,
    once = true,
    callback = function()
      if vim.o.diffopt == set then
        vim.o.diffopt = before
      end
    end,
  })
end

--- Shows the text before and after the change side by side in another tab page.
---@param review co.Review
local function side_by_side(review)
  if not review.text.done then
    notify.warn('not all of the text is there yet: press = again in a moment')
    return
  end
  local bytes = api.nvim_buf_get_offset(review.buf, api.nvim_buf_line_count(review.buf))
  if review.text.rows > MOST_LINES or bytes > MOST_BYTES then
    notify.warn('the text is too long to be shown side by side')
    return
  end
  local before, after = review.text:before_and_after()
  local sides = { frozen(before), frozen(after) }
  match_less(review, vim.list_extend(before, after), sides[1])
  guarded.open_tab(sides[1])
  local left = api.nvim_get_current_win()
  local wins = { left, guarded.open_window(sides[2], false, { split = 'right', win = left }) }
  for index, win in ipairs(wins) do
    windows.options(win, change_rows.window_options())
    windows.options(win, {
      winbar = index == 1 and ' before the change' or ' after the change · = closes',
      signcolumn = 'no',
    })
    api.nvim_win_call(win, vim.cmd.diffthis)
    for _, lhs in ipairs({ '=', 'q', '<C-c>' }) do
      buffer.map(api.nvim_win_get_buf(win), 'n', lhs, function()
        close_side(review)
      end, 'close the texts before and after the change')
    end
  end
  review.side = sides[1]
end

--- Goes to the review of another file.
---@param review co.Review
---@param other co.ReviewItem
---@param goal? integer the part to go to
local function open_other(review, other, goal)
  review:close()
  review.reviews:open(other, nil, review.from, goal)
end

--- Goes to the review of another file. `step` is the distance from this file to the other file.
---@param review co.Review
---@param step integer
local function other_file(review, step)
  local all = review.source.items()
  for index, item in ipairs(all) do
    if item.id == review.item.id then
      open_other(review, all[(index - 1 + step) % #all + 1])
      return
    end
  end
end

--- Returns the next or the previous file of the step, if there is one.
---@param review co.Review
---@param step 1|-1
---@return co.ReviewItem?
local function neighbour(review, step)
  local all = step_items(review)
  for index, item in ipairs(all) do
    if item.id == review.item.id then
      return all[index + step]
    end
  end
end

--- Lets the person choose from the files.
---@param review co.Review
local function choose_file(review)
  local items = review.source.items
  select.show(items(), {
    prompt = 'Files',
    format_item = function(item)
      local change = item.change
      local about = ('%s  %s'):format(change.path, counts(change))
      local answered = review_items.count(item)
      return item.whole and about
        or ('%s · %d of %d answered'):format(about, answered, change.parts)
    end,
  }, function(item)
    -- Meanwhile the questions may have been withdrawn.
    if item and not review.closed and vim.tbl_contains(items(), item) then
      open_other(review, item)
    end
  end)
end

--- Closes a review before its end.
---@param review co.Review
---@param by co.review.Leave
local function leave(review, by)
  review:close()
  review.source.left(review.item, by)
end

--- The answers to the part under the cursor.
---@type table<string, fun(review: co.Review, number: integer)>
local answers = {
  y = function(review, number)
    decide(review, { number }, { accept = true })
  end,
  n = function(review, number)
    decide(review, { number }, { accept = false })
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
        set(review, open[1], { comment = reason ~= '' and reason or nil })
        decide(review, open, { accept = false })
      end
    )
  end,
  A = function(review)
    accept_all(review)
  end,
  e = function(review, number)
    local lines = review_state.answer(review.state, number).lines
      or review.text:is_there(number) and review.text:added(number, MOST_LINES, MOST_BYTES)
    if review.item.change.whole or not lines then
      notify.warn('you cannot write another text for this change: refuse it, and say why with c')
      return
    end
    local about = {
      title = ('Instead of change %d'):format(number),
      text = table.concat(lines, '\n'),
      single = false,
      syntax = '',
    }
    ask_text(review, about, function(text)
      local own = text == '' and {} or vim.split(text, '\n', { plain = true })
      set(review, number, { lines = own })
      review.text:rewrite(number)
      decide(review, { number }, { accept = true })
    end)
  end,
  c = function(review, number)
    local comment = review_state.answer(review.state, number).comment or ''
    local title = ('Comment on change %d'):format(number)
    ask_text(review, { title = title, text = comment, single = true }, function(text)
      set(review, number, { comment = text })
      draw(review, { number })
    end)
  end,
  u = function(review, number)
    review.state.answers[number] = nil
    set(review, number, {})
    draw(review, { number })
  end,
}

---@type table<string, fun(review: co.Review)>
local actions = {
  ['='] = side_by_side,
  [']c'] = function(review)
    local above = api.nvim_win_get_cursor(review.win)[1] - 1 < (review.text:row(1) or 0)
    local next = above and 1 or (here(review) or 0) + 1
    local past_all = next > review.state.parts and review.text.done
    local other = past_all and neighbour(review, 1)
    if other then
      open_other(review, other)
    elseif not past_all then
      go_to(review, math.min(next, math.max(review.text.part, 1)))
    end
  end,
  ['[c'] = function(review)
    local number = here(review) or 1
    local inside = api.nvim_win_get_cursor(review.win)[1] - 1 > (review.text:row(number) or 0)
    local previous = inside and number or number - 1
    local other = previous < 1 and neighbour(review, -1)
    if other then
      open_other(review, other, review_items.state(other).parts)
    else
      go_to(review, math.max(previous, 1))
    end
  end,
  [']f'] = function(review)
    other_file(review, 1)
  end,
  ['[f'] = function(review)
    other_file(review, -1)
  end,
  f = choose_file,
  q = function(review)
    leave(review, 'end')
  end,
  ['<C-c>'] = function(review)
    leave(review, 'cancel')
  end,
  ['<CR>'] = function() end,
}
for key, act in pairs(answers) do
  actions[key] = function(review)
    local number = here(review)
    if review.item.whole then
      notify.warn('these changes are answered as a whole: q goes back to the question')
    elseif number then
      act(review, number)
    end
  end
end
actions['g?'] = function(review)
  local lines = vim.tbl_map(function(entry)
    return (' %-8s %s '):format(entry[1], entry[2])
  end, review_words.keys(review.state.words))
  popup.enter(lines, ' co · q closes ', 'g?')
end

--- Makes the buffer of a review.
---@param review co.Review
local function make_buffer(review)
  local buf, item = review.buf, review.item
  local name = 'co://review/' .. item.number
  pcall(
    api.nvim_buf_set_name,
    buf,
    buffer.titled(name, 'review', vim.fs.basename(item.change.path))
  )
  vim.bo[buf].buftype, vim.bo[buf].bufhidden, vim.bo[buf].swapfile = 'acwrite', 'wipe', false
  buffer.lock(buf)
  api.nvim_create_autocmd('BufWriteCmd', {
    buffer = buf,
    callback = function()
      notify.info(review.state.words.write)
    end,
  })
  api.nvim_create_autocmd('BufWipeout', {
    buffer = buf,
    callback = function()
      if not review.closed then
        review.closed = true
        vim.schedule(function()
          review.source.left(review.item, 'close')
        end)
      end
    end,
  })
  api.nvim_set_decoration_provider(drawings, {
    on_win = function(_, win, _, top, bottom)
      if win == review.win then
        vim.schedule(function()
          note_shown(review, top, bottom)
        end)
      end
      return false
    end,
  })
  for key, act in pairs(actions) do
    buffer.map(buf, 'n', key, function()
      if not focus.ignores_keys() then
        act(review)
      end
    end, 'review')
  end
end

--- Takes the next part of the text.
---@param part co.ReviewPart
function Review:receive(part)
  self.text:receive(part)
end

--- Opens the tab page for an item.
---@param item co.ReviewItem
---@param source co.review.Source
---@param reviews co.Reviews
---@param from integer the tab page to go back to
---@param goal? integer the part to go to; nil: the first one without an answer
---@return co.Review
function M.open(item, source, reviews, from, goal)
  local buf, state = api.nvim_create_buf(false, true), review_items.state(item)
  ---@type co.Review
  local review
  local text = review_text.new(buf, item.change, state, {
    wants = function(start)
      backend.send_if_running({
        type = 'read_review',
        id = item.request,
        file = item.file,
        from = start,
      })
    end,
    grown = function()
      reach_goal(review)
    end,
  })
  review = setmetatable({
    item = item,
    source = source,
    reviews = reviews,
    state = state,
    text = text,
    buf = buf,
    win = -1,
    from = from,
    opened = false,
    closed = false,
    goal = goal or review_state.open(state)[1] or 1,
  }, Review)
  highlight.ensure()
  make_buffer(review)
  guarded.open_tab(review.buf)
  review.win = api.nvim_get_current_win()
  windows.options(review.win, change_rows.window_options())
  windows.options(review.win, {
    signcolumn = 'yes',
    diff = false,
    scrollbind = false,
    cursorbind = false,
  })
  return review
end

--- Fills the page.
function Review:show()
  self.text:step()
  self.opened = true
  draw_winbar(self)
end

return M
