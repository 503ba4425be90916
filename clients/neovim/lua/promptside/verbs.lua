---What `:Promptside` can do, each verb with what may stand behind it.
local address = require('promptside.address')
local answers = require('promptside.answers')
local buffers = require('promptside.buffers')
local changes = require('promptside.changes')
local client = require('promptside.client')
local comments = require('promptside.comments')
local message = require('promptside.message')
local order = require('promptside.order')
local permissions = require('promptside.permissions')
local rehearsal = require('promptside.rehearsal')
local subject = require('promptside.subject')
local tasks = require('promptside.tasks')
local trust = require('promptside.trust')

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

---The arguments of an order: its task, and where the person is.
local function arguments(call)
  return vim.tbl_extend('force', {}, call.place, call.target)
end

---An order without words.
local function give(tag)
  return function(call)
    order.give('promptside.' .. tag, arguments(call), { sure = call.bang, mods = call.mods })
  end
end

---An order with words behind the verb, and with the comments on lines; without any, the server begins a note in the
---document, or the person is asked.
local function say(tag, field, prompt, may_be_empty)
  return subject.known(function(call)
    subject.with(call, subject.offering(tag), 'No task can take that now.', function(task)
      local notes = comments.of(task.project, task.id)
      local at = { project = task.project, task = task.id }
      local function send(text)
        at[field] = text
        at.comments = #notes > 0 and notes or nil
        order.give('promptside.' .. tag, vim.tbl_extend('force', {}, call.place, at), { sure = call.bang })
      end
      local here = tasks.owner(vim.api.nvim_buf_get_name(0))
      if call.text ~= '' then
        send(call.text)
      elseif #notes > 0 or call.selected or call.bang then
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

local function back(call)
  subject.with(call, subject.offering('goBack'), 'No task has a stage to go back to.', function(task)
    if call.text == '' then
      return order.go_back(task, call.bang)
    end
    for _, stage in ipairs(tasks.earlier(task)) do
      if stage.id == call.text then
        local args = { project = task.project, task = task.id, stage = stage.id }
        return order.give('promptside.goBack', args, { sure = call.bang })
      end
    end
    message.say(('%s is no earlier stage of this task.'):format(call.text), 'warning')
  end)
end

local function output(call)
  subject.with(call, subject.attempted, 'No stage has run yet.', function(task)
    require('promptside.output').show(task.project, task.id, { mods = call.mods })
  end)
end

local function take_over(call)
  local nothing = 'No attempt can be continued in a terminal now.'
  subject.with(call, subject.attempted, nothing, function(task)
    local offer = tasks.offer(task, 'takeOver')
    if not offer then
      return message.say(nothing, 'warning')
    end
    order.offer({ project = task.project, task = task.id }, offer, { mods = call.mods })
  end)
end

local function new(call)
  local args = arguments(call)
  args.task = nil
  if call.text == '' then
    return order.give('promptside.newTask', args, { mods = call.mods })
  end
  args.title = call.text
  order.give('promptside.newTask', args, {
    done = function(ack)
      message.say(('It is task %d now.'):format(ack.task))
      buffers.edit(address.task(args.project or '', ack.task), call.mods)
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
  local number = call.target.task
  if number then
    local task = tasks.get(call.target.project or '', number)
    return buffers.edit(address.task(task and task.project or '', number), call.mods)
  end
  subject.with(call, subject.open, 'There is no task yet.  :Promptside new', function(task)
    buffers.edit(address.task(task.project, task.id), call.mods)
  end)
end

local function comment(call)
  comments.add(call.lines[1], call.lines[2], call.text)
end

local function history(call)
  subject.with(call, subject.open, 'There is no task yet.', function(task)
    buffers.edit(address.name(task.id .. '/history', task.project), call.mods)
  end)
end

local function restart()
  client.stop()
  vim.defer_fn(function()
    client.ready(buffers.again)
  end, 200)
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
  open = { 'the page of a task', takes = 'task', run = subject.known(open) },
  run = { 'run the next stage', takes = 'task', run = give('run') },
  approve = { 'approve what waits', takes = 'task', run = give('approve') },
  select = { 'select an option', takes = 'option', run = subject.known(answers.select) },
  send = { 'send the answers', takes = 'task', run = give('send') },
  recommended = {
    'tick the recommended answers; nothing is sent',
    takes = 'task',
    run = subject.known(answers.recommended),
  },
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
  back = { 'go back to a stage', takes = 'stage', run = subject.known(back) },
  takeback = { 'take back the approval', takes = 'task', run = give('takeBack') },
  abandon = { 'abandon the task; branch and files stay', takes = 'task', run = give('abandon') },
  output = { 'what the agent writes', takes = 'task', run = subject.known(output) },
  transcript = { 'all of what an attempt wrote', takes = 'task', run = give('showTranscript') },
  prompt = { 'what the agent was told', takes = 'task', run = give('showPrompt') },
  changes = {
    'files that the attempt changed; with ! side by side',
    takes = 'task',
    run = subject.known(changes.of),
  },
  comment = { 'comment on lines, for the next redo', takes = 'text', run = subject.known(comment) },
  undo = {
    'undo what the attempt changed, or in one file',
    takes = 'file',
    run = subject.known(changes.undo),
  },
  takeover = { 'continue with the agent in a terminal', takes = 'task', run = subject.known(take_over) },
  allow = { 'allow what the agent asks for', takes = 'scope', run = subject.known(permissions.allow) },
  deny = { 'deny it, with a word to the agent', takes = 'text', run = subject.known(permissions.deny) },
  rules = { 'permissions given for good', run = page('rules') },
  pipeline = { 'the pipelines that can be used here', run = page('pipelines') },
  trust = { 'trust what this project brings', run = trust.decide },
  history = { 'everything that was decided in a task', takes = 'task', run = subject.known(history) },
  rehearse = { 'try a whole pipeline without an agent', run = rehearsal.begin },
  demo = { 'watch the terminal play it by itself', run = rehearsal.demo },
  doctor = { 'check the set-up', run = page('doctor') },
  daemon = { 'start the daemon, if it is not there', run = give('daemonStart') },
  restart = { 'start the language server anew', run = restart },
  log = { 'everything that was said here', run = log },
} -- stylua: ignore

return M
