--- The context `@lsp:Symbol`: the definitions of a name and the references to it, by the person's language servers.
local M = {}

local api = vim.api
local disk = require('co.ui.file_text')
local editor_query = require('co.buffers.editor_query')
local last_window = require('co.ui.last_window')

-- The most definitions, the most lines of each, and the most references.
local DEFINITIONS, LINES, REFERENCES = 5, 40, 50
-- The most bytes of a file that is not open.
local LONGEST = 4 * 1024 * 1024

--- Returns a path for the model.
---@param file string
---@return string
local function short(file)
  return vim.fn.fnamemodify(file, ':.')
end

--- Returns a line for the backend, which leaves out those of secret files. A NUL is after the name and the number.
---@param file string
---@param line integer
---@param text string
---@return string
local function line_of(file, line, text)
  return ('%s\0%d\0%s\n'):format(short(file), line, text)
end

--- Gives the first lines of each definition, and the names of the files that cannot be read.
---@param definitions co.EditorEntry[]
---@param done fun(lines: string[], unread: string[])
local function read(definitions, done)
  local found, unread, index = {}, {}, 0
  local function next_definition()
    index = index + 1
    local at = definitions[index]
    if not at then
      return done(found, unread)
    end
    disk.read_lines(at.file, LONGEST, function(lines)
      local first = at.line or 1
      local some = lines and lines(first - 1, first - 1 + LINES) or {}
      for offset, text in ipairs(some) do
        found[#found + 1] = line_of(at.file, first + offset - 1, text)
      end
      if #some == 0 then
        unread[#unread + 1] = short(at.file)
      end
      next_definition()
    end)
  end
  next_definition()
end

--- Gives the definitions of a name, and the references to it if the name stands in the buffer of the last window.
---@param name string
---@param done fun(context?: co.Context, missing?: string)
function M.symbol(name, done)
  local file = disk.resolve(api.nvim_buf_get_name(last_window.buffer()))
  ---@param topic string
  ---@param most integer
  ---@param next fun(answer: co.EditorAnswer)
  local function ask(topic, most, next)
    editor_query.ask({ topic = topic, file = file, name = name, most = most }, next)
  end
  ---@param definitions co.EditorEntry[]
  local function finish(definitions)
    read(definitions, function(lines, unread)
      ask('references', REFERENCES, function(answer)
        local references = answer.entries or {}
        local left_out = table.concat(unread, ', ')
        if #lines == 0 and #references == 0 then
          return done(nil, left_out .. ' cannot be read')
        end
        local about = { '@lsp:' .. name }
        if #unread > 0 then
          about[#about + 1] = ('(cannot be read: %s)'):format(left_out)
        end
        if #references > 0 then
          lines[#lines + 1] = 'References:\n'
        end
        for _, at in ipairs(references) do
          lines[#lines + 1] = line_of(at.file, at.line, at.text)
        end
        if (answer.more or 0) > 0 then
          about[#about + 1] = ('(references left out: %d)'):format(answer.more)
        end
        done({ name = table.concat(about, ' '), text = table.concat(lines) })
      end)
    end)
  end
  ask('definition', DEFINITIONS, function(here)
    if here.entries and #here.entries > 0 then
      return finish(here.entries)
    end
    ask('workspace', DEFINITIONS, function(anywhere)
      if anywhere.entries and #anywhere.entries > 0 then
        return finish(anywhere.entries)
      end
      done(nil, here.problem or anywhere.problem or 'its language server knows no such name')
    end)
  end)
end

return M
