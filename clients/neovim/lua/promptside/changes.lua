---What an attempt changed: a list of files, or each beside what it was (ED-12).
local buffers = require('promptside.buffers')
local client = require('promptside.client')
local compare = require('promptside.compare')
local keys = require('promptside.keys')
local message = require('promptside.message')
local order = require('promptside.order')
local settings = require('promptside.settings')
local subject = require('promptside.subject')
local tasks = require('promptside.tasks')

local M = {}

---Tabs that are opened at once; the list has the rest.
local TABS = 8
---The window that one was in before the list.
local came = 0
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

---The list of changes that the quickfix window shows; nil where somebody else has put another in its place.
---@return promptside.ours.Changes?
---@return integer id
local function listed()
  local list = vim.fn.getqflist({ context = 0, id = 0 })
  local context = list.context
  return type(context) == 'table' and context.promptside or nil, list.id
end

---The lines of the list: a path, and what was done to it.
---@param info { id: integer, start_idx: integer, end_idx: integer }
---@return string[]
function M.lines(info)
  local items = vim.fn.getqflist({ id = info.id, items = 0 }).items
  local paths, width = {}, 0
  for number, one in ipairs(items) do
    local file = one.user_data -- not there in what somebody else has added to the list
    paths[number] = type(file) == 'table' and file.path or vim.fn.bufname(one.bufnr)
    width = math.max(width, vim.fn.strdisplaywidth(paths[number]))
  end
  local rows = {}
  for number = info.start_idx, info.end_idx do
    local gap = (' '):rep(width - vim.fn.strdisplaywidth(paths[number]))
    rows[#rows + 1] = ('%s%s   %s'):format(paths[number], gap, items[number].text)
  end
  return rows
end

---Have the list's own position be where the cursor is: `:cnext` goes on from there.
---@return promptside.ours.Changes?, integer row, integer id
local function taken()
  local result, id = listed()
  local row = vim.api.nvim_win_get_cursor(0)[1]
  if result and result.files[row] then
    vim.fn.setqflist({}, 'a', { id = id, idx = row })
  end
  return result, row, id
end

---In the list: the file of the line beside what it was.
function M.enter()
  local result, row, id = taken()
  if result and result.files[row] then
    return compare.open(result, row, id)
  end
  vim.cmd.normal({ args = { '\r' }, bang = true })
end

---In the list: the file of the line itself, where one was before.
function M.file()
  local result, row = taken()
  local file = result and result.files[row]
  if not file then
    return
  end
  local path = vim.uri_to_fname(file.uri)
  if file.kind == 'deleted' and not vim.uv.fs_stat(path) then
    return message.say(('%s is deleted; <CR> shows what it was.'):format(file.path))
  end
  buffers.edit(path)
end

---In the list: close it, and go back to where one was.
function M.leave()
  buffers.leave()
  if vim.api.nvim_win_is_valid(came) then
    vim.api.nvim_set_current_win(came)
  end
end

---Note where the person is before they go to the list; what floats over it is no place to go back to.
local function note_place()
  local win = vim.api.nvim_get_current_win()
  if vim.bo.buftype ~= 'quickfix' and vim.api.nvim_win_get_config(win).relative == '' then
    came = win
  end
end

---The window of the list has our keys as long as the list is ours, and whatever keys it had before when it is not.
local function watch()
  local group = vim.api.nvim_create_augroup('promptside.changes', {})
  vim.api.nvim_create_autocmd('WinLeave', {
    group = group,
    callback = function()
      if vim.fn.getqflist({ winid = 0 }).winid ~= 0 then -- in this tab
        note_place()
      end
    end,
  })
  vim.api.nvim_create_autocmd('FileType', {
    group = group,
    pattern = 'qf',
    callback = function(event)
      local info = vim.fn.getwininfo(vim.api.nvim_get_current_win())[1]
      if info.loclist == 1 then
        return
      end
      if listed() then
        keys.map(event.buf, 'changes')
      else
        keys.unmap(event.buf, 'changes')
      end
    end,
  })
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
  local hint = settings.get().keys and '   <CR> compares, gf opens, q closes' or ''
  watch()
  vim.fn.setqflist({}, ' ', {
    title = 'Promptside: ' .. title(result) .. hint,
    items = items,
    context = { promptside = result },
    quickfixtextfunc = "v:lua.require'promptside.changes'.lines",
  })
  note_place()
  vim.cmd('botright copen')
end

---Each file in a tab of its own.
---@param result promptside.ours.Changes
local function each(result)
  if #result.files == 0 then
    return M.list(result)
  end
  for index = 1, math.min(#result.files, TABS) do
    compare.open(result, index)
  end
  if #result.files > TABS then
    message.say(('%d of %d files are shown; :Promptside changes lists them all.'):format(TABS, #result.files))
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
        return each(result)
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
