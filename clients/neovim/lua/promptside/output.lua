---What an agent writes, as it writes it: followed in the windows whose cursor is on the last line, and only there.
local address = require('promptside.address')
local buffers = require('promptside.buffers')
local client = require('promptside.client')
local message = require('promptside.message')
local tasks = require('promptside.tasks')

local M = {}

---Lines that a buffer holds; what is older is in the transcript.
M.MOST = 20000
local SPACE = vim.api.nvim_create_namespace('promptside.output')
local PAUSE = 50
local GROUPS = {
  stderr = 'PromptsideStderr',
  note = 'PromptsideMuted',
  status = 'PromptsideMuted',
  result = 'PromptsideMuted',
}

---@class promptside.Stream
---@field buf integer
---@field address promptside.Address
---@field project string
---@field task integer
---@field stage string
---@field attempt integer
---@field flow? integer
---@field due promptside.OutputEntry[]
---@field blocks table<string, { text: string, mark: integer }>
---@field last? string The block that the last line belongs to.
---@field empty boolean
---@field cut boolean
---@field ended boolean
---@field scheduled boolean

---@type table<integer, promptside.Stream>
local streams = {}
---How far each window has been read.
---@type table<integer, integer>
local seen = {}

local function clean(text)
  return (text:gsub('\r\n?', '\n'):gsub('[%z\1-\8\11-\31\127]', ''))
end

---An entry as lines, each with the groups of its parts.
---@param entry { role: string, text: string, path?: string, ok?: boolean }
---@return string[], { [1]: integer, [2]: integer, [3]: integer, [4]: string }[]
function M.lines_of(entry)
  local lines = vim.split((clean(entry.text):gsub('\n+$', '')), '\n')
  local marks = {}
  if entry.role == 'tool' then
    local verb, rest = lines[1]:match('^(%S+)%s*(.*)$')
    if verb then
      local head = verb .. (' '):rep(math.max(8 - #verb, 0)) .. ' '
      lines[1] = head .. rest
      marks[1] = { 0, 0, #verb, 'PromptsideTool' }
      marks[2] = { 0, #head, #lines[1], 'PromptsidePath' }
      for number = 2, #lines do
        lines[number] = (' '):rep(#head) .. lines[number]
      end
    end
  elseif entry.role ~= 'text' then
    for number, line in ipairs(lines) do
      if entry.role == 'result' then
        lines[number] = '         ' .. line
      end
      local group = entry.ok == false and 'PromptsideFailed' or GROUPS[entry.role]
      marks[#marks + 1] = { number - 1, 0, #lines[number], group }
    end
  end
  return lines, marks
end

local function paint(buf, first, marks)
  for _, mark in ipairs(marks) do
    if mark[4] and mark[3] > mark[2] then
      vim.api.nvim_buf_set_extmark(
        buf,
        SPACE,
        first + mark[1],
        mark[2],
        { end_col = mark[3], hl_group = mark[4] }
      )
    end
  end
end

---Put an entry behind everything else; the row where it begins.
local function append(stream, entry)
  local lines, marks = M.lines_of(entry)
  local buf = stream.buf
  local first = stream.empty and 0 or vim.api.nvim_buf_line_count(buf)
  vim.api.nvim_buf_set_lines(buf, first, -1, false, lines)
  stream.empty = false
  paint(buf, first, marks)
  return first, first + #lines
end

local function add(stream, entry)
  local id = entry.block
  if not id then
    stream.last = nil
    if entry.text ~= '' then
      append(stream, entry)
    end
    return
  end
  local block = stream.blocks[id]
  local text = (entry.replace or not block) and entry.text or block.text .. entry.text
  local whole = { role = entry.role, text = text, ok = entry.ok }
  local buf = stream.buf
  if block then
    local at = vim.api.nvim_buf_get_extmark_by_id(buf, SPACE, block.mark, { details = true })
    local first, last = at[1], at[3] and at[3].end_row
    if first and last then
      vim.api.nvim_buf_clear_namespace(buf, SPACE, first, last)
      local lines, marks = {}, {}
      if text ~= '' then
        lines, marks = M.lines_of(whole)
      end
      vim.api.nvim_buf_set_lines(buf, first, last, false, lines)
      paint(buf, first, marks)
      local finish = first + #lines
      stream.empty = vim.api.nvim_buf_line_count(buf) == 1
        and vim.api.nvim_buf_get_lines(buf, 0, 1, false)[1] == ''
      stream.blocks[id] = {
        text = text,
        mark = vim.api.nvim_buf_set_extmark(buf, SPACE, first, 0, { end_row = finish, strict = false }),
      }
      return
    end
  end
  if text == '' then
    return
  end
  local first, last = append(stream, whole)
  stream.blocks[id] = {
    text = text,
    mark = vim.api.nvim_buf_set_extmark(buf, SPACE, first, 0, { end_row = last, strict = false }),
  }
end

---`#14 Research 1  running, 1 min 12 s`, and whether this window follows.
---@param stream promptside.Stream
---@param win integer
local function winbar(stream, win)
  local task = tasks.get(stream.project, stream.task)
  local stage = task and tasks.stage(task, stream.stage)
  local words = { ('#%d %s %d'):format(stream.task, stage and stage.name or stream.stage, stream.attempt) }
  for _, attempt in ipairs(stage and stage.attempts or {}) do
    if attempt.n == stream.attempt then
      words[#words + 1] = '  ' .. attempt.status
    end
  end
  local away = tasks.away()
  local right = ''
  if away ~= '' then
    right = 'the daemon is away'
  elseif not stream.ended or #vim.api.nvim_buf_get_lines(stream.buf, 0, 2, false) > 1 then
    local count = vim.api.nvim_buf_line_count(stream.buf)
    if vim.api.nvim_win_get_cursor(win)[1] >= count then
      right = stream.ended and '' or 'following'
    else
      local new = count - (seen[win] or count)
      right = new > 0 and ('%d new line%s, G to follow'):format(new, new == 1 and '' or 's')
        or (stream.ended and '' or 'G to follow')
    end
  end
  local left = table.concat(words):gsub('%%', '%%%%')
  vim.wo[win][0].winbar = '%#PromptsideTitle# ' .. left .. '%#PromptsideMuted#%=' .. right .. ' %*'
end

local function bars(stream)
  for _, win in ipairs(vim.fn.win_findbuf(stream.buf)) do
    winbar(stream, win)
  end
end

---Write what has come, at most twenty times a second.
---@param stream promptside.Stream
local function flush(stream)
  stream.scheduled = false
  local buf = stream.buf
  if not vim.api.nvim_buf_is_loaded(buf) then
    return
  end
  local due = stream.due
  stream.due = {}
  local views = {}
  local before = vim.api.nvim_buf_line_count(buf)
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    local at_end = vim.api.nvim_win_get_cursor(win)[1] >= before
    if at_end then
      seen[win] = nil
    else
      seen[win] = seen[win] or before
    end
    views[win] = { at_end = at_end, view = vim.api.nvim_win_call(win, vim.fn.winsaveview) }
  end
  vim.bo[buf].modifiable = true
  for _, entry in ipairs(due) do
    add(stream, entry)
  end
  local surplus = vim.api.nvim_buf_line_count(buf) - M.MOST
  if surplus > 0 then
    vim.api.nvim_buf_set_lines(buf, stream.cut and 1 or 0, surplus + 1, false, stream.cut and {} or {
      '(What is older is in :Promptside transcript.)',
    })
    stream.cut = true
  end
  vim.bo[buf].modifiable = false
  vim.bo[buf].modified = false
  local count = vim.api.nvim_buf_line_count(buf)
  for win, was in pairs(views) do
    if was.at_end then
      vim.api.nvim_win_set_cursor(win, { count, 0 })
    elseif surplus <= 0 then
      vim.api.nvim_win_call(win, function()
        vim.fn.winrestview(was.view)
      end)
    end
    winbar(stream, win)
  end
end

local function soon(stream)
  if not stream.scheduled then
    stream.scheduled = true
    vim.defer_fn(function()
      flush(stream)
    end, PAUSE)
  end
end

---A piece of output.
---@param news table `promptside/output`
function M.take(news)
  for _, stream in pairs(streams) do
    if stream.flow == news.flow then
      stream.project, stream.task = news.project, news.task
      stream.stage, stream.attempt = news.stage, news.attempt
      vim.list_extend(stream.due, news.entries or {})
      if news.error and news.error ~= '' then
        stream.due[#stream.due + 1] = { role = 'stderr', text = news.error }
      end
      stream.ended = stream.ended or news.ended or (news.error or '') ~= ''
      soon(stream)
    end
  end
end

local function dress(win)
  local set = vim.wo[win][0]
  set.wrap = true
  set.linebreak = true
  set.breakindent = true
  set.number = false
  set.relativenumber = false
  set.signcolumn = 'no'
  set.foldcolumn = '0'
  set.list = false
  set.spell = false
end

---Fill a buffer with the output of an attempt, from its beginning.
---@param buf integer
---@param at promptside.Address
function M.open(buf, at)
  local old = streams[buf]
  local stream = {
    buf = buf,
    address = at,
    project = at.project,
    task = at.task,
    stage = at.stage,
    attempt = at.attempt,
    due = {},
    blocks = {},
    empty = true,
    cut = false,
    ended = false,
    scheduled = false,
  } -- stylua: ignore
  streams[buf] = stream
  buffers.set_lines(buf, 0, -1, { '' })
  require('promptside.keys').map(buf, 'output')
  local group = vim.api.nvim_create_augroup('promptside.output.' .. buf, {})
  vim.api.nvim_create_autocmd('BufWinEnter', {
    group = group,
    buffer = buf,
    callback = function()
      local win = vim.api.nvim_get_current_win()
      dress(win)
      vim.api.nvim_win_set_cursor(win, { vim.api.nvim_buf_line_count(buf), 0 })
      winbar(streams[buf], win)
    end,
  })
  vim.api.nvim_create_autocmd('CursorMoved', {
    group = group,
    buffer = buf,
    callback = function()
      local win = vim.api.nvim_get_current_win()
      local count = vim.api.nvim_buf_line_count(buf)
      if vim.api.nvim_win_get_cursor(win)[1] >= count then
        seen[win] = nil
      else
        seen[win] = seen[win] or count
      end
      winbar(streams[buf], win)
    end,
  })
  vim.api.nvim_create_autocmd({ 'BufUnload', 'BufWipeout' }, {
    group = group,
    buffer = buf,
    callback = function()
      local gone, server = streams[buf], client.get()
      streams[buf] = nil
      if gone and gone.flow and server and not gone.ended then
        server:request('promptside/unfollow', { flow = gone.flow }, function() end)
      end
      pcall(vim.api.nvim_del_augroup_by_id, group)
    end,
  })
  local server = client.get()
  if old and old.flow and server and not old.ended then
    server:request('promptside/unfollow', { flow = old.flow }, function() end)
  end
  local wish = { project = at.project, task = at.task, stage = at.stage, attempt = at.attempt }
  client.request('promptside/follow', wish, function(err, result)
    if err then
      buffers.set_lines(buf, 0, -1, { message.sentence(err) })
      return
    end
    stream.flow = result.flow
  end)
  tasks.listen(function(task)
    if streams[buf] ~= stream then
      return true
    end
    if task.id == stream.task and (stream.project == '' or task.project == stream.project) then
      vim.schedule(function()
        if streams[buf] == stream and vim.api.nvim_buf_is_loaded(buf) then
          bars(stream)
        end
      end)
      M.go_on(stream, task)
    end
    return false
  end)
end

---The name of the output of an attempt.
---@param project string
---@param task integer
---@param stage string
---@param attempt integer
---@return string
function M.name(project, task, stage, attempt)
  return address.name(('%d/%s/%d/output'):format(task, stage, attempt), project)
end

---Where the output of a task is followed, it goes on with the next attempt.
---@param stream promptside.Stream
---@param task promptside.TaskView
function M.go_on(stream, task)
  local stage, attempt = tasks.running(task)
  if not stage or not attempt or (stage.id == stream.stage and attempt.n == stream.attempt) then
    return
  end
  vim.schedule(function()
    for _, win in ipairs(vim.fn.win_findbuf(stream.buf)) do
      local last = vim.api.nvim_buf_line_count(stream.buf)
      if stream.stage ~= '' and vim.api.nvim_win_get_cursor(win)[1] >= last then
        vim.api.nvim_win_call(win, function()
          buffers.edit(M.name(task.project, task.id, stage.id, attempt.n))
        end)
      end
    end
  end)
end

---The task of an output buffer.
---@param buf integer
---@return { project: string, task: integer }?
function M.target(buf)
  local stream = streams[buf]
  return stream and { project = stream.project, task = stream.task } or nil
end

---Show the output of an attempt, the newest if none is named, in a window of its own; the cursor stays where it is
---unless it is asked for by name. With `there` only a window that shows output already is taken, and not from another
---agent that still writes in it.
---@param project string
---@param task integer
---@param options { stage?: string, attempt?: integer, mods?: table, focus?: boolean, there?: boolean }
function M.show(project, task, options)
  local view = tasks.get(project, task)
  local stage, attempt = options.stage, options.attempt
  if view and not stage then
    local newest = -1
    for _, one in ipairs(view.stages) do
      for _, run in ipairs(one.attempts) do
        local started = run.started or math.huge
        if started >= newest then
          newest, stage, attempt = started, one.id, run.n
        end
      end
    end
    project = view.project
  end
  if not stage or not attempt then
    return message.say('There is no output yet: no stage of this task has run.')
  end
  local name = M.name(project, task, stage, attempt)
  local before = vim.api.nvim_get_current_win()
  for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    local shown = address.parse(vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(win)))
    local stream = streams[vim.api.nvim_win_get_buf(win)]
    local follows = stream and not stream.ended and (stream.project ~= project or stream.task ~= task)
    if shown and shown.kind == 'output' and not options.mods and not (options.there and follows) then
      vim.api.nvim_win_call(win, function()
        buffers.edit(name)
      end)
      if options.focus then
        vim.api.nvim_set_current_win(win)
      end
      return
    end
  end
  if options.there then
    return
  end
  local mods = options.mods
  if not mods then
    local how = require('promptside.settings').get().output
    mods = how == 'vsplit' and { vertical = true, split = 'belowright' }
      or how == 'tab' and { tab = vim.fn.tabpagenr() }
      or { split = 'belowright' }
    if not mods.vertical and not mods.tab then
      vim.cmd(
        ('belowright %dsplit %s'):format(math.max(math.floor(vim.o.lines / 3), 5), vim.fn.fnameescape(name))
      )
      mods = nil
    end
  end
  if mods then
    buffers.edit(name, mods)
  end
  if not options.focus and vim.api.nvim_win_is_valid(before) then
    vim.api.nvim_set_current_win(before)
  end
end

return M
