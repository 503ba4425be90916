---The task that a command is about: named, or of the current buffer, or the only one that can be meant; else asked for.
local address = require('promptside.address')
local ask = require('promptside.ask')
local client = require('promptside.client')
local message = require('promptside.message')
local tasks = require('promptside.tasks')

local M = {}

---The task that the current buffer is about, where it is a buffer of ours.
---@return { project?: string, task?: integer }
function M.here()
  local buf = vim.api.nvim_get_current_buf()
  local found = address.parse(vim.api.nvim_buf_get_name(buf))
  local here
  if found and found.kind == 'page' then
    here = require('promptside.page').target()
  elseif found and found.kind == 'output' then
    here = require('promptside.stream').of(buf)
  elseif found and found.task > 0 then
    here = found
  end
  if not here then
    return {}
  end
  return { project = here.project ~= '' and here.project or nil, task = here.task }
end

---Have a verb wait until the server is there: before, no task is known here.
---@param run fun(call: promptside.Call)
---@return fun(call: promptside.Call)
function M.known(run)
  return function(call)
    client.ready(function()
      if #tasks.list() > 0 then
        return run(call)
      end
      client.request('promptside/query', { type = 'tasks', project = '' }, function(err, views)
        for _, view in ipairs(not err and views or {}) do
          if not tasks.get(view.project, view.id) then
            tasks.put({ project = view.project, seq = view.seq, task = view })
          end
        end
        run(call)
      end)
    end)
  end
end

---The task that is meant, as far as it can be told here; else the person is asked.
---@param call promptside.Call
---@param fits fun(task: promptside.TaskView): boolean
---@param nothing string What is said where none fits.
---@param take fun(task: promptside.TaskView)
function M.with(call, fits, nothing, take)
  local number = call.target.task
  if number then
    local task = tasks.get(call.target.project or '', number)
    if task then
      return take(task)
    end
    return message.say(('There is no task %d.'):format(number), 'warning')
  end
  local uri = call.place.uri or ''
  local owner = tasks.owner(vim.startswith(uri, 'file:') and vim.uri_to_fname(uri) or '')
  if owner then
    return take(owner)
  end
  local found = vim.tbl_filter(fits, tasks.list())
  if #found == 0 then
    return message.say(nothing, 'warning')
  elseif #found == 1 then
    return take(found[1])
  end
  ask.pick('Which task do you mean? ', found, function(task)
    return ('%d %s'):format(task.id, task.title)
  end, take)
end

---Tasks that something is offered for.
---@param tag string
---@return fun(task: promptside.TaskView): boolean
function M.offering(tag)
  return function(task)
    local offer = tasks.offer(task, tag)
    return offer ~= nil and not offer.blocked
  end
end

---Tasks that are not put away.
---@param task promptside.TaskView
function M.open(task)
  return task.state ~= 'archived'
end

---Tasks of which some stage has run.
---@param task promptside.TaskView
function M.attempted(task)
  for _, stage in ipairs(task.stages) do
    if #stage.attempts > 0 then
      return true
    end
  end
  return false
end

return M
