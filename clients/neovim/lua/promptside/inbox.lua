---The list of tasks as it is read here: what a permission asks for stands below its task, whole.
local tasks = require('promptside.tasks')

local M = {}

---What a task asks to be allowed.
---@param line promptside.ours.PageLine
---@return promptside.DecisionView[]
local function asked(line)
  local task = line.page == 'task' and tasks.get(line.project, line.task)
  local waiting = task and task.waiting_for
  return vim.tbl_filter(function(decision)
    return decision.kind == 'permission'
  end, waiting and waiting.decisions or {})
end

---@param lines promptside.ours.PageLine[]
---@return promptside.ours.PageLine[]
function M.whole(lines)
  local found = {}
  for _, line in ipairs(lines) do
    found[#found + 1] = line
    for _, decision in ipairs(asked(line)) do
      local words = { { text = '      ' .. decision.text, role = 'waiting' } }
      found[#found + 1] = vim.tbl_extend('force', line, { spans = words })
    end
  end
  return found
end

return M
