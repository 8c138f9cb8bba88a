-- Calls co's sources as blink.cmp and nvim-cmp document it. `items` gives the items of one at the end of a line of a prompt.
-- `complete_with` shows them in a menu while the person types.
return [[
  local adapters = {
    blink = function(line)
      local source, found = require('co.blink').new({}, { name = 'co', module = 'co.blink' }), nil
      assert(source:enabled(), 'not enabled')
      local context = { line = line, cursor = { 1, #line }, bufnr = vim.api.nvim_get_current_buf() }
      source:get_completions(context, function(response)
        found = response.items
      end)
      return source, found
    end,
    cmp = function(line)
      local source, found = require('co.cmp'), nil
      assert(source:is_available(), 'not available')
      assert(source:get_position_encoding_kind() == 'utf-8')
      local context = { cursor_before_line = line, cursor = { row = 1, col = #line + 1 } }
      source:complete({ context = context, offset = 1, option = {} }, function(response)
        found = response.items
      end)
      return source, found
    end,
  }
  _G.items = function(adapter, line)
    local source, items = adapters[adapter](line)
    -- A plugin sorts by it where two items match as well.
    local order = vim.tbl_map(function(item) return item.sortText end, items)
    assert(vim.deep_equal(order, vim.fn.sort(vim.deepcopy(order))), 'not in order')
    return vim.tbl_map(function(item)
      local resolved
      source:resolve(vim.deepcopy(item), function(it) resolved = it end)
      local range = item.textEdit.range
      assert(range.start.line == 0 and range['end'].line == 0 and range['end'].character == #line)
      local documentation = resolved.documentation and resolved.documentation.value
      local about = item.labelDetails.description
      return { item.textEdit.newText, range.start.character, about, documentation or '' }
    end, items)
  end
  _G.complete_with = function(adapter)
    vim.o.completeopt = 'menuone,popup'
    vim.api.nvim_create_autocmd({ 'TextChangedI', 'TextChangedP' }, {
      callback = function()
        local column = vim.api.nvim_win_get_cursor(0)[2]
        local found = items(adapter, vim.api.nvim_get_current_line():sub(1, column))
        local entries = vim.tbl_map(function(item)
          return { word = item[1], menu = item[3], info = item[4] }
        end, found)
        if found[1] and found[1][1] ~= vim.v.completed_item.word then
          vim.fn.complete(found[1][2] + 1, entries)
        end
      end,
    })
  end
]]
