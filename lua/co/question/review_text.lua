--- The buffer of a review. It has the lines of the whole file, including the removed and the added lines.
---
--- The backend sends the text in parts. The text goes into the buffer in short steps, between which Neovim handles
--- keys. A long line takes several rows. Extmarks mark the headings and the rows that co must find again.
local M = {}

local api = vim.api
local buffer = require('co.ui.buffer')
local change_rows = require('co.question.change_rows')
local printable = require('co.ui.printable')
local review_colours = require('co.question.review_colours')
local review_state = require('co.question.review_state')

-- The longest time of one step.
local STEP_NS = 8 * 1000000
-- Rows between two looks at the clock.
local ROWS = 128
-- Neovim 0.10 shows a sign only in the first row of an extmark.
local RANGES = vim.fn.has('nvim-0.11') == 1

-- The headings. The id of a mark is the number of the part.
local headings = api.nvim_create_namespace('co.review.headings')
-- Rows of one kind that follow each other.
local runs = api.nvim_create_namespace('co.review')
-- Rows that continue the line above.
local continued = api.nvim_create_namespace('co.review.continued')

--- Rows of one kind that follow each other in a part.
---@class (exact) co.review.Run
---@field kind string
---@field part integer
---@field first integer the rows, when they were written
---@field last integer
---@field marks integer[]

---@class (exact) co.review.Text
---@field buf integer
---@field change co.FileChange
---@field state co.review.State
---@field on co.review.TextEvents
---@field pending string text that is not yet in the buffer as a whole
---@field at integer the first byte of `pending` that is not in the buffer yet
---@field received integer the bytes that came
---@field more boolean more will come
---@field stepping boolean a step is under way
---@field done boolean all is in the buffer
---@field rows integer
---@field part integer the number of the last part
---@field inside? string the kind of the line that is only partly in the buffer
---@field own? string[] the lines that the person wrote for the last part, if they are not in the buffer yet
---@field run? co.review.Run the last rows
---@field runs table<integer, co.review.Run[]> by the numbers of the parts
local Text = {}
Text.__index = Text

---@class (exact) co.review.TextEvents
---@field wants fun(from: integer) the text after so many bytes is needed
---@field grown fun() more of the text is in the buffer

--- The rows of one step.
---@class (exact) co.review.Step
---@field lines string[]
---@field runs co.review.Run[]
---@field headings { row: integer, part: integer }[]
---@field continued integer[]
---@field own integer[] the unchanged rows that the person wrote

--- Returns the words for the answer to a part, and their highlight group.
---@param answer co.review.PartState
---@param texts co.review.Words
---@return string
---@return string
local function outcome(answer, texts)
  local words, group = texts.open, 'CoApprovalLabel'
  if answer.accept == false then
    words, group = texts.refused, 'CoDiffRemoved'
  elseif answer.accept then
    words, group = answer.lines and texts.edited or texts.accepted, 'CoDiffAdded'
  end
  return answer.comment and ('%s · "%s"'):format(words, answer.comment) or words, group
end

--- Creates the text of a change in an empty buffer. `step` starts to write it.
---@param buf integer
---@param change co.FileChange
---@param state co.review.State
---@param on co.review.TextEvents
---@return co.review.Text
function M.new(buf, change, state, on)
  return setmetatable({
    buf = buf,
    change = change,
    state = state,
    on = on,
    pending = change.text,
    at = 1,
    received = #change.text,
    more = change.more,
    stepping = false,
    done = false,
    rows = 0,
    part = 0,
    runs = {},
  }, Text)
end

--- Takes the next part of the text.
---@param part co.ReviewPart
function Text:receive(part)
  if part.from ~= self.received or not self.more then
    return
  end
  self.pending, self.at = self.pending:sub(self.at) .. part.text, 1
  self.received, self.more = self.received + #part.text, part.more
  self:step()
end

--- Returns the next row to write: its kind, its text, and true if it continues a line.
---@return string?
---@return string
---@return boolean
function Text:next_row()
  local pending, from = self.pending, self.at
  local kind, continues = self.inside, self.inside ~= nil
  if not kind then
    kind = pending:sub(from, from)
    from = from + 1
  end
  local stop = pending:find('\n', from, true)
  local left = (stop or #pending + 1) - from
  if left > change_rows.LONGEST_ROW then
    stop = change_rows.row_end(pending, from)
    self.inside, self.at = kind, stop
    return kind, pending:sub(from, stop - 1), continues
  elseif not stop and (self.more or kind == '') then
    return nil, '', false
  end
  self.inside, self.at = nil, (stop or #pending) + 1
  return kind, pending:sub(from, (stop or #pending + 1) - 1), continues
end

--- Adds a row to a step.
---@param step co.review.Step
---@param kind string
---@param line string
---@param continues boolean
function Text:push(step, kind, line, continues)
  local row, run = self.rows, self.run
  self.rows = row + 1
  step.lines[#step.lines + 1] = line
  if continues then
    step.continued[#step.continued + 1] = row
  end
  if kind == ' ' or kind == '~' then
    self.run = nil
    step.own[#step.own + 1] = kind == '~' and row or nil
    return
  end
  if run and run.kind == kind and run.part == self.part then
    run.last = row
  else
    run = { kind = kind, part = self.part, first = row, last = row, marks = {} }
    self.run = run
    self.runs[self.part] = self.runs[self.part] or {}
    table.insert(self.runs[self.part], run)
  end
  if step.runs[#step.runs] ~= run then
    step.runs[#step.runs + 1] = run
  end
end

--- Adds the lines that the person wrote for the last part, if there are some and they are not in the buffer yet.
---@param step co.review.Step
function Text:push_own(step)
  local own = self.own
  self.own = nil
  for _, line in ipairs(own or {}) do
    for index, row in ipairs(change_rows.rows_of(line)) do
      self:push(step, '+', row, index > 1)
    end
  end
end

--- Adds a row of the change, or the row that replaces it.
---@param step co.review.Step
---@param kind string
---@param line string
---@param continues boolean
function Text:add(step, kind, line, continues)
  if kind == '@' then
    self:push_own(step)
    self.part, self.run = self.part + 1, nil
    self.own = review_state.answer(self.state, self.part).lines
    step.headings[#step.headings + 1] = { row = self.rows, part = self.part }
    self.rows = self.rows + 1
    step.lines[#step.lines + 1] = self:heading(self.part)
    return
  elseif kind == '+' and review_state.answer(self.state, self.part).lines then
    self:push_own(step)
    return
  elseif kind == ' ' or kind == '~' then
    self:push_own(step)
  end
  self:push(step, kind, line, continues)
end

--- Writes rows until the time of a step is over. Then schedules the next step, or asks for more text.
function Text:step()
  if self.stepping or self.done or not buffer.alive(self.buf) then
    return
  end
  local deadline = vim.uv.hrtime() + STEP_NS
  ---@type co.review.Step
  local step = { lines = {}, runs = {}, headings = {}, continued = {}, own = {} }
  local starved = false
  repeat
    for _ = 1, ROWS do
      local kind, line, continues = self:next_row()
      if not kind then
        starved = true
        break
      end
      self:add(step, kind, line, continues)
    end
  until starved or vim.uv.hrtime() > deadline
  if starved and not self.more then
    self:push_own(step)
    self.done = true
  end
  self:write(step)
  if not starved then
    self.stepping = true
    -- A timer lets Neovim handle keys and messages before the next step.
    vim.defer_fn(function()
      self.stepping = false
      self:step()
    end, 1)
  elseif self.more then
    self.on.wants(self.received)
  end
  self.on.grown()
  if self.done then
    review_colours.paint(self)
  end
end

--- Writes the rows of a step at the end of the buffer.
---@param step co.review.Step
function Text:write(step)
  local from = self.rows - #step.lines
  buffer.write(self.buf, function()
    buffer.set_lines(self.buf, from == 0 and 0 or -1, -1, step.lines)
  end)
  for _, run in ipairs(step.runs) do
    self:mark(run, run.first, run.last)
  end
  for _, heading in ipairs(step.headings) do
    self:mark_heading(heading.part, heading.row)
  end
  for _, row in ipairs(step.own) do
    api.nvim_buf_set_extmark(self.buf, runs, row, 0, change_rows.mark('~'))
  end
  for _, row in ipairs(step.continued) do
    api.nvim_buf_set_extmark(self.buf, continued, row, 0, change_rows.CONTINUED)
  end
end

--- Returns the heading of a part, and its highlight group.
---@param number integer
---@return string
---@return string
function Text:heading(number)
  local words, group = outcome(review_state.answer(self.state, number), self.state.words)
  local heading = ('── change %d of %d'):format(number, self.state.parts)
  for _, word in ipairs({ words, (self.change.calls or {})[number] }) do
    if word ~= '' then
      heading = heading .. ' · ' .. word
    end
  end
  return printable.line(heading), group
end

---@param number integer
---@param row integer
function Text:mark_heading(number, row)
  local _, group = self:heading(number)
  api.nvim_buf_set_extmark(self.buf, headings, row, 0, { id = number, line_hl_group = group })
end

--- Sets the marks of rows of one kind.
---@param run co.review.Run
---@param first integer
---@param last integer
function Text:mark(run, first, last)
  local options = change_rows.mark(run.kind)
  options.strict = false
  if review_state.answer(self.state, run.part).accept == false then
    options.line_hl_group = nil
    if run.kind == '+' then
      -- Above the colours of the text.
      options.hl_group, options.priority = 'CoApprovalLabel', 200
      options.end_col = 2 * change_rows.LONGEST_ROW
    end
  end
  if RANGES then
    options.id, options.end_row = run.marks[1], last
    run.marks[1] = api.nvim_buf_set_extmark(self.buf, runs, first, 0, options)
    return
  end
  for row = first, last do
    options.id = run.marks[row - first + 1]
    run.marks[row - first + 1] = api.nvim_buf_set_extmark(self.buf, runs, row, 0, options)
  end
end

--- Returns the first and the last row where rows of one kind are now.
---@param run co.review.Run
---@return integer
---@return integer
function Text:place(run)
  local function at(id)
    return api.nvim_buf_get_extmark_by_id(self.buf, runs, id, { details = true })
  end
  local first, last = at(run.marks[1]), at(run.marks[#run.marks])
  local details = last[3] or {}
  return first[1], RANGES and details.end_row or last[1]
end

--- Returns the row of the heading of a part; nil if it is not in the buffer yet.
---@param number integer
---@return integer?
function Text:row(number)
  return api.nvim_buf_get_extmark_by_id(self.buf, headings, number, {})[1]
end

--- Returns the first row that must be on the screen before a part can be accepted. This is the heading of the part. For
--- the first part, it is the first row with facts about the file, if there is one.
---@param number integer
---@return integer?
function Text:first_row(number)
  local facts = number == 1 and self.runs[0] or nil
  local first = facts and self:place(facts[1])
  return first or self:row(number)
end

--- Returns the last row of a part.
---@param number integer
---@return integer
function Text:last_row(number)
  local own = self.runs[number]
  if not own then
    return self:row(number) or 0
  end
  local _, last = self:place(own[#own])
  return last
end

--- Returns the number of the part at a row. A row between parts belongs to the part above. A row above all parts
--- belongs to the first part. Returns nil if the buffer has no part yet.
---@param row integer
---@return integer?
function Text:at_row(row)
  local found = api.nvim_buf_get_extmarks(self.buf, headings, { row, -1 }, 0, { limit = 1 })[1]
  return found and found[1] or self.part > 0 and 1 or nil
end

--- Returns whether the whole part is in the buffer.
---@param number integer
---@return boolean
function Text:is_there(number)
  return self.done or self.part > number
end

--- Shows the answer to a part.
---@param number integer
function Text:refresh(number)
  local row = self:row(number)
  if not row then
    return
  end
  buffer.write(self.buf, function()
    buffer.set_lines(self.buf, row, row + 1, { (self:heading(number)) })
  end)
  self:mark_heading(number, row)
  for _, run in ipairs(self.runs[number] or {}) do
    self:mark(run, self:place(run))
  end
end

--- Returns the rows with the new lines of a part, if it has some.
---@param number integer
---@return co.review.Run?
---@return integer? index
function Text:added_run(number)
  for index, run in ipairs(self.runs[number] or {}) do
    if run.kind == '+' then
      return run, index
    end
  end
end

--- Returns the new lines of a part; nil if the lines have more than `most_rows` rows or `most_bytes` bytes.
---@param number integer
---@param most_rows integer
---@param most_bytes integer
---@return string[]?
function Text:added(number, most_rows, most_bytes)
  local run = self:added_run(number)
  if not run then
    return {}
  end
  local first, last = self:place(run)
  local bytes = api.nvim_buf_get_offset(self.buf, last + 1)
    - api.nvim_buf_get_offset(self.buf, first)
  if last - first + 1 > most_rows or bytes > most_bytes then
    return nil
  end
  return self:lines(first, last)
end

--- Returns the lines in some rows. Rows that continue a line are joined.
---@param first integer
---@param last integer
---@return string[]
function Text:lines(first, last)
  local joined = {}
  for _, mark in
    ipairs(api.nvim_buf_get_extmarks(self.buf, continued, { first, 0 }, { last, -1 }, {}))
  do
    joined[mark[2]] = true
  end
  local lines = {}
  for index, row in ipairs(api.nvim_buf_get_lines(self.buf, first, last + 1, false)) do
    if joined[first + index - 1] and #lines > 0 then
      lines[#lines] = lines[#lines] .. row
    else
      lines[#lines + 1] = row
    end
  end
  return lines
end

--- Writes the lines that the person wrote for a part in the place of its new lines.
---@param number integer
function Text:rewrite(number)
  local rows, cuts = {}, {}
  for _, line in ipairs(review_state.answer(self.state, number).lines or {}) do
    for index, row in ipairs(change_rows.rows_of(line)) do
      rows[#rows + 1] = row
      cuts[#rows] = index > 1
    end
  end
  local run, index = self:added_run(number)
  local own = self.runs[number] or {}
  self.runs[number] = own
  local first, last = self:last_row(number) + 1, self:last_row(number)
  if run then
    first, last = self:place(run)
    for _, mark in ipairs(run.marks) do
      api.nvim_buf_del_extmark(self.buf, runs, mark)
    end
    table.remove(own, index)
  end
  api.nvim_buf_clear_namespace(self.buf, continued, first, last + 1)
  buffer.write(self.buf, function()
    buffer.set_lines(self.buf, first, last + 1, rows)
  end)
  self.rows = api.nvim_buf_line_count(self.buf)
  if #rows > 0 then
    run = { kind = '+', part = number, first = first, last = first + #rows - 1, marks = {} }
    table.insert(own, index or #own + 1, run)
    self:mark(run, run.first, run.last)
  end
end

--- Returns the kinds of the rows. The kind of a heading is `@`.
---@param answered boolean as if the change were made as the person answered
---@return table<integer, string> by rows; nil is a row that stays
function Text:kinds(answered)
  ---@type table<integer, string>
  local kinds = {}
  for number = 0, self.part do
    local row = number > 0 and self:row(number)
    if row then
      kinds[row] = '@'
    end
    local refused = answered and review_state.answer(self.state, number).accept == false
    for _, run in ipairs(self.runs[number] or {}) do
      local first, last = self:place(run)
      for each = first, last do
        kinds[each] = refused and ({ ['-'] = ' ', ['+'] = '@' })[run.kind] or run.kind
      end
    end
  end
  return kinds
end

--- Returns the largest number of pairs of an old row and a new row in one part.
---@return integer
function Text:most_pairs()
  local most = 0
  for _, own in pairs(self.runs) do
    ---@type table<string, integer>
    local rows = { ['-'] = 0, ['+'] = 0 }
    for _, run in ipairs(own) do
      rows[run.kind] = (rows[run.kind] or 0) + run.last - run.first + 1
    end
    most = math.max(most, rows['-'] * rows['+'])
  end
  return most --[[@as integer]]
end

--- Returns the text before and after the change, without the parts that the person refused.
---@return string[]
---@return string[]
function Text:before_and_after()
  local kinds, before, after = self:kinds(true), {}, {}
  for index, line in ipairs(api.nvim_buf_get_lines(self.buf, 0, -1, false)) do
    local kind = kinds[index - 1] or ' '
    if kind == ' ' or kind == '-' then
      before[#before + 1] = line
    end
    if kind == ' ' or kind == '+' then
      after[#after + 1] = line
    end
  end
  return before, after
end

--- Returns the text before the change and the text after it. The removed rows of the review get their colours from the
--- first text, and the other rows from the second text.
---@return co.review.Side
---@return co.review.Side
function Text:sides()
  ---@type co.review.Side, co.review.Side
  local old, new = { lines = {}, rows = {}, shown = {} }, { lines = {}, rows = {}, shown = {} }
  local kinds = self:kinds(false)
  for index, line in ipairs(api.nvim_buf_get_lines(self.buf, 0, -1, false)) do
    local row = index - 1
    local kind = kinds[row] or ' '
    for _, side in ipairs(({ [' '] = { old, new }, ['-'] = { old }, ['+'] = { new } })[kind] or {}) do
      side.lines[#side.lines + 1], side.rows[#side.rows + 1] = line, row
    end
    if kind == '-' then
      old.shown[row] = true
    elseif kind == '+' or kind == ' ' then
      new.shown[row] = true
    end
  end
  return old, new
end

return M
