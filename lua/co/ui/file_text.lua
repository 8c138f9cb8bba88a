--- Files on disk and the buffers that hold them.
local M = {}

local api = vim.api

--- Returns the content of a regular file, at most `most` bytes; nil if it cannot be read.
---@param path string
---@param most? integer
---@return string?
function M.read(path, most)
  local stat = path ~= '' and vim.uv.fs_stat(path)
  -- Opening a FIFO would block Neovim.
  local handle = stat and stat.type == 'file' and io.open(path, 'rb')
  if not handle then
    return nil
  end
  local bytes = handle:read(most or '*a') or ''
  handle:close()
  return bytes
end

--- Returns a path without symbolic links, or as it is if they lead in a circle.
---@param path string
---@return string
function M.resolve(path)
  local ok, real = pcall(vim.fn.resolve, path)
  return ok and real or path
end

--- Returns the loaded buffer of a file. Symbolic links to the file count.
---@param path string absolute
---@return integer?
function M.buffer(path)
  local real = M.resolve(path)
  for _, buf in ipairs(api.nvim_list_bufs()) do
    if api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == '' then
      local name = api.nvim_buf_get_name(buf)
      if name == path or name ~= '' and M.resolve(name) == real then
        return buf
      end
    end
  end
end

--- Returns lines of a file. Rows count from 0; the last one is left out.
---@alias co.LineReader fun(first: integer, last: integer): string[]

--- Returns a reader of the lines of a text. It goes on from the lines before, so that many places take one pass.
---@param text string
---@return co.LineReader
local function line_reader(text)
  -- A row, and the byte at which it starts.
  local row, at = 0, 1
  return function(first, last)
    if row > first then
      row, at = 0, 1
    end
    while row < first and at <= #text do
      row, at = row + 1, (text:find('\n', at, true) or #text) + 1
    end
    local lines, from = {}, at
    while row + #lines < last and from <= #text do
      local stop = text:find('\n', from, true) or #text + 1
      lines[#lines + 1] = (text:sub(from, stop - 1):gsub('\r$', ''))
      from = stop + 1
    end
    return lines
  end
end

--- Gives the lines of a file as the editor has them; nil if it cannot be read. Neovim does not wait for the disk.
---@param path string absolute
---@param most integer bytes of a file that is not open
---@param done fun(lines?: co.LineReader)
function M.read_lines(path, most, done)
  local open = M.buffer(path)
  if open then
    return done(function(first, last)
      return api.nvim_buf_get_lines(open, first, last, false)
    end)
  end
  local finish = vim.schedule_wrap(function(bytes)
    done(bytes and line_reader(bytes))
  end)
  local stat = vim.uv.fs_stat(path)
  -- Opening a FIFO would not end.
  if not stat or stat.type ~= 'file' then
    return finish(nil)
  end
  vim.uv.fs_open(path, 'r', 0, function(_, file)
    if not file then
      return finish(nil)
    end
    vim.uv.fs_read(file, most, 0, function(_, bytes)
      vim.uv.fs_close(file)
      finish(bytes)
    end)
  end)
end

--- Returns the saved text of a buffer, decoded with the options of the buffer.
---@param buf integer
---@return string
function M.saved(buf)
  local bytes = M.read(api.nvim_buf_get_name(buf)) or ''
  local options = vim.bo[buf]
  local encoding = options.fileencoding
  if encoding ~= '' and encoding ~= 'utf-8' then
    bytes = vim.iconv(bytes, encoding, 'utf-8') or bytes
  end
  if options.bomb then
    bytes = bytes:gsub('^\239\187\191', '')
  end
  if options.fileformat ~= 'unix' then
    bytes = bytes:gsub(options.fileformat == 'dos' and '\r\n' or '\r', '\n')
  end
  return bytes
end

--- Returns whether a buffer has no text, not even an empty line that ends.
---@param buf integer
---@return boolean
function M.is_empty(buf)
  if api.nvim_buf_line_count(buf) > 1 or api.nvim_buf_get_lines(buf, 0, 1, true)[1] ~= '' then
    return false
  end
  -- `nvim_buf_get_offset` does not tell an empty line from none.
  return not vim.bo[buf].endofline
    or api.nvim_buf_call(buf, function()
      return vim.fn.wordcount().bytes == 0
    end)
end

--- Returns the text of a buffer in the same form as `saved`.
---@param buf integer
---@return string
function M.unsaved(buf)
  if M.is_empty(buf) then
    return ''
  end
  local text = table.concat(api.nvim_buf_get_lines(buf, 0, -1, false), '\n')
  return text .. (vim.bo[buf].endofline and '\n' or '')
end

return M
