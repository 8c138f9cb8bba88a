--- The texts of reviews.
local M = {}

--- The texts of a review.
---@class (exact) co.review.Words
---@field open string a part without an answer
---@field accepted string
---@field edited string accepted with another text
---@field refused string
---@field write string what `:w` does
---@field reason string the title of the reason of `N`
---@field keys { y: string, Y: string, f: string, q: string }

--- For a change that waits for an answer.
---@type co.review.Words
M.question = {
  open = 'y accepts · n refuses',
  accepted = 'accepted',
  edited = 'accepted with your text',
  refused = 'refused',
  write = ':w accepts nothing: y accepts this change, Y the rest',
  reason = 'No to the rest, because',
  keys = {
    y = 'accept, refuse this change',
    Y = 'accept, refuse the rest; N asks for a reason',
    f = 'choose a file from the list of those that wait',
    q = 'put the review away, as <C-c>: the question still waits',
  },
}

--- For changes that are made or dropped as a whole.
---@type co.review.Words
M.whole = vim.tbl_extend('force', M.question, {
  open = '',
  write = ':w answers nothing: q goes back to the question',
})

--- For changes that were made.
---@type co.review.Words
M.made = {
  open = 'n takes it back',
  accepted = 'stays',
  edited = 'gets your text when the review ends',
  refused = 'is taken back when the review ends',
  write = ':w takes nothing back: n marks this change, q ends the review',
  reason = 'Take the rest back, because',
  keys = {
    y = 'keep this change, take it back',
    Y = 'keep the rest of the file, take it back; N asks for a reason',
    f = 'choose from the list of the files',
    q = 'end the review and take back what you marked; <C-c> takes nothing back',
  },
}

--- For the changes that the person has not answered yet, in rounds.
---@type co.review.Words
M.round = {
  open = 'y accepts · n takes it back',
  accepted = 'accepted when the review ends',
  edited = 'gets your text when the review ends',
  refused = 'is taken back when the review ends',
  write = ':w changes nothing: y accepts this change, q ends the review',
  reason = 'Take the rest back, because',
  keys = {
    y = 'accept this change, take it back',
    Y = 'accept the rest of the file, take it back; N asks for a reason',
    f = 'choose from the list of the files',
    q = 'end the review and carry your answers out; <C-c> keeps them for the next one',
  },
}

--- Returns the keys with what they do.
---@param words co.review.Words
---@return [string, string][]
function M.keys(words)
  local looks = {
    { ']c  [c', 'next, previous change' },
    { ']f  [f', 'next, previous file' },
    { 'f', words.keys.f },
    { '=', 'the text before and after the change, side by side' },
    { 'q', words.keys.q },
  }
  if words == M.whole then
    return looks
  end
  return {
    { ']c  [c', 'next, previous change' },
    { ']f  [f', 'next, previous file' },
    { 'f', words.keys.f },
    { 'y  n', words.keys.y },
    { 'Y  N', words.keys.Y },
    { 'A', 'as Y, for all files of the step: after each change was on the screen' },
    { 'e', 'write another text for this change' },
    { 'c', 'write a comment on this change for the model' },
    { 'u', 'take the answer to this change back' },
    { '=', 'the text before and after the change, side by side' },
    { 'q', words.keys.q },
  }
end

return M
