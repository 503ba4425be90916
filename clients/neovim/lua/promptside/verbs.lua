---What `:Promptside` can do, each verb with what may stand behind it.
local ask = require('promptside.ask')
local buffers = require('promptside.buffers')
local client = require('promptside.client')
local message = require('promptside.message')
local order = require('promptside.order')
local tasks = require('promptside.tasks')

local M = {}

---@class promptside.Call
---@field bang boolean Without the confirmation.
---@field text string Everything behind the verb.
---@field mods? table Where the person wants a window.
---@field place { uri?: string, range?: lsp.Range, diagnostics?: string[] }
---@field selected boolean
---@field lines { [1]: integer, [2]: integer }
---@field target { project?: string, task?: integer }

---@class promptside.Verb
---@field [1] string What it does, in a few words.
---@field takes? 'task'|'text'|'stage'|'option'|'scope'|'file'
---@field run fun(call: promptside.Call)

---The arguments of an order: its task, where the person is, and more.
local function arguments(call, more)
  return vim.tbl_extend('force', {}, call.place, call.target, more or {})
end

local function give(tag, more)
  return function(call)
    local comments = {}
    order.give('promptside.' .. tag, arguments(call, vim.tbl_extend('force', comments, more or {})), {
      sure = call.bang,
      mods = call.mods,
    })
  end
end

---The task that is meant, as far as it can be told here; else the person is asked.
---@param call promptside.Call
---@param fits fun(task: promptside.TaskView): boolean
---@param nothing string
---@param take fun(task: promptside.TaskView)
local function with_task(call, fits, nothing, take)
  local number = call.target.task
  if number then
    local task = tasks.get(call.target.project or '', number)
    if task then
      return take(task)
    end
    return message.say(('There is no task %d.'):format(number), 'warning')
  end
  local path = call.place.uri and vim.startswith(call.place.uri, 'file:') and vim.uri_to_fname(call.place.uri)
    or ''
  local owner = tasks.owner(path)
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

---Wait until the server is there: before, no task is known here.
local function known(run)
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

local function offers(tag)
  return function(task)
    for _, offer in ipairs(task.offers) do
      if offer.command == 'promptside.' .. tag and not offer.blocked then
        return true
      end
    end
    return false
  end
end

local function any(task)
  return task.state ~= 'archived'
end

local function attempted(task)
  for _, stage in ipairs(task.stages) do
    if #stage.attempts > 0 then
      return true
    end
  end
  return false
end

---An order with words behind the verb, and with the comments on lines; without any, the server begins a note in the
---document, or the person is asked.
local function say(tag, field, prompt, may_be_empty)
  return known(function(call)
    with_task(call, offers(tag), 'No task can take that now.', function(task)
      local comments = require('promptside.comments').of(task.project, task.id)
      local at = { project = task.project, task = task.id }
      local function send(text)
        at[field] = text
        at.comments = #comments > 0 and comments or nil
        order.give('promptside.' .. tag, vim.tbl_extend('force', {}, call.place, at), { sure = call.bang })
      end
      local here = tasks.owner(vim.api.nvim_buf_get_name(0))
      if call.text ~= '' then
        send(call.text)
      elseif #comments > 0 or call.selected or call.bang then
        send('')
      elseif here and here.id == task.id and not may_be_empty then
        send(nil) -- the notes of the document are the words, or one is begun there
      else
        vim.ui.input({ prompt = prompt }, function(text)
          if text and (may_be_empty or vim.trim(text) ~= '') then
            send(vim.trim(text))
          end
        end)
      end
    end)
  end)
end

local function page(path)
  return function(call)
    buffers.edit('promptside://' .. path, call.mods)
  end
end

local function answer(task, answers)
  local wish = { project = task.project, task = task.id, answers = answers }
  client.request('promptside/answer', wish, function(err)
    message.say(
      err and message.sentence(err) or 'Answered. Nothing is sent yet.',
      err and 'warning' or 'info'
    )
  end)
end

local function waiting_gate(task)
  local gate = task.waiting_for and task.waiting_for.gate
  return gate and gate.type == 'require_selection' and gate or nil
end

local function select_option(call)
  with_task(
    call,
    function(task)
      return waiting_gate(task) ~= nil
    end,
    'No task waits for a selection.',
    function(task)
      local gate = waiting_gate(task)
      if not gate then
        return message.say(('“%s” does not wait for a selection.'):format(task.title), 'warning')
      end
      local function take(id)
        answer(task, { [id] = true })
      end
      if call.text ~= '' then
        for _, option in ipairs(gate.options) do
          if option.id:lower() == call.text:lower() then
            return take(option.id)
          end
        end
        return message.say(('There is no option %s.'):format(call.text), 'warning')
      end
      ask.pick('Select: ', gate.options, function(option)
        return ('%s  %s%s'):format(option.id, option.title, option.recommended and ' (recommended)' or '')
      end, function(option)
        take(option.id)
      end)
    end
  )
end

local function recommended(call)
  with_task(
    call,
    function(task)
      return task.waiting_for ~= nil and task.waiting_for.kind == 'decision'
    end,
    'No questions are open.',
    function(task)
      local at = { project = task.project, task = task.id }
      client.request('promptside/openForm', at, function(err, news)
        if err then
          return message.say(message.sentence(err), 'warning')
        end
        client.request('promptside/closeForm', at, function() end)
        local first = news.form and (news.form.suggestions or {})[1]
        if not first then
          return message.say('Nothing is recommended for what is still open.')
        end
        answer(task, first.answers)
      end)
    end
  )
end

local function back(call)
  with_task(call, offers('goBack'), 'No task has a stage to go back to.', function(task)
    local earlier = {}
    for _, stage in ipairs(task.stages) do
      if stage.id == task.current then
        break
      end
      earlier[#earlier + 1] = stage
    end
    local function go(stage)
      local args = { project = task.project, task = task.id, stage = stage.id }
      order.give('promptside.goBack', args, { sure = call.bang })
    end
    if call.text ~= '' then
      for _, stage in ipairs(earlier) do
        if stage.id == call.text then
          return go(stage)
        end
      end
      return message.say(('%s is no earlier stage of this task.'):format(call.text), 'warning')
    elseif #earlier == 0 then
      return message.say(('“%s” is at its first stage.'):format(task.title), 'warning')
    elseif #earlier == 1 then
      return go(earlier[1])
    end
    ask.pick('Which stage do you want to go back to? ', earlier, function(stage)
      return stage.name
    end, go)
  end)
end

local function undo(call)
  with_task(call, offers('undo'), 'There is nothing to undo.', function(task)
    for _, offer in ipairs(task.offers) do
      if offer.command == 'promptside.undo' then
        local args = vim.tbl_extend('force', { project = task.project, task = task.id }, offer.args)
        if call.text ~= '' then
          local path = vim.fn.fnamemodify(call.text, ':p')
          args.paths =
            { vim.startswith(path, task.project .. '/') and path:sub(#task.project + 2) or call.text }
        end
        return order.give('promptside.undo', args, { sure = call.bang })
      end
    end
    message.say('There is nothing to undo.', 'warning')
  end)
end

local function permissions(task)
  return vim.tbl_filter(function(decision)
    return decision.kind == 'permission' and decision.status == 'open'
  end, task.waiting_for and task.waiting_for.decisions or {})
end

---The permission that is meant; several are asked about.
local function with_permission(call, take)
  with_task(
    call,
    function(task)
      return #permissions(task) > 0
    end,
    'No permission is asked for.',
    function(task)
      local open = permissions(task)
      if #open == 0 then
        return message.say('No permission is asked for.', 'warning')
      elseif #open == 1 then
        return take(task, open[1])
      end
      ask.pick('Which one? ', open, function(one)
        return ('%s  %s %s'):format(one.id, one.tool, one.what)
      end, function(one)
        take(task, one)
      end)
    end
  )
end

local SCOPES = { 'once', 'attempt', 'task', 'always' }

local function allow(call)
  local scope = call.text ~= '' and call.text or 'once'
  if not vim.list_contains(SCOPES, scope) then
    return message.say('A permission is given once, or for an attempt, a task, or always.', 'warning')
  end
  with_permission(call, function(task, decision)
    local args = { project = task.project, task = task.id, decision = decision.id, scope = scope }
    order.give('promptside.allow', args)
  end)
end

local function deny(call)
  with_permission(call, function(task, decision)
    local args = { project = task.project, task = task.id, decision = decision.id, text = call.text }
    order.give('promptside.deny', args)
  end)
end

local function output(call)
  with_task(call, attempted, 'No stage has run yet.', function(task)
    require('promptside.output').show(task.project, task.id, { mods = call.mods, focus = call.mods ~= nil })
  end)
end

local function take_over(call)
  with_task(call, attempted, 'No attempt can be continued in a terminal now.', function(task)
    for _, offer in ipairs(task.offers) do
      if offer.command == 'promptside.takeOver' then
        return order.offer({ project = task.project, task = task.id }, offer, { mods = call.mods })
      end
    end
    message.say('No attempt of this task can be continued in a terminal now.', 'warning')
  end)
end

---The task that the recording was made of, by the headings of a draft.
local RECORDED = {
  { '## Title', 'Leave common words out of the list' },
  {
    '## Description',
    'The first ten words of almost any English text are “the”, “and”, “of”, “to”. '
      .. 'Let me name words that wordcount leaves out.',
  },
  { '## Agent', 'rehearsal:standard' },
}

---Write below a heading, behind what is quoted there.
local function write_below(buf, heading, text)
  local lines = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  for row, line in ipairs(lines) do
    if vim.startswith(line, heading) then
      while (lines[row + 2] or ''):match('^>') do
        row = row + 2
      end
      vim.api.nvim_buf_set_lines(buf, row, row, false, { '', text })
      return
    end
  end
end

---A new task as the person would write it, with the agent that plays the recording.
local function rehearse(call)
  order.give('promptside.newTask', {}, {
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

local function demo(call)
  require('promptside.terminal').run({ 'demo' }, { mods = call.mods })
end

---The attempt whose changes are meant: of the stage that one is at, else the newest that changed anything.
---@param task promptside.TaskView
---@return { stage?: string, attempt?: integer }
local function changed(task)
  local here = vim.api.nvim_buf_get_name(0)
  local line = require('promptside.page').here()
  local id = line and (line.ref:match('^stage/(.+)$') or line.ref:match('^attempt/(.+)/%d+$'))
  local newest, found = -1, {}
  for _, stage in ipairs(task.stages) do
    local last = stage.attempts[#stage.attempts]
    local at = stage.id == id or (stage.artifact and here == vim.fs.joinpath(task.project, stage.artifact))
    if at and last and (#(last.changes or {}) > 0 or last.status == 'running') then
      return { stage = stage.id, attempt = line and tonumber(line.ref:match('^attempt/.+/(%d+)$')) or last.n }
    end
    for _, attempt in ipairs(stage.attempts) do
      local started = attempt.status == 'running' and math.huge
        or #(attempt.changes or {}) > 0 and attempt.started
      if started and started > newest then
        newest, found = started, { stage = stage.id, attempt = attempt.n }
      end
    end
  end
  return found
end

local function changes(call)
  with_task(call, attempted, 'No stage has run yet.', function(task)
    local at = vim.tbl_extend('force', { project = task.project, task = task.id }, changed(task))
    require('promptside.changes').ask(at, call.bang)
  end)
end

local function new(call)
  if call.text == '' then
    return order.give('promptside.newTask', arguments(call, { task = nil }), { mods = call.mods })
  end
  local args = arguments(call, { title = call.text })
  args.task = nil
  order.give('promptside.newTask', args, {
    done = function(ack)
      message.say(('It is task %d now.'):format(ack.task))
      buffers.edit(require('promptside.page').name(args.project or '', ack.task), call.mods)
    end,
  })
end

---What waits in the task that one is at; else, and from the list of all tasks, what has waited longest anywhere.
local function following(call)
  local here = vim.api.nvim_buf_get_name(0)
  local view = not vim.startswith(here, 'promptside://tasks')
    and (call.target.task and tasks.get(call.target.project or '', call.target.task) or tasks.owner(here))
  local waiting = view and view.waiting_for
  local document = view and waiting and waiting.document
  if view and document and here ~= vim.fs.joinpath(view.project, document) then
    local args = { project = view.project, task = view.id }
    return order.give('promptside.openTask', args, { mods = call.mods })
  end
  give('next')(call)
end

---Its page, whatever it waits for.
local function open(call)
  if call.target.task then
    local task = tasks.get(call.target.project or '', call.target.task)
    return buffers.edit(
      require('promptside.page').name(task and task.project or '', call.target.task),
      call.mods
    )
  end
  with_task(call, any, 'There is no task yet.  :Promptside new', function(task)
    buffers.edit(require('promptside.page').name(task.project, task.id), call.mods)
  end)
end

---@param call promptside.Call
local function trust(call)
  client.request('promptside/query', { type = 'trustState' }, function(err, state)
    if err then
      return message.say(message.sentence(err), 'warning')
    end
    if state.state == 'none_needed' or state.state == 'trusted' then
      return message.say(state.sentence ~= '' and state.sentence or 'There is nothing to trust here.')
    end
    if call.bang then
      return order.give('promptside.trust', { hash = state.hash })
    end
    local function choose()
      ask.pick(state.sentence .. ' ', { 'Show', 'Trust', 'Leave it as it is' }, tostring, function(choice)
        if choice == 'Trust' then
          order.give('promptside.trust', { hash = state.hash })
        elseif choice == 'Show' then
          local lines = {}
          for _, item in ipairs(state.items) do
            lines[#lines + 1] = ('%s%s  %s'):format(item.path, item.changed and ' (changed)' or '', item.what)
          end
          lines[#lines + 1] = ''
          lines[#lines + 1] = ':Promptside trust!  trusts this version'
          message.float('What this project brings', lines)
        end
      end)
    end
    choose()
  end)
end

local function history(call)
  with_task(call, any, 'There is no task yet.', function(task)
    local name = require('promptside.address').name(task.id .. '/history', task.project)
    buffers.edit(name, call.mods)
  end)
end

local function log(call)
  buffers.edit('promptside://log', call.mods)
  buffers.read(vim.api.nvim_get_current_buf())
  vim.cmd('normal! G')
end

---In the order of the help.
---@type table<string, promptside.Verb>
M.all = {
  next = { 'go to what waits for you', run = following },
  new = { 'new task, from here or from a selection', takes = 'text', run = new },
  open = { 'the page of a task', takes = 'task', run = known(open) },
  run = { 'run the next stage', takes = 'task', run = give('run') },
  approve = { 'approve what waits', takes = 'task', run = give('approve') },
  select = { 'select an option', takes = 'option', run = known(select_option) },
  send = { 'send the answers', takes = 'task', run = give('send') },
  recommended = { 'take the recommended answers; nothing is sent', takes = 'task', run = known(recommended) },
  redo = {
    'send back to the agent, with your words',
    takes = 'text',
    run = say('redo', 'feedback', 'What should the agent do differently? '),
  },
  retry = { 'run a failed stage again', takes = 'task', run = give('retry') },
  interrupt = {
    'interrupt the agent with your words',
    takes = 'text',
    run = say('interrupt', 'text', 'What should the agent know? '),
  },
  stop = { 'stop the stage', takes = 'task', run = give('stop') },
  pause = { 'pause the task', takes = 'task', run = give('pause') },
  resume = { 'resume the task', takes = 'task', run = give('resume') },
  skip = {
    'skip the stage, with a reason',
    takes = 'text',
    run = say('skip', 'reason', 'Why is it skipped? (may be empty) ', true),
  },
  back = { 'go back to a stage', takes = 'stage', run = known(back) },
  takeback = { 'take back the approval', takes = 'task', run = give('takeBack') },
  abandon = { 'abandon the task; branch and files stay', takes = 'task', run = give('abandon') },
  output = { 'what the agent writes', takes = 'task', run = known(output) },
  transcript = { 'all of what an attempt wrote', takes = 'task', run = give('showTranscript') },
  prompt = { 'what the agent was told', takes = 'task', run = give('showPrompt') },
  changes = { 'files that the attempt changed; with ! side by side', takes = 'task', run = known(changes) },
  comment = {
    'comment on lines, for the next redo',
    takes = 'text',
    run = known(function(call)
      require('promptside.comments').add(call.lines[1], call.lines[2], call.text)
    end),
  },
  undo = { 'undo what the attempt changed, or in one file', takes = 'file', run = known(undo) },
  takeover = { 'continue with the agent in a terminal', takes = 'task', run = known(take_over) },
  allow = { 'allow what the agent asks for', takes = 'scope', run = known(allow) },
  deny = { 'deny it, with a word to the agent', takes = 'text', run = known(deny) },
  rules = { 'permissions given for good', run = page('rules') },
  pipeline = { 'the pipelines that can be used here', run = page('pipelines') },
  trust = { 'trust what this project brings', run = trust },
  history = { 'everything that was decided in a task', takes = 'task', run = known(history) },
  rehearse = { 'try a whole pipeline without an agent', run = rehearse },
  demo = { 'watch the terminal play it by itself', run = demo },
  doctor = { 'check the set-up', run = page('doctor') },
  daemon = { 'start the daemon, if it is not there', run = give('daemonStart') },
  restart = {
    'start the language server anew',
    run = function()
      client.stop()
      vim.defer_fn(function()
        client.ready(function()
          buffers.again()
        end)
      end, 200)
    end,
  },
  log = { 'everything that was said here', run = log },
} -- stylua: ignore

return M
