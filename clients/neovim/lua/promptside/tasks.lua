---Every task as the server told it last, and what of it a status line shows; nothing is asked for, nothing decided.
local message = require('promptside.message')

local M = {}

---@type table<string, table<integer, promptside.TaskView>>
local all = {}
local daemon = { up = true, sentence = '' }
local began = os.time()
---@type table<string, boolean>
local said = {}
---What tasks waited for when the person was told what came of their last order.
---@type table<string, string>
local ordered = {}
---@type { done: fun(task: promptside.TaskView): boolean? }[]
local listeners = {}
local status = { waiting = 0, running = 0, failed = 0, daemon = false }
local announced = false

local function key(project, task)
  return project .. '\n' .. task
end

---What a task is known by, among those of all projects.
---@param task promptside.TaskView
---@return string
function M.key(task)
  return key(task.project, task.id)
end

---The attempt of a task that runs.
---@param task promptside.TaskView
---@return promptside.StageView?, promptside.AttemptView?
function M.running(task)
  for _, stage in ipairs(task.stages) do
    local last = stage.attempts[#stage.attempts]
    if last and last.status == 'running' then
      return stage, last
    end
  end
end

---A stage by its id.
---@param task promptside.TaskView
---@param id string?
---@return promptside.StageView?
function M.stage(task, id)
  for _, stage in ipairs(task.stages) do
    if stage.id == id then
      return stage
    end
  end
end

---The stages before the one that a task is at.
---@param task promptside.TaskView
---@return promptside.StageView[]
function M.earlier(task)
  local found = {}
  for _, stage in ipairs(task.stages) do
    if stage.id == task.current then
      break
    end
    found[#found + 1] = stage
  end
  return found
end

---What is offered for a task by this command, possible now or not.
---@param task promptside.TaskView
---@param tag string
---@return promptside.Offer?
function M.offer(task, tag)
  local blocked
  for _, offer in ipairs(task.offers) do
    if offer.command == 'promptside.' .. tag then
      if not offer.blocked then
        return offer
      end
      blocked = blocked or offer
    end
  end
  return blocked
end

---All tasks, the newest first.
---@return promptside.TaskView[]
function M.list()
  local found = {}
  for _, tasks in pairs(all) do
    vim.list_extend(found, vim.tbl_values(tasks))
  end
  table.sort(found, function(a, b)
    return a.id > b.id or (a.id == b.id and a.project < b.project)
  end)
  return found
end

---The tasks of a number, one for each project that has it.
---@param number integer
---@return promptside.TaskView[]
function M.numbered(number)
  return vim.tbl_filter(function(task)
    return task.id == number
  end, M.list())
end

---A task; without a project the only one of its number.
---@param project string
---@param number integer
---@return promptside.TaskView?
function M.get(project, number)
  if project ~= '' then
    return (all[project] or {})[number]
  end
  local found = M.numbered(number)
  return #found == 1 and found[1] or nil
end

---The task that a file belongs to.
---@param path string
---@return promptside.TaskView?
function M.owner(path)
  for _, task in ipairs(M.list()) do
    local directory = vim.fs.joinpath(task.project, task.directory) .. '/'
    if vim.startswith(path, directory) then
      return task
    end
  end
end

---The task whose own document this is, where it waits without one for its answer: its page has the answers.
---@param uri string
---@return promptside.TaskView?
function M.undocumented(uri)
  local path = vim.startswith(uri, 'file:') and vim.uri_to_fname(uri) or ''
  local task = vim.fs.basename(path) == 'task.md' and M.owner(path) or nil
  local waiting = task and task.waiting_for
  return waiting and not waiting.document and task or nil
end

---Be told of each change of a task, until true is answered.
---@param listener fun(task: promptside.TaskView): boolean?
function M.listen(listener)
  listeners[#listeners + 1] = { done = listener }
end

---Why what is shown may be old; empty while it is live.
---@return string
function M.away()
  return daemon.up and '' or daemon.sentence
end

local function publish()
  local now = { waiting = 0, running = 0, failed = 0, daemon = daemon.up }
  for _, task in ipairs(M.list()) do
    if task.state == 'failed' then
      now.failed = now.failed + 1
    elseif task.waiting_for ~= nil and task.state == 'taken' then
      now.waiting = now.waiting + 1
    elseif M.running(task) then
      now.running = now.running + 1
    end
  end
  if announced and vim.deep_equal(now, status) then
    return
  end
  announced, status = true, now
  vim.g.promptside_status = now
  vim.schedule(function()
    vim.api.nvim_exec_autocmds('User', { pattern = 'PromptsideChanged', modeline = false })
    vim.cmd.redrawstatus()
  end)
end

---Whether what a task waits with is on the screen: then nothing need be said of it.
---@param task promptside.TaskView
local function in_view(task)
  local document = task.waiting_for and task.waiting_for.document
  local page = ('promptside://%d'):format(task.id)
  for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    local name = vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(win))
    if document and name == vim.fs.joinpath(task.project, document) then
      return true
    end
    if name == 'promptside://tasks' or name:gsub('%?.*$', '') == page then
      return true
    end
  end
  return false
end

---The permission that a task waits for first.
---@param task promptside.TaskView
---@return promptside.DecisionView?
local function permission_of(task)
  local waiting = task.waiting_for
  local first = waiting and waiting.kind == 'decision' and waiting.decisions[1]
  return first and first.kind == 'permission' and first or nil
end

---A title that leaves room for the rest of a line.
local function short(title)
  return vim.fn.strchars(title) > 40 and vim.fn.strcharpart(title, 0, 39) .. '…' or title
end

---What is said of a task that waits, with where to go.
---@param task promptside.TaskView
---@return string
function M.waits(task)
  local waiting = task.waiting_for --[[@as promptside.WaitingFor]]
  local more = vim.tbl_filter(function(other)
    return other.waiting_for ~= nil and other.state == 'taken'
  end, M.list())
  local go = #more > 1 and (':Promptside open %d'):format(task.id) or ':Promptside next'
  local stage = M.stage(task, waiting.stage)
  local name = stage and stage.name or waiting.stage
  local permission = permission_of(task)
  if permission then
    return ('%s  %s, allow, deny'):format(permission.text, go)
  elseif waiting.kind == 'decision' then
    local count = #waiting.decisions == 1 and 'a question' or #waiting.decisions .. ' questions'
    return ('The agent has %s about “%s”. It waits.  %s'):format(count, short(task.title), go)
  elseif waiting.kind == 'input' then
    local words = '“%s”: %s takes a word of yours first, or none.  :Promptside run %d'
    return words:format(short(task.title), name, task.id)
  end
  local why = waiting.kind == 'person' and waiting.reason ~= '' and waiting.reason or name .. '.'
  return ('“%s” waits for you: %s  %s'):format(short(task.title), why, go)
end

---What makes it the same wait; empty where a task waits for nobody.
---@param task promptside.TaskView
function M.mark(task)
  local waiting = task.waiting_for
  return waiting and waiting.stage .. waiting.kind .. waiting.since or ''
end

---The person has just been told what came of an order: what the task waits for next is said where it is in view, too,
---else that line stays, as if nothing had come of it.
---@param task promptside.TaskView
function M.answered(task)
  ordered[key(task.project, task.id)] = M.mark(task)
end

---Say once that a task has begun to wait (M1, M2, M16).
---@param task promptside.TaskView
local function say_waiting(task)
  local waiting, place = task.waiting_for, key(task.project, task.id)
  if not waiting or task.state ~= 'taken' or waiting.since < began then
    return
  end
  local mark = place .. '\n' .. M.mark(task)
  if said[mark] then
    return
  end
  said[mark] = true
  local follows = ordered[place] ~= nil and ordered[place] ~= M.mark(task)
  if follows then
    ordered[place] = nil
  end
  -- Of a permission all is said: nobody sees from a number what is asked.
  if follows or permission_of(task) or not in_view(task) then
    message.say(M.waits(task))
  end
end

---Load anew what an attempt has written, and say what has unsaved changes (ED-11).
---@param task promptside.TaskView
---@param attempt promptside.AttemptView?
function M.reread(task, attempt)
  vim.schedule(function()
    local changed, kept = {}, {}
    for _, change in ipairs(attempt and attempt.changes or {}) do
      changed[vim.fs.joinpath(task.project, change.path)] = true
    end
    for _, buf in ipairs(vim.api.nvim_list_bufs()) do
      local name = vim.api.nvim_buf_get_name(buf)
      if
        vim.api.nvim_buf_is_loaded(buf)
        and vim.bo[buf].buftype == ''
        and vim.startswith(name, task.project .. '/')
      then
        if not vim.bo[buf].modified then
          pcall(vim.cmd.checktime, { args = { tostring(buf) }, mods = { emsg_silent = true } })
        elseif changed[name] then
          kept[#kept + 1] = vim.fs.basename(name)
        end
      end
    end
    if #kept > 0 then
      local words = '%s: changed by the agent, and unsaved here. :e! takes the agent’s, :w! keeps yours.'
      message.say(words:format(table.concat(kept, ', ')), 'warning')
    end
  end)
end

---A task as it is now.
---@param news { project: string, seq: integer, task: promptside.TaskView }
function M.put(news)
  local task = news.task
  local old = (all[news.project] or {})[task.id]
  all[news.project] = all[news.project] or {}
  all[news.project][task.id] = task
  local _, before = nil, nil
  if old then
    _, before = M.running(old)
  end
  local _, now = M.running(task)
  if before and (not now or now.id ~= before.id) then
    local ended
    for _, stage in ipairs(task.stages) do
      for _, attempt in ipairs(stage.attempts) do
        ended = attempt.id == before.id and attempt or ended
      end
    end
    M.reread(task, ended)
  elseif old and not now then
    M.reread(task) -- its documents, or files that were taken back
  end
  publish()
  say_waiting(task)
  local stay = {}
  for _, listener in ipairs(listeners) do
    if not listener.done(task) then
      stay[#stay + 1] = listener
    end
  end
  listeners = stay
end

---A project was removed.
---@param project string
function M.forget(project)
  all[project] = nil
  publish()
end

---The daemon came or went.
---@param news { up: boolean, sentence: string }
function M.daemon(news)
  local was = daemon
  daemon = { up = news.up, sentence = news.sentence }
  publish()
  if not news.up and (was.up or was.sentence ~= news.sentence) then
    message.say(news.sentence .. '  :Promptside daemon starts it.', 'warning')
  elseif news.up and not was.up then
    message.say(news.sentence ~= '' and news.sentence or 'The Promptside daemon is there again.')
  elseif news.up and news.sentence ~= '' then
    message.say(news.sentence)
  end
end

---The server ended: nothing is known any more.
function M.lost()
  all = {}
  daemon = { up = true, sentence = '' }
  announced = false
  publish()
end

return M
