--- Answers the backend's questions about the editor: its files, diagnostics, quickfix list and language servers.
local M = {}

local api = vim.api
local async = require('co.ui.async')
local backend = require('co.backend')
local diagnostics = require('co.buffers.diagnostics')
local disk = require('co.ui.file_text')
local last_window = require('co.ui.last_window')
local server_places = require('co.buffers.server_places')
local server_request = require('co.buffers.server_request')
local symbol_name = require('co.buffers.symbol_name')
local log = require('co.ui.log')
local workspace_edit = require('co.buffers.workspace_edit')

-- The longest time to wait for language servers, in seconds. A rename looks into all files.
local LONGEST, LONGEST_RENAME = 3, 10
-- The most entries of an answer, and the most bytes of the text of each.
local MOST, MOST_BYTES = 1000, 500
-- The most places of a name that language servers are asked about. Comments have no definition.
local MOST_PLACES = 8
-- Bytes of a name. All bytes beyond ASCII count.
local WORD = '[%w_\128-\255]'

--- A question to language servers. The topic `workspace` finds the symbols of that name anywhere. The name may be qualified, such as
--- `Type::method`.
---@class (exact) co.ServerQuery
---@field topic string
---@field file? string
---@field name? string
---@field line? integer
---@field new_name? string
---@field most? integer places

---@type table<string, string>
local METHODS = {
  symbols = 'textDocument/documentSymbol',
  definition = 'textDocument/definition',
  references = 'textDocument/references',
  rename = 'textDocument/rename',
  workspace = 'workspace/symbol',
}

---@param file string
---@param text string
---@param line? integer
---@param column? integer
---@return co.EditorEntry
local function entry(file, text, line, column)
  if #text > MOST_BYTES then
    -- A word is left out as a whole, since the backend would not know half of a secret.
    text = text:sub(1, MOST_BYTES):gsub('%S*$', '') .. '…'
  end
  return { file = vim.uv.fs_realpath(file) or file, line = line, column = column, text = text }
end

--- Returns an answer with an entry for each item, up to the limit.
---@generic T
---@param items T[]
---@param entry_of fun(item: T): co.EditorEntry
---@return co.EditorAnswer
local function bounded(items, entry_of)
  local more = math.max(#items - MOST, 0)
  return { entries = vim.tbl_map(entry_of, vim.list_slice(items, 1, MOST)), more = more }
end

--- Returns the words for a listed buffer: the place of the person in it, if they work there.
---@param buf integer
---@return string
local function description(buf)
  local words = 'open'
  if buf == last_window.buffer() then
    words = "the person's current file"
    local win = last_window.window()
    if win then
      local cursor = api.nvim_win_get_cursor(win)
      local first, last = vim.fn.line('w0', win), vim.fn.line('w$', win)
      local place = ', cursor at %d:%d, lines %d to %d visible'
      words = words .. place:format(cursor[1], cursor[2] + 1, first, last)
    end
  end
  return words .. (vim.bo[buf].modified and ', unsaved changes' or '')
end

---@type table<string, fun(): co.EditorAnswer>
local readers = {
  state = function()
    local current = last_window.buffer()
    local bufs = vim.tbl_filter(function(buf)
      local shown = vim.bo[buf].buflisted or buf == current
      return shown and vim.bo[buf].buftype == '' and api.nvim_buf_get_name(buf) ~= ''
    end, api.nvim_list_bufs())
    table.sort(bufs, function(one, other)
      return other ~= current and (one == current or one < other)
    end)
    return bounded(bufs, function(buf)
      return entry(api.nvim_buf_get_name(buf), description(buf))
    end)
  end,
  diagnostics = function()
    local found = vim.diagnostic.get()
    table.sort(found, function(one, other)
      if one.severity ~= other.severity then
        return one.severity < other.severity
      elseif one.bufnr ~= other.bufnr then
        return one.bufnr < other.bufnr
      end
      return one.lnum < other.lnum
    end)
    return bounded(found, function(item)
      local name = api.nvim_buf_get_name(assert(item.bufnr))
      return entry(name, diagnostics.words(item), item.lnum + 1, item.col + 1)
    end)
  end,
  quickfix = function()
    local items = vim.tbl_filter(function(item)
      return item.bufnr > 0
    end, vim.fn.getqflist())
    return bounded(items, function(item)
      return entry(api.nvim_buf_get_name(item.bufnr), item.text, item.lnum, item.col)
    end)
  end,
}

--- Returns the places of a name in a buffer: rows from 0, and the byte columns of its last word.
---@param buf integer
---@param name string
---@param line? integer the only line to look at, from 1
---@return [integer, integer][]
local function places_of(buf, name, line)
  local found = {}
  local first = line and line - 1 or 0
  local last_word = name:match(WORD .. '+$') or name
  for index, text in ipairs(api.nvim_buf_get_lines(buf, first, line or -1, false)) do
    local from, to = text:find(name, 1, true)
    while from and to and #found < MOST_PLACES do
      local joined = text:sub(from - 1, from - 1):find(WORD) or text:sub(to + 1, to + 1):find(WORD)
      if not joined then
        found[#found + 1] = { first + index - 1, to - #last_word }
      end
      from, to = text:find(name, to + 1, true)
    end
  end
  return found
end

--- Returns the result of a language server: places, symbols as entries of a quickfix list, or a rename as an answer.
---@param result any
---@param buf integer
---@param client vim.lsp.Client
---@param query co.ServerQuery
---@param ticks table<integer, integer> of the buffers when the backend asked
---@return table[]
local function items_of(result, buf, client, query, ticks)
  local topic = query.topic
  local encoding = client.offset_encoding --[[@as 'utf-8'|'utf-16'|'utf-32']]
  if topic == 'symbols' then
    local items = vim.lsp.util.symbols_to_items(result, buf, encoding)
    for _, item in ipairs(items) do
      local line, column = server_places.whole(item.lnum, item.col)
      assert(line > 0 and column > 0)
    end
    return items
  elseif topic == 'rename' then
    local files, problem = workspace_edit.file_edits(result, ticks)
    local known = problem or files and files[1]
    return known and { { files = files, unit = encoding, problem = problem } } or {}
  elseif topic == 'workspace' then
    -- Servers match parts of names too, and may leave the range out.
    result = vim.tbl_filter(function(symbol)
      return symbol_name.names(query.name or '', symbol) and symbol.location.range ~= nil
    end, result)
    result = vim.tbl_map(function(symbol)
      return symbol.location
    end, result)
  end
  return server_places.of(result, encoding)
end

--- Sends a request to each client and waits for all answers.
---@param clients vim.lsp.Client[]
---@param query co.ServerQuery
---@param buf integer
---@param place? [integer, integer]|string a place in the buffer, or the text of a search for symbols
---@param ticks table<integer, integer>
---@async
---@return table[] items
---@return string? why the problem of a language server
local function request(clients, query, buf, place, ticks)
  local answers = async.map(clients, function(client)
    local params = { textDocument = vim.lsp.util.make_text_document_params(buf) }
    if type(place) == 'string' then
      params = { query = place }
    elseif place then
      local encoding = client.offset_encoding --[[@as 'utf-8'|'utf-16'|'utf-32']]
      local character = vim.lsp.util.character_offset(buf, place[1], place[2], encoding)
      params.position = { line = place[1], character = character }
      params.context = query.topic == 'references' and { includeDeclaration = true } or nil
      params.newName = query.new_name
    end
    local problem, result = async.await(function(done)
      server_request.send(client, METHODS[query.topic], params, buf, done)
    end)
    local known = result and not problem
    return {
      items = known and items_of(result, buf, client, query, ticks) or {},
      problem = problem,
    }
  end, function(client, problem)
    -- The error names a line of co, which tells the person nothing.
    log.add('editor_query', ('%s: %s'):format(client.name, problem))
    return { items = {}, problem = ('the answer of %s cannot be read'):format(client.name) }
  end)
  local items, why = {}, nil
  for _, answer in ipairs(answers) do
    vim.list_extend(items, answer.items)
    why = answer.problem or why
  end
  return items, why
end

---@param client vim.lsp.Client
---@return vim.lsp.Client[]
local function single(client)
  return { client }
end

--- Asks the language servers of a file. Calls `done` within a few seconds.
---@param query co.ServerQuery
---@param done fun(answer: co.EditorAnswer)
function M.ask(query, done)
  local finished = false
  ---@param answer co.EditorAnswer
  local function finish(answer)
    if not finished then
      finished = true
      done(answer)
    end
  end
  local buf = disk.buffer(query.file or '')
  if not buf then
    return finish({ problem = 'it is not open in the editor' })
  end
  local clients = vim.lsp.get_clients({ bufnr = buf })
  if #clients == 0 then
    return finish({ problem = 'no language server is attached to it' })
  end
  clients = vim.lsp.get_clients({ bufnr = buf, method = METHODS[query.topic] })
  if #clients == 0 then
    return finish({ problem = 'its language server cannot tell ' .. query.topic })
  end
  local ticks = workspace_edit.ticks()
  ---@type ([integer, integer]|string)[]
  local places
  if query.topic == 'workspace' then
    places = symbol_name.searches(query.name or '')
  elseif query.name then
    places = places_of(buf, query.name, query.line)
    if #places == 0 then
      local where = query.line and ('line %d'):format(query.line) or 'it'
      return finish({ problem = ('the name does not stand in %s'):format(where) })
    end
  else
    places = {}
  end
  ---@type [vim.lsp.Client[], ([integer, integer]|string)?][]
  local attempts = {}
  for index = 1, math.max(#places, 1) do
    -- Two edits of a rename would not fit together.
    for _, some in ipairs(query.topic == 'rename' and vim.tbl_map(single, clients) or { clients }) do
      attempts[#attempts + 1] = { some, places[index] }
    end
  end
  async.run(function()
    ---@type table[], string?
    local items, why = {}, nil
    -- Asks about one place after the other until a language server knows something.
    for _, attempt in ipairs(attempts) do
      items, why = request(attempt[1], query, buf, attempt[2], ticks)
      if #items > 0 or finished then
        break
      end
    end
    if #items == 0 and why then
      finish({ problem = why })
    elseif query.topic == 'rename' then
      finish(items[1] or { problem = 'its language server knows nothing to rename there' })
    elseif query.topic == 'symbols' then
      finish(bounded(items, function(item)
        return entry(item.filename, item.text, item.lnum, item.col)
      end))
    else
      server_places.sort(items)
      local found = vim.list_slice(items, 1, query.most or MOST)
      finish({ places = found, more = #items - #found })
    end
  end)
  local seconds = query.topic == 'rename' and LONGEST_RENAME or LONGEST
  vim.defer_fn(function()
    finish({ problem = ('its language server did not answer within %d s'):format(seconds) })
  end, seconds * 1000)
end

--- Sends the answer to a question about the editor.
---@param query co.EditorQuery
function M.answer(query)
  ---@param answer co.EditorAnswer
  local function send(answer)
    answer.type, answer.request = 'editor_answer', query.request
    backend.send_if_running(answer)
  end
  local read = readers[query.topic]
  if read then
    send(read())
  else
    M.ask(query --[[@as co.ServerQuery]], send)
  end
end

return M
