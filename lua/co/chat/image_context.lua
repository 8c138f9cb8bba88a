--- The context `@clipboard`, which may be an image.
local M = {}

-- The most bytes of an image. In base64 it has a third more, and Anthropic refuses images of more than 5 MiB.
local LARGEST = 3840 * 1024

-- The time-out in milliseconds of the program that reads the clipboard. It may have to wait for the program that owns
-- the clipboard.
local LONGEST_MS = 3000

--- Returns the type of an image that begins with these bytes; nil for anything else.
---@param bytes string
---@return string?
local function media_type(bytes)
  if vim.startswith(bytes, '\137PNG\r\n\26\n') then
    return 'image/png'
  elseif vim.startswith(bytes, '\255\216\255') then
    return 'image/jpeg'
  elseif bytes:match('^GIF8[79]a') then
    return 'image/gif'
  elseif bytes:match('^RIFF....WEBP') then
    return 'image/webp'
  end
end

--- Returns an image as a context; nil if the bytes are no image.
---@param name string
---@param bytes string
---@return co.Context?
---@return string? missing
local function context(name, bytes)
  local kind = media_type(bytes)
  if not kind then
    return nil
  elseif #bytes > LARGEST then
    return nil, 'the image is larger than 3.75 MiB'
  end
  return { name = name, text = '', image = { media_type = kind, data = vim.base64.encode(bytes) } }
end

--- Returns the image or the text of the clipboard.
---@return co.Context?
---@return string? missing
function M.clipboard()
  local commands = {
    vim.env.WAYLAND_DISPLAY and { 'wl-paste', '--type', 'image/png' },
    vim.env.DISPLAY and { 'xclip', '-selection', 'clipboard', '-target', 'image/png', '-out' },
  }
  for _, command in pairs(commands) do
    local started, process = pcall(vim.system, command, { timeout = LONGEST_MS })
    local result = started and process:wait()
    if result and result.code == 0 then
      local found, missing = context('@clipboard', result.stdout or '')
      if found or missing then
        return found, missing
      end
    end
  end
  local text = vim.fn.getreg('+') --[[@as string]]
  if text == '' then
    return nil, 'it is empty, or Neovim cannot read it'
  end
  return { name = '@clipboard', text = text }
end

return M
