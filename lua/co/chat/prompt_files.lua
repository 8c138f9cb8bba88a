--- Prompt files: `.co/prompts/NAME.md` of the workspace, and those of the person, are the slash command `/NAME`.
---
--- The backend asks the person before it sends the text of a file of the workspace.
local M = {}

local disk = require('co.ui.file_text')
local printable = require('co.ui.printable')
local utf8 = require('co.ui.utf8')

-- The most bytes of a file.
local LONGEST = 64 * 1024

---@class (exact) co.PromptFile
---@field name string of its slash command, without the slash
---@field path string
---@field personal boolean it is one of the person's own, which needs no trust
---@field text string
---@field problem? string why it cannot be used

---@class (exact) co.PromptFileParts
---@field body string the text without its header
---@field about string a line that describes it
---@field arguments? string a hint at its arguments

--- Returns the directories of prompt files. If two directories have a file with the same name, the last directory wins.
---@param cwd string
---@return { path: string, personal: boolean }[]
local function directories(cwd)
  -- The same for each NVIM_APPNAME, like the other files of co.
  local config = vim.fs.dirname(vim.fn.stdpath('config') --[[@as string]])
  ---@type { path: string, personal: boolean }[]
  local found = { { path = config .. '/co-nvim/prompts', personal = true } }
  -- If the directory no longer exists, its name is empty.
  if cwd ~= '' then
    local workspace = vim.fs.root(cwd, '.git') or cwd
    found[2] = { path = workspace .. '/.co/prompts', personal = false }
  end
  return found
end

--- Reads a prompt file; nil if there is none.
---@param name string
---@param path string
---@param personal boolean
---@return co.PromptFile?
local function read(name, path, personal)
  local text = disk.read(path, LONGEST + 1)
  if not text then
    return nil
  end
  local problem = #text > LONGEST and 'it is larger than 64 KiB'
    or not utf8.valid(text .. path) and 'it is not all UTF-8'
    or nil
  return { name = name, path = path, personal = personal, text = text, problem = problem }
end

--- Returns the prompt file of a slash command.
---@param name string
---@param cwd string
---@return co.PromptFile?
function M.get(name, cwd)
  local found
  if name:match('^[%w_-]+$') then
    for _, dir in ipairs(directories(cwd)) do
      found = read(name, ('%s/%s.md'):format(dir.path, name), dir.personal) or found
    end
  end
  return found
end

-- The files and directories that completion has read, by their paths. Completion asks for them again at each key.
---@type table<string, { stamp: string, value: any }>
local known = {}

--- Returns the result of `look` for a file or a directory; nil if the path does not exist. Uses the earlier result if
--- the file or the directory has not changed.
---@generic T
---@param path string
---@param look fun(path: string): T
---@return T?
local function remembered(path, look)
  local stat = vim.uv.fs_stat(path)--[[@as any]]
  if not stat then
    return nil
  end
  local stamp = ('%d.%d %d'):format(stat.mtime.sec, stat.mtime.nsec, stat.size)
  local entry = known[path]
  if not entry or entry.stamp ~= stamp then
    entry = { stamp = stamp, value = look(path) }
    -- A change that follows at once may get the same time.
    known[path] = os.time() - stat.mtime.sec > 2 and entry or nil
  end
  return entry.value
end

--- Returns the names of all prompt files, some of them twice.
---@param cwd string
---@return string[]
function M.names(cwd)
  local found = {}
  for _, dir in ipairs(directories(cwd)) do
    local names = remembered(dir.path, function(path)
      local names = {}
      for file in vim.fs.dir(path) do
        local readable = vim.fn.filereadable(path .. '/' .. file) == 1
        names[#names + 1] = readable and file:match('^([%w_-]+)%.md$') or nil
      end
      return names
    end)
    vim.list_extend(found, names or {})
  end
  return found
end

--- Divides the text of a prompt file. A header between lines `---` may hold `description` and `argument-hint`.
---@param text string
---@return co.PromptFileParts
function M.parts(text)
  text = text:gsub('\r\n', '\n') .. '\n'
  local start, rest = text:match('^(%-%-%-[ \t]*)(\n.*)$')
  local header, body = (start and rest or ''):match('^(.-)\n%-%-%-[ \t]*\n(.*)$')
  ---@param key string
  ---@return string?
  local function value(key)
    local line = ('\n' .. (header or '')):match('\n' .. vim.pesc(key) .. ':[ \t]*([^\n]*)')
    line = line and printable.trim(line):gsub('^(["\'])(.*)%1$', '%2')
    return line ~= '' and line or nil
  end
  body = printable.trim(body or text)
  local first = vim.split(body, '\n', { plain = true })[1]:gsub('^#+%s*', '')
  return { body = body, about = value('description') or first, arguments = value('argument-hint') }
end

--- Returns a few words about the prompt file of a slash command, for completion; nil if there is none.
---@param name string
---@param cwd string
---@return string?
function M.about(name, cwd)
  local found
  for _, dir in ipairs(directories(cwd)) do
    found = remembered(('%s/%s.md'):format(dir.path, name), function(path)
      local file = read(name, path, dir.personal)
      local parts = file and M.parts(file.text)
      if parts and parts.arguments then
        return ('%s · %s'):format(parts.arguments, parts.about)
      end
      return parts and parts.about
    end) or found
  end
  return found
end

--- Returns the words of the arguments. Quotes hold a word with blanks together.
---@param args string
---@return string[]
function M.words(args)
  local found = {}
  local rest = printable.trim(args)
  while rest ~= '' do
    local word, after = rest:match('^"([^"]*)"%s*(.*)$')
    if not word then
      word, after = rest:match("^'([^']*)'%s*(.*)$")
    end
    if not word then
      word, after = rest:match('^(%S+)%s*(.*)$')
    end
    found[#found + 1] = word
    rest = after --[[@as string]]
  end
  return found
end

--- Returns the text of the prompt with the arguments. `$ARGUMENTS` stands for all arguments, and `$1` to `$9` for one
--- argument each. If the text has no such placeholder, adds the arguments at its end.
---@param text string of the file
---@param args string
---@return string
function M.fill(text, args)
  local body = M.parts(text).body
  local each = M.words(args)
  local used = false
  -- One pass, so that no argument is read as a placeholder.
  local filled = body:gsub('%$(%w+)', function(name)
    local number = name:match('^[1-9]$') and tonumber(name) --[[@as integer?]]
    if name ~= 'ARGUMENTS' and not number then
      return nil
    end
    used = true
    return number and (each[number] or '') or args
  end)
  if not used and args ~= '' then
    filled = filled .. '\n\n' .. args
  end
  return printable.trim(filled)
end

return M
