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
