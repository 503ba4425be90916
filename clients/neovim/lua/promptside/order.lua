---Orders of the person: confirmed where something is thrown away, given to the server, and answered in one line.
local ask = require('promptside.ask')
local client = require('promptside.client')
local float = require('promptside.float')
local message = require('promptside.message')
local tasks = require('promptside.tasks')

local M = {}

---What is said when an order was taken.
local DONE = {
  approve = 'Approved.',
  send = 'The answers are sent.',
  redo = 'Sent back to the agent.',
  retry = 'Started again.',
  run = 'Started.',
  interrupt = 'The agent is told.',
  stop = 'Stopped; the files stay as they are.',
  pause = 'Paused; the conversation is kept.',
  resume = 'Resumed.',
  skip = 'Skipped.',
  goBack = 'Gone back; later stages run again.',
  takeBack = 'The approval is taken back.',
  abandon = 'Abandoned; branch and files stay.',
  archive = 'Archived.',
  ready = 'Marked ready.',
  allow = 'Allowed.',
  deny = 'Denied; the agent is told.',
  undo = 'The files are as before the attempt.',
  giveBack = 'Given back to the agent.',
  removeRule = 'Removed: the agent asks again.',
  trust = 'Trusted, in this version.',
  addProject = 'Added.',
}
---Orders whose answer says what comes of them.
local FOLLOWED = { approve = true, skip = true, goBack = true, resume = true }
---Orders after which an agent runs, so that its output is worth a window.
local STARTS = { run = true, retry = true }
---Orders after which an agent may run: a window that shows output already goes over to it.
local GOES_ON = {
  approve = true,
  send = true,
  redo = true,
  skip = true,
  goBack = true,
  resume = true,
  allow = true,
  deny = true,
  interrupt = true,
} -- stylua: ignore
local WORDS = {
  redo = { 'feedback', 'What should the agent do differently? ' },
  interrupt = { 'text', 'What should the agent know? ' },
  deny = { 'text', 'Why not, or what instead? (empty: just deny) ' },
  skip = { 'reason', 'Why is it skipped? (may be empty) ' },
}
local MAY_BE_EMPTY = { deny = true, skip = true }

---@class promptside.OrderOptions
---@field sure? boolean Whether the person has confirmed it already.
---@field mods? table Where a document that it opens goes.
---@field done? fun(result: any)

local function tag_of(command)
  return (command:gsub('^promptside%.', ''))
end

---What is asked before an order, and the word on its button; nil where nothing is lost (M34, M35).
---@param tag string
---@param args table
---@return string?, string?
function M.danger(tag, args)
  local task = tasks.get(args.project or '', args.task or 0)
  if not task then
    return nil
  end
  local current = tasks.stage(task, task.current)
  if tag == 'stop' and current and tasks.running(task) then
    return ('Stop %s? The files stay as they are.'):format(current.name), 'Stop'
  elseif tag == 'abandon' then
    local stopped = tasks.running(task) and current and ('; %s is stopped'):format(current.name) or ''
    return ('Abandon “%s”? Branch and files stay%s.'):format(task.title, stopped), 'Abandon'
  elseif tag == 'goBack' and not args.reason and args.stage then
    local stage = tasks.stage(task, args.stage)
    local name = stage and stage.name or args.stage
    return ('Go back to %s? What comes after it runs again; earlier attempts are kept. Files stay.'):format(
      name
    ),
      'Go back'
  elseif tag == 'undo' then
    local stage = tasks.stage(task, args.stage) or current
    local what = args.paths and table.concat(args.paths, ', ') or 'Its files'
    local name = stage and stage.name or 'the attempt'
    return ('Undo what attempt %s of %s changed? %s will be as before it.'):format(
      args.attempt or '',
      name,
      what
    ),
      'Undo'
  end
end

---Files with changes that an order might write over (M14).
local function unsaved(err, again)
  local buttons = { 'Save and run', 'Run anyway', 'Cancel' }
  ask.pick(err.message, buttons, tostring, function(choice)
    if choice == buttons[1] then
      for _, buf in ipairs(vim.api.nvim_list_bufs()) do
        local name = vim.api.nvim_buf_get_name(buf)
        if
          vim.bo[buf].modified
          and vim.bo[buf].buftype == ''
          and err.message:find(vim.fs.basename(name), 1, true)
        then
          vim.api.nvim_buf_call(buf, function()
            vim.cmd('silent write')
          end)
        end
      end
      again({})
    elseif choice == buttons[2] then
      again({ anyway = true })
    end
  end)
end

---Show why a document was refused, where it differs (M10, M11).
local function differs(err)
  local lines = vim.split(message.sentence(err), '\n')
  lines[#lines + 1] = ''
  vim.list_extend(lines, vim.split(vim.trim(err.data.difference), '\n'))
  float.open('Nothing was approved', lines, { filetype = 'diff' })
end

---@param there? boolean Only in a window that shows output already.
local function output_soon(project, number, there)
  local how = require('promptside.settings').get().output
  if how == 'never' then
    return
  end
  local function show(task)
    if task.id ~= number or (project ~= '' and task.project ~= project) then
      return false
    end
    if not tasks.running(task) then
      return task.waiting_for ~= nil
    end
    vim.schedule(function()
      require('promptside.output').show(task.project, task.id, { there = there })
    end)
    return true
  end
  local known = tasks.get(project, number)
  if not known or not tasks.running(known) or not show(known) then
    tasks.listen(show)
  end
end

---After a draft has become a task, its page takes the draft's place.
local function created(args, result)
  if type(result) ~= 'number' then
    return
  end
  message.say(('It is task %d now.'):format(result))
  local draft = args.uri and vim.uri_to_bufnr(args.uri)
  local name = draft and vim.api.nvim_buf_get_name(draft) or ''
  local project = name:match('^(.*)/%.promptside/drafts/') or ''
  for _, win in ipairs(draft and vim.fn.win_findbuf(draft) or {}) do
    vim.api.nvim_win_call(win, function()
      vim.bo[draft].bufhidden = 'wipe'
      vim.bo[draft].modified = false
      require('promptside.buffers').edit(require('promptside.address').task(project, result))
    end)
  end
  if args.run then
    output_soon(project, result)
  end
end

---What an order has led to, as far as it is known: what runs now, what waits next, or that nothing does. What begins to
---wait later is said then.
---@param task promptside.TaskView
---@param before string What it waited for when the order was given.
---@param followed? boolean
---@return string
local function after(task, before, followed)
  local waiting = task.waiting_for
  local stage = tasks.stage(task, task.current)
  if followed and task.state == 'completed' then
    return (' All stages are done. :Promptside changes %d lists what was changed.'):format(task.id)
  elseif waiting and waiting.kind == 'input' and stage and (followed or tasks.mark(task) ~= before) then
    return (' %s takes a word of yours first, or none: :Promptside run %d asks.'):format(stage.name, task.id)
  elseif waiting and task.state == 'taken' and tasks.mark(task) ~= before then
    return ' ' .. tasks.waits(task)
  end
  tasks.answered(task)
  return followed and tasks.running(task) and stage and not waiting and (' %s runs.'):format(stage.name) or ''
end

---Give an order; `args` as the protocol has them.
---@param command string `promptside.approve`
---@param args? table
---@param options? promptside.OrderOptions
function M.give(command, args, options)
  local tag, given, how = tag_of(command), vim.deepcopy(args or {}), options or {}
  if not how.sure then
    local question, button = M.danger(tag, given)
    if question and button then
      return ask.confirm(question, button, function()
        M.give(command, given, vim.tbl_extend('force', how, { sure = true }))
      end, tag == 'stop' and 's' or nil)
    end
  end
  local function again(more)
    M.give(command, more, how)
  end
  if tag == 'run' and require('promptside.word').asked(given, again) then
    return
  end
  if tag == 'takeOver' then
    local task = tasks.get(given.project or '', given.task or 0)
    return task and require('promptside.terminal').take_over(task, how.mods)
  end
  if how.mods then
    require('promptside.buffers').wish(how.mods)
  end
  local before = {}
  for _, task in ipairs(tasks.list()) do
    before[tasks.key(task)] = tasks.mark(task)
  end
  local arguments = vim.tbl_isempty(given) and { vim.empty_dict() } or { given }
  client.request(
    'workspace/executeCommand',
    { command = command, arguments = arguments },
    function(err, result)
      require('promptside.buffers').wish(nil)
      if err then
        local data = type(err.data) == 'table' and err.data or {}
        if data.code == 'unsaved' then
          return unsaved(err, function(more)
            vim.schedule(function()
              M.give(
                command,
                vim.tbl_extend('force', given, more),
                vim.tbl_extend('force', how, { sure = true })
              )
            end)
          end)
        elseif (data.difference or '') ~= '' then
          return differs(err)
        end
        return message.say(message.sentence(err), 'warning')
      end
      require('promptside.page').again()
      if given.comments then
        require('promptside.comments').sent(given.comments)
      end
      if tag == 'createTask' then
        created(given, result)
      elseif DONE[tag] and result ~= nil and result ~= vim.NIL then
        local number = type(result) == 'table' and result.task or 0
        local task = (STARTS[tag] or GOES_ON[tag]) and tasks.get(given.project or '', number)
        message.say(DONE[tag] .. (task and after(task, before[tasks.key(task)] or '', FOLLOWED[tag]) or ''))
      elseif tag == 'daemonStart' then
        message.say('The Promptside daemon is there.')
      end
      local view = tag == 'undo' and tasks.get(given.project or '', given.task or 0)
      if view then
        tasks.reread(view)
      end
      if (tag == 'approve' or tag == 'send') and type(result) == 'table' then
        require('promptside.form').sent(given.project or '', result.task)
      end
      if (STARTS[tag] or GOES_ON[tag]) and type(result) == 'table' and result.task then
        output_soon(given.project or '', result.task, not STARTS[tag])
      end
      if tag == 'showChanges' and type(result) == 'table' and result.files then
        require('promptside.changes').list(result)
      end
      if how.done then
        how.done(result)
      end
    end
  )
end

---Go back to an earlier stage of a task: the only one, or the one that the person picks.
---@param task promptside.TaskView
---@param sure? boolean
function M.go_back(task, sure)
  local earlier = tasks.earlier(task)
  local function go(stage)
    M.give('promptside.goBack', { project = task.project, task = task.id, stage = stage.id }, { sure = sure })
  end
  if #earlier == 0 then
    return message.say(('“%s” is at its first stage.'):format(task.title), 'warning')
  elseif #earlier == 1 then
    return go(earlier[1])
  end
  ask.pick('Which stage do you want to go back to? ', earlier, function(stage)
    return stage.name
  end, go)
end

---Do what is offered at a line or for a task: asked for words where it needs some.
---@param at { project: string, task: integer }
---@param offer promptside.Offer
---@param options? promptside.OrderOptions
function M.offer(at, offer, options)
  if offer.blocked then
    return message.say(offer.blocked, 'warning')
  end
  local verb = offer.command:match('^promptside%.verb%.(.*)$')
  if verb then
    return vim.cmd.Promptside(verb)
  end
  local tag = tag_of(offer.command)
  local args = vim.tbl_extend('force', { project = at.project, task = at.task }, offer.args or {})
  if args.project == '' then
    args.project = nil
  end
  if args.task == 0 then
    args.task = nil
  end
  if tag == 'goBack' and not args.reason then
    local task = tasks.get(at.project, at.task)
    return task and M.go_back(task)
  end
  local words = WORDS[tag]
  if not offer.needs_text or not words then
    return M.give(offer.command, args, options)
  end
  vim.ui.input({ prompt = words[2] }, function(text)
    if text == nil or (vim.trim(text) == '' and not MAY_BE_EMPTY[tag]) then
      return
    end
    args[words[1]] = vim.trim(text)
    local comments = tag ~= 'skip' and require('promptside.comments').of(at.project, at.task) or {}
    args.comments = #comments > 0 and comments or nil
    M.give(offer.command, args, options)
  end)
end

return M
