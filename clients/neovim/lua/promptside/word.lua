---The word of the person's that a stage takes before it is run, or none.
local tasks = require('promptside.tasks')

local M = {}

local function waits(task)
  return task.waiting_for ~= nil and task.waiting_for.kind == 'input'
end

---Ask for it where a stage takes one and none was given; `send` gets the arguments with it. Whether it is asked for.
---@param args table Of a run.
---@param send fun(args: table)
---@return boolean
function M.asked(args, send)
  if args.input ~= nil then
    return false
  end
  local found = args.task and { tasks.get(args.project or '', args.task) }
    or vim.tbl_filter(waits, tasks.list())
  local task = #found == 1 and found[1] or nil
  local stage = task and waits(task) and tasks.stage(task, task.current)
  if not task or not stage then
    return false
  end
  vim.ui.input({ prompt = ('What should %s know? (may be empty) '):format(stage.name) }, function(text)
    if text then
      local more = { project = task.project, task = task.id, input = vim.trim(text) }
      send(vim.tbl_extend('force', args, more))
    end
  end)
  return true
end

return M
