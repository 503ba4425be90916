---Where the output of an attempt is shown: in a window of its own, or in one that shows output already.
local address = require('promptside.address')
local buffers = require('promptside.buffers')
local message = require('promptside.message')
local settings = require('promptside.settings')
local stream = require('promptside.stream')
local tasks = require('promptside.tasks')

local M = {}

---The attempt of a task that began last.
---@param task promptside.TaskView
---@return string? stage
---@return integer? attempt
local function newest(task)
  local latest, stage, attempt = -1, nil, nil
  for _, one in ipairs(task.stages) do
    for _, run in ipairs(one.attempts) do
      local started = run.started or math.huge
      if started >= latest then
        latest, stage, attempt = started, one.id, run.n
      end
    end
  end
  return stage, attempt
end

---A window of this tab that shows output; with `there` not one in which another agent still writes.
local function window_of(project, task, there)
  for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    local shown = stream.of(vim.api.nvim_win_get_buf(win))
    local other = shown and not shown.ended and (shown.project ~= project or shown.task ~= task)
    if shown and not (there and other) then
      return win
    end
  end
end

---A window for it as the settings say.
local function split(name)
  local how = settings.get().output
  if how == 'vsplit' then
    buffers.edit(name, { vertical = true, split = 'belowright' })
  elseif how == 'tab' then
    buffers.edit(name, { tab = vim.fn.tabpagenr() })
  else
    local height = math.max(math.floor(vim.o.lines / 3), 5)
    vim.cmd(('belowright %dsplit %s'):format(height, vim.fn.fnameescape(name)))
  end
end

---Show the output of a task's newest attempt in a window of its own; the cursor goes there only where the person said
---where the window goes. With `there` only a window that shows output already is taken, and not from another agent that
---still writes in it.
---@param project string
---@param task integer
---@param options { mods?: table, there?: boolean }
function M.show(project, task, options)
  local view = tasks.get(project, task)
  local stage, attempt
  if view then
    stage, attempt = newest(view)
  end
  if not view or not stage or not attempt then
    return message.say('There is no output yet: no stage of this task has run.')
  end
  local name = address.output(view.project, task, stage, attempt)
  if options.mods then
    return buffers.edit(name, options.mods)
  end
  local there = window_of(view.project, task, options.there)
  if there then
    vim.api.nvim_win_call(there, function()
      buffers.edit(name)
    end)
  elseif not options.there then
    local before = vim.api.nvim_get_current_win()
    split(name)
    vim.api.nvim_set_current_win(before)
  end
end

return M
