--- A server for HTTP on 127.0.0.1 that ends with the test.
local M = {}

---@diagnostic disable: undefined-field, type-not-found, missing-parameter, need-check-nil, assign-type-mismatch -- the checker knows little of libuv

---@class (exact) co.test.Server
---@field port integer
---@field files table<string, string> the body for each path; another path is not found
---@field short table<string, integer> paths of which only so many bytes are sent
---@field hold table<string, true> paths whose requests wait
---@field held table<string, fun()> answers the request for the path that waits
---@field requests string[] the paths that were asked for

---@param server co.test.Server
---@param path string
---@return string
local function response(server, path)
  local body = server.files[path]
  if not body then
    return 'HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'
  end
  local head = 'HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n'
  return head:format(#body) .. body:sub(1, server.short[path] or #body)
end

---@param server co.test.Server
---@param client uv.uv_tcp_t
local function serve(server, client)
  local request = ''
  client:read_start(function(_, data)
    request = request .. (data or '')
    local path = request:match('^GET (%S+) .*\r\n\r\n$')
    if not path then
      return
    end
    client:read_stop()
    server.requests[#server.requests + 1] = path
    local function answer()
      client:write(response(server, path), function()
        client:close()
      end)
    end
    if server.hold[path] then
      server.held[path] = answer
    else
      answer()
    end
  end)
end

--- Starts a server.
---@return co.test.Server
function M.start()
  local socket = assert(vim.uv.new_tcp())
  assert(socket:bind('127.0.0.1', 0))
  ---@type co.test.Server
  local server = {
    port = assert(socket:getsockname()).port,
    files = {},
    short = {},
    hold = {},
    held = {},
    requests = {},
  }
  assert(socket:listen(8, function()
    local client = assert(vim.uv.new_tcp())
    socket:accept(client)
    serve(server, client)
  end))
  defer(function()
    socket:close()
  end)
  return server
end

return M
