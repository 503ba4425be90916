---Seeing a whole pipeline without an agent: as a task that a recording plays, or as the terminal's demo.
local order = require('promptside.order')

local M = {}

---The task that the recording was made of, by the headings of a draft.
local RECORDED = {
  { '## Title', 'Leave common words out of the list' },
  {
    '## Description',
    'The first ten words of almost any English text are “the”, “and”, “of”, “to”. '
      .. 'Let me name words that wordcount leaves out.',
  },
}

---Write below a heading.
local function write_below(buf, heading, text)
  local lines = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  for row, line in ipairs(lines) do
    if vim.startswith(line, heading) then
      vim.api.nvim_buf_set_lines(buf, row, row, false, { '', text })
      return
    end
  end
end

---`:Promptside rehearse`: a new task as the person would write it, with the agent that plays the recording.
---@param call promptside.Call
function M.begin(call)
  order.give('promptside.newTask', { agent = 'rehearsal:standard' }, {
    mods = call.mods,
    done = function(draft)
      local buf = vim.uri_to_bufnr(draft.uri)
      vim.fn.bufload(buf)
      for _, part in ipairs(RECORDED) do
        write_below(buf, part[1], part[2])
      end
      vim.api.nvim_buf_call(buf, function()
        vim.cmd('silent! lockmarks write')
      end)
      require('promptside.lenses').ask(buf)
    end,
  })
end

---`:Promptside demo`
---@param call promptside.Call
function M.demo(call)
  require('promptside.terminal').run({ 'demo' }, { mods = call.mods })
end

return M
