---What an attempt changed: a list of files, or each beside what it was (ED-12).
local address = require('promptside.address')
local client = require('promptside.client')
local message = require('promptside.message')
local order = require('promptside.order')
local subject = require('promptside.subject')
local tasks = require('promptside.tasks')

local M = {}

---Tabs that are opened at once; the list has the rest.
local TABS = 8
local KINDS = { added = 'new', deleted = 'deleted', modified = 'changed', type = 'changed' }

local function words(file)
  local counts = {}
  if file.added then
    counts[#counts + 1] = '+' .. file.added
  end
  if file.removed then
    counts[#counts + 1] = '-' .. file.removed
  end
  return (KINDS[file.kind] or file.kind) .. (#counts > 0 and ' ' .. table.concat(counts, ' ') or '')
end

local function title(result)
  if result.stage == '' then
    return ('all stages: %d file%s'):format(#result.files, #result.files == 1 and '' or 's')
  end
  return ('%s, attempt %d%s: %d file%s'):format(
    result.stage,
    result.attempt,
    result.running and ' (runs)' or '',
    #result.files,
    #result.files == 1 and '' or 's'
  )
end

---One side of a comparison, in the current window.
local function side(uri)
  require('promptside.buffers').edit(address.path(uri))
  vim.cmd.diffthis()
end

---A file in a tab: on the left what it was, on the right what it is.
---@param file promptside.ours.ChangedFile
local function beside(file)
  vim.cmd.tabnew()
  vim.bo.bufhidden = 'wipe'
  side(file.before)
  vim.cmd('rightbelow vsplit')
  side(file.after)
  vim.cmd('silent! normal! gg]c') -- the first change
end

---In the list: the file of the line beside what it was; of a list that somebody else has put in its place, as ever.
local function enter()
  local file = (vim.fn.getqflist()[vim.fn.line('.')] or {}).user_data
  if type(file) == 'table' and file.before then
    return beside(file)
  end
  vim.cmd.normal({ args = { '\r' }, bang = true })
end

---The files as the quickfix list.
---@param result promptside.ours.Changes
function M.list(result)
  if #result.files == 0 and result.stage == '' then
    return message.say('No file was changed.')
  elseif #result.files == 0 then
    return message.say(('Attempt %d of %s changed no files.'):format(result.attempt, result.stage))
  end
  local items = vim.tbl_map(function(file)
    return { filename = vim.uri_to_fname(file.uri), lnum = 1, text = words(file), user_data = file }
  end, result.files)
  vim.fn.setqflist(
    {},
    ' ',
    { title = 'Promptside: ' .. title(result) .. '   <CR> compares, gf opens', items = items }
  )
  vim.cmd('botright copen')
  vim.keymap.set('n', '<CR>', enter, { buffer = true, desc = 'Promptside: the file beside what it was' })
end

---Each file in a tab of its own.
---@param result promptside.ours.Changes
local function compare(result)
  if #result.files == 0 then
    return M.list(result)
  end
  for index, file in ipairs(result.files) do
    if index > TABS then
      message.say(
        ('%d of %d files are shown; :Promptside changes lists them all.'):format(TABS, #result.files)
      )
      break
    end
    beside(file)
  end
end

---Whose changes are meant: of the stage that one is at, else of a task that is over all, else the newest attempt's.
---@param task promptside.TaskView
---@return { stage?: string, attempt?: integer, whole?: boolean }
local function meant(task)
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
  return (task.state == 'completed' or task.state == 'archived') and { whole = true } or found
end

---`:Promptside changes`
---@param call promptside.Call
function M.of(call)
  subject.with(call, subject.attempted, 'No stage has run yet.', function(task)
    local at = vim.tbl_extend('force', { project = task.project, task = task.id }, meant(task))
    client.request('promptside/changes', at, function(err, result)
      if err then
        return message.say(message.sentence(err), 'warning')
      elseif call.bang then
        return compare(result)
      end
      M.list(result)
    end)
  end)
end

---`:Promptside undo`
---@param call promptside.Call
function M.undo(call)
  local nothing = 'There is nothing to undo.'
  subject.with(call, subject.offering('undo'), nothing, function(task)
    local offer = tasks.offer(task, 'undo')
    if not offer then
      return message.say(nothing, 'warning')
    end
    local args = vim.tbl_extend('force', { project = task.project, task = task.id }, offer.args)
    if call.text ~= '' then
      local path = vim.fn.fnamemodify(call.text, ':p')
      local inside = vim.startswith(path, task.project .. '/')
      args.paths = { inside and path:sub(#task.project + 2) or call.text }
    end
    order.give('promptside.undo', args, { sure = call.bang })
  end)
end

return M
