---What the line of a page is good for that the cursor is on: opened, previewed, done.
local address = require('promptside.address')
local buffers = require('promptside.buffers')
local item = require('promptside.item')
local keys = require('promptside.keys')
local lines_of = require('promptside.lines')
local message = require('promptside.message')
local order = require('promptside.order')
local page = require('promptside.page')
local tasks = require('promptside.tasks')
local ticks = require('promptside.ticks')

local M = {}

---Say what stands ticked, and what comes next.
---@param choice string
---@param approves boolean
local function ticked(choice, approves)
  local key = require('promptside.settings').get().keys and keys.spoken('<LocalLeader>a')
  local what = approves and 'approves' or 'sends the answers'
  local call = key or (':Promptside %s'):format(approves and 'approve' or 'send')
  message.say(('%s is ticked; %s %s.'):format(choice, call, what))
end

---Tick the choice that a line shows, in its document, which is in the current window; what is ticked stays so.
---@param line promptside.ours.PageLine
---@param row integer
---@param choice? string Of a question.
local function tick(line, row, choice)
  local task = tasks.get(line.project, line.task)
  local waiting = task and task.waiting_for
  local buf = vim.api.nvim_get_current_buf()
  if
    not waiting or vim.api.nvim_buf_get_name(buf) ~= vim.fs.joinpath(task.project, waiting.document or '')
  then
    return
  end
  local id = line.ref:match('^item/(.+)$')
  local options = require('promptside.answers').options(task)
  local selects = id and vim.iter(options):any(function(option)
    return option.id == id
  end)
  if not choice and not selects then
    return -- what was reviewed is ticked by who has read it
  end
  require('promptside.form').when_served(buf, function()
    local text = vim.api.nvim_buf_get_lines(buf, row - 1, row, false)[1] or ''
    if selects then
      -- Others may have to give way, below headings of their own: the server knows how many can stand.
      require('promptside.answers').give(task, { [id] = true }, function()
        ticked(id, true)
      end)
    elseif ticks.is_one(text) then
      if not ticks.is_ticked(text) then
        ticks.toggle(buf, row - 1)
      end
      ticked(choice, false)
    end
  end)
end

---Open what a line is about, at the very item that it shows.
---@param line promptside.ours.PageLine
---@param mods? table
---@param chosen? boolean Whether a choice that it shows is ticked, too.
local function open_document(line, mods, chosen)
  buffers.wish(mods)
  local at = { line = math.max(line.line - 1, 0), character = 0 }
  buffers.show({ uri = line.uri, selection = line.line > 0 and { start = at, ['end'] = at } or nil })
  local kind, id = line.ref:match('^(%a+)/(.+)$')
  -- A question and its choices are about the same, and have one line; a choice is drawn by its own id.
  local shown = lines_of.text(line):match('^%s*([%w_]+)')
  local choice = kind == 'decision' and shown ~= id and shown or nil
  if (line.line > 0 and not choice) or not (kind == 'decision' or kind == 'item') then
    return
  end
  local row = item.row(vim.api.nvim_buf_get_lines(0, 0, -1, false), id, choice)
  if row then
    vim.api.nvim_win_set_cursor(0, { row, 0 })
    vim.cmd('normal! zvzz') -- with what stands below it: an option's tick
    if chosen then
      tick(line, row, choice)
    end
  end
end

---The answers that a permission can be given.
---@param line promptside.ours.PageLine
---@return promptside.Offer[]
local function answers_of(line)
  local id, task = line.ref:match('^decision/(.+)$'), tasks.get(line.project, line.task)
  return vim.tbl_filter(function(offer)
    return offer.place == id
  end, id and task and task.offers or {})
end

---What can be done at a line, chosen from a list.
---@param line promptside.ours.PageLine
local function choose(line)
  local offers = vim.tbl_filter(function(offer)
    return not offer.blocked
  end, line.offers)
  if #offers == 0 then
    local why = line.offers[1] and line.offers[1].blocked
    return message.say(why or 'There is nothing to do here.')
  end
  require('promptside.ask').pick('What do you want to do? ', offers, function(offer)
    return offer.title
  end, function(offer)
    order.offer(line, offer)
  end)
end

---`<CR>`: open what the line is about, with a choice that it shows ticked, or do what it says. With modifiers nothing
---is ticked.
---@param mods? table
function M.enter(mods)
  local line = page.here()
  if not line then
    return
  end
  local name = lines_of.page_of(line)
  if vim.startswith(line.ref, 'offer/') and line.offers[1] then
    order.offer(line, line.offers[1])
  elseif line.ref == 'item/changes' then
    vim.cmd.Promptside('changes')
  elseif name and not (page.address().name == 'task' and vim.startswith(line.ref, 'task/')) then
    buffers.edit(name, mods)
  elseif line.uri ~= '' then
    open_document(line, mods, mods == nil)
  elseif #line.offers > 0 then
    choose(line)
  elseif #answers_of(line) > 0 then
    choose(vim.tbl_extend('force', line, { offers = answers_of(line) }))
  elseif lines_of.heads(line) then
    vim.cmd('silent! normal! za')
  end
end

---`p`: the document of the line in the preview window, else the one that its task waits with; the cursor stays.
function M.preview()
  local line = page.here()
  local target = page.target()
  local task = target and tasks.get(target.project, target.task)
  local document = task and task.waiting_for and task.waiting_for.document
  local name
  if line and line.uri ~= '' then
    name = address.path(line.uri)
  elseif task and document then
    name = vim.fs.joinpath(task.project, document)
  elseif line then
    name = lines_of.page_of(line)
  end
  if not name then
    return message.say('There is nothing to preview here.')
  end
  vim.cmd.pedit({ args = { name }, magic = { file = false } })
end

---The task of the line or of the page; of output its task.
---@return { project: string, task: integer }?
local function target_here()
  return page.target() or require('promptside.stream').of(vim.api.nvim_get_current_buf())
end

---`.`: everything that can be done at the line, else with its task.
function M.menu()
  local target = target_here()
  local line = page.here() or target and lines_of.whole({ project = target.project, task = target.task })
  if not line then
    return
  end
  if (#line.offers == 0 or vim.startswith(line.ref, 'offer/')) and line.task > 0 then
    local task = tasks.get(line.project, line.task)
    line = vim.tbl_extend('force', line, { offers = task and task.offers or {} })
  end
  local task = tasks.get(line.project, line.task)
  if task and require('promptside.subject').attempted(task) then
    local look = { title = 'Show what was changed', command = 'promptside.verb.changes' }
    line = vim.tbl_extend('force', line, { offers = vim.list_extend({ look }, line.offers) })
  end
  choose(line)
end

---Do the first of some commands that is offered for the line's task, or say why none is.
---@param commands string[]
---@param nothing string
function M.order(commands, nothing)
  local target = target_here()
  local task = target and tasks.get(target.project, target.task)
  if not target or not task then
    return message.say('No task stands here.')
  end
  local why
  for _, command in ipairs(commands) do
    for _, offer in ipairs(task.offers) do
      if offer.command == 'promptside.' .. command and (offer.place == '' or command == 'allow') then
        if not offer.blocked then
          return order.offer({ project = target.project, task = target.task }, offer)
        end
        why = why or offer.blocked
      end
    end
  end
  message.say(why or nothing)
end

---@param line promptside.ours.PageLine
---@param what 'item'|'group'
local function is(line, what)
  if what == 'group' then
    return lines_of.heads(line)
  end
  return line.page ~= '' or line.uri ~= '' or #line.offers > 0
end

---`]]`, `[[`: the next or previous line with something to open or to do; `}`, `{`: the next or previous group.
---@param step 1|-1
---@param what 'item'|'group'
function M.jump(step, what)
  local left = vim.v.count1
  local at = vim.api.nvim_win_get_cursor(0)[1] + step
  local found
  local line = page.line(at)
  while line and left > 0 do
    local closed = vim.fn.foldclosed(at)
    if is(line, what) and (closed == -1 or closed == at) then
      found, left = at, left - 1
    end
    at = at + step
    line = page.line(at)
  end
  if found then
    vim.api.nvim_win_set_cursor(0, { found, #lines_of.MARGIN })
  end
end

return M
