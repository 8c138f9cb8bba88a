--- Messages of the backend, with what does not matter filled in.
local M = {}

---@param id integer
---@param fields? table
---@return table
function M.ask(id, fields)
  return vim.tbl_extend('force', {
    type = 'question',
    id = id,
    chat = 1,
    command = 'touch file' .. id,
    cwd = '/tmp',
    confinement = 'unconfined',
    reasons = { 'it writes' },
    destructive = false,
  }, fields or {})
end

--- A question whether a file is trusted.
---@param id integer
---@param fields? table
---@return table
function M.trust(id, fields)
  return vim.tbl_extend('force', {
    type = 'trust',
    id = id,
    name = 'AGENTS.md',
    path = '/srv/work/AGENTS.md',
    size = 2150,
    text = 'Use tabs.\n',
    notes = {},
  }, fields or {})
end

---@param name string
---@param fields? table
---@return co.State
function M.state(name, fields)
  return vim.tbl_extend('force', {
    type = 'state',
    chat = 1,
    state = name,
    detail = '',
    model = 'model-x',
    cwd = '/tmp',
    confinement = 'unconfined',
    input = 0,
    output = 0,
    queued = 0,
    taken_prompts = 0,
  }, fields or {}) --[[@as co.State]]
end

---@param from integer
---@param lines string[]
---@param fields? table
---@return table
function M.patch(from, lines, fields)
  return vim.tbl_extend(
    'force',
    { skipped = 0, from = from, lines = lines, styles = {} },
    fields or {}
  )
end

--- A change of a question: without files for a review.
---@param fields? table
---@return table
function M.change(fields)
  return vim.tbl_extend(
    'force',
    { unsaved = false, added = 1, removed = 1, facts = {}, excerpt = '', more = 0, files = {} },
    fields or {}
  )
end

--- A file of a change, for a review.
---@param path string
---@param text string each line begins with its mark; `@` begins a part
---@param fields? table
---@return table
function M.file(path, text, fields)
  local _, parts = ('\n' .. text):gsub('\n@\n', '\n\n')
  return vim.tbl_extend(
    'force',
    { path = path, added = 1, removed = 1, parts = parts, text = text, more = false },
    fields or {}
  )
end

--- The messages that begin at rows.
---@param ... integer
---@return table[]
function M.begun(...)
  return vim.tbl_map(function(row)
    return { row = row }
  end, { ... })
end

---@param text string
---@return table
function M.append(text)
  return { type = 'append', chat = 1, text = text }
end

--- Output of a command in a chat.
---@param id integer
---@param patch table?
---@param done boolean
---@return table
function M.block(id, patch, done)
  return { type = 'block', chat = 1, block = id, patch = patch, done = done }
end

--- A call of a chat.
---@param id integer
---@param text string
---@param fields? table
---@return table
function M.call(id, text, fields)
  return vim.tbl_extend('force', {
    type = 'call',
    chat = 1,
    call = id,
    state = 'runs',
    text = text,
    details = '',
    lead = {},
    remarks = {},
    whole = false,
    diff = false,
  }, fields or {})
end

--- A job that a model started.
---@param run integer
---@param job integer
---@param command string
---@return table
function M.job(run, job, command)
  return {
    type = 'run_started',
    run = run,
    command = command,
    cwd = '/tmp',
    owner = { chat = 1, job = job, terminal = false },
  }
end

---@param run integer
---@param patch table
---@return table
function M.output(run, patch)
  return { type = 'run_output', run = run, patch = patch }
end

---@param run integer
---@param exit integer
---@return table
function M.ended(run, exit)
  return {
    type = 'run_ended',
    run = run,
    status = 'exit ' .. exit .. ' · 0.1 s · 1 line',
    exit = exit,
  }
end

return M
