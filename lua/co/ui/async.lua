--- Straight code that waits for callbacks. Each task is a coroutine.
local M = {}

-- The function that is called at the end of each task.
---@type table<thread, fun(ok: boolean, ...: any)>
local on_end = setmetatable({}, { __mode = 'k' })

--- Lets a task go on until it waits or ends.
---@param task thread
local function resume(task)
  local results = vim.F.pack_len(coroutine.resume(task))
  if coroutine.status(task) == 'dead' then
    local ended = on_end[task]
    on_end[task] = nil
    ended(vim.F.unpack_len(results))
  end
end

--- Starts a task.
---@param body async fun(): ...any
---@param ended fun(ok: boolean, ...: any) gets what `pcall` would return
local function start(body, ended)
  local task = coroutine.create(body)
  on_end[task] = ended
  resume(task)
end

--- Runs a function that may wait. It throws an error where the function went on last.
---@param body async fun()
function M.run(body)
  start(body, function(ok, problem)
    if not ok then
      error(problem, 0)
    end
  end)
end

--- Calls a function with a callback, waits until it calls this callback, and returns what the callback got.
---@async
---@param call fun(done: fun(...: any))
---@return any ...
function M.await(call)
  local task = assert(coroutine.running())
  local results, waits = nil, false
  call(function(...)
    assert(not results, 'a callback was called twice')
    results = vim.F.pack_len(...)
    if waits then
      resume(task)
    end
  end)
  if not results then
    waits = true
    coroutine.yield()
  end
  return vim.F.unpack_len(results)
end

--- Calls a function for each item, which all wait at the same time. Returns the results in the order of the items.
---@async
---@generic T, R
---@param items T[]
---@param each async fun(item: T): R
---@param failed fun(item: T, problem: string): R returns the result for an item whose function throws an error
---@return R[]
function M.map(items, each, failed)
  local results, open = {}, #items
  if open == 0 then
    return results
  end
  return M.await(function(done)
    for index, item in ipairs(items) do
      start(function()
        return each(item)
      end, function(ok, result)
        results[index] = ok and result or failed(item, tostring(result))
        open = open - 1
        if open == 0 then
          done(results)
        end
      end)
    end
  end)
end

return M
