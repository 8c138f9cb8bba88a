--- Sends a request to a language server, and notices the end of the server.
local M = {}

local api = vim.api
local log = require('co.ui.log')
local printable = require('co.ui.printable')

--- Returns the words for an error of a language server.
---@param problem any the server may not keep to the protocol
---@return string
local function words(problem)
  local message = type(problem) == 'table' and problem.message or problem
  if type(message) ~= 'string' then
    return 'its language server answered with an error'
  end
  message = printable.trim(message:gsub('%s+', ' ')):gsub('%.$', '')
  return 'its language server answered with an error: ' .. message
end

--- Sends a request about a buffer. Calls `done` once: with the result, or with a problem in a sentence.
---@param client vim.lsp.Client
---@param method string
---@param params table
---@param buf integer
---@param done fun(problem?: string, result?: any)
function M.send(client, method, params, buf, done)
  local detached ---@type integer?
  local finished = false
  ---@param problem? string
  ---@param result? any
  local function finish(problem, result)
    if finished then
      return
    end
    finished = true
    if detached then
      api.nvim_del_autocmd(detached)
    end
    if problem then
      log.add('editor_query', ('%s: %s'):format(client.name, problem))
    end
    done(problem, result)
  end
  -- Neovim drops the callbacks of a language server that ends.
  detached = api.nvim_create_autocmd('LspDetach', {
    buffer = buf,
    callback = function(event)
      if event.data.client_id == client.id then
        finish('its language server has ended')
      end
    end,
  })
  local function answered(problem, result)
    finish(problem and words(problem), result)
  end
  local sent
  if vim.fn.has('nvim-0.11') == 1 then
    sent = client:request(method, params, answered, buf)
  else
    ---@diagnostic disable-next-line: param-type-mismatch
    sent = client.request(method, params, answered, buf)
  end
  if not sent then
    finish('its language server has ended')
  end
end

return M
