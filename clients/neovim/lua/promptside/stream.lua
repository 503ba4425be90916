---What an agent writes, as it writes it: followed in the windows whose cursor is on the last line, and only there.
local address = require('promptside.address')
local buffers = require('promptside.buffers')
local client = require('promptside.client')
local entries = require('promptside.entries')
local message = require('promptside.message')
local tasks = require('promptside.tasks')
local window = require('promptside.window')

local M = {}

---Lines that a buffer holds; what is older is in the transcript.
M.MOST = 20000
local PAUSE = 50

---@class promptside.Stream
---@field buf integer
---@field written promptside.Written
---@field project string
---@field task integer
---@field stage string
---@field attempt integer
---@field flow? integer What the server calls it.
---@field due promptside.OutputEntry[]
---@field cut boolean
---@field ended boolean
---@field scheduled boolean

---@type table<integer, promptside.Stream>
local streams = {}
---How far each window has been read, where it does not follow.
---@type table<integer, integer>
local seen = {}

---The stream of a buffer.
---@param buf integer
---@return promptside.Stream?
function M.of(buf)
  return streams[buf]
end

---Note how far a window has been read, of so many lines: whether it follows.
---@param win integer
---@param count integer
local function follows(win, count)
  local at_end = vim.api.nvim_win_get_cursor(win)[1] >= count
  seen[win] = not at_end and (seen[win] or count) or nil
  return at_end
end

---`#14 Research 1  running`, and whether this window follows.
---@param stream promptside.Stream
---@param win integer
local function bar(stream, win)
  local task = tasks.get(stream.project, stream.task)
  local stage = task and tasks.stage(task, stream.stage)
  local name = ('#%d %s %d'):format(stream.task, stage and stage.name or stream.stage, stream.attempt)
  local left = name
  for _, attempt in ipairs(stage and stage.attempts or {}) do
    if attempt.n == stream.attempt then
      left = ('%s   %s'):format(left, attempt.status)
    end
  end
  local waiting = task and task.waiting_for
  local asks = waiting and waiting.kind == 'decision' and waiting.stage == stream.stage and not stream.ended
  local right, count = '', vim.api.nvim_buf_line_count(stream.buf)
  if tasks.away() ~= '' then
    right = 'the daemon is away'
  elseif not stream.ended or count > 1 then
    if vim.api.nvim_win_get_cursor(win)[1] >= count then
      right = stream.ended and '' or 'following'
    else
      local new = count - (seen[win] or count)
      right = new > 0 and ('%d new line%s, G to follow'):format(new, new == 1 and '' or 's')
        or (stream.ended and '' or 'G to follow')
    end
  end
  if asks then
    left = left .. ', and waits for you   :Promptside next'
    local room = vim.api.nvim_win_get_width(win) - vim.fn.strdisplaywidth(right) - 4
    left = vim.fn.strdisplaywidth(left) <= room and left or name .. '   waits'
  end
  window.bar(win, asks and 'PromptsideWaiting' or 'PromptsideTitle', left, right)
end

---Write what has come, at most twenty times a second.
---@param stream promptside.Stream
local function flush(stream)
  stream.scheduled = false
  local buf = stream.buf
  if not vim.api.nvim_buf_is_loaded(buf) then
    return
  end
  local due, views = stream.due, {}
  stream.due = {}
  local before = vim.api.nvim_buf_line_count(buf)
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    local at_end = follows(win, before)
    views[win] = { at_end = at_end, view = vim.api.nvim_win_call(win, vim.fn.winsaveview) }
  end
  vim.bo[buf].modifiable = true
  for _, entry in ipairs(due) do
    entries.add(stream.written, entry)
  end
  local surplus = vim.api.nvim_buf_line_count(buf) - M.MOST
  if surplus > 0 then
    local said = stream.cut and {} or { '(What is older is in :Promptside transcript.)' }
    vim.api.nvim_buf_set_lines(buf, stream.cut and 1 or 0, surplus + 1, false, said)
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
    bar(stream, win)
  end
end

---A piece of output.
---@param news promptside.ours.OutputNews
function M.take(news)
  for _, stream in pairs(streams) do
    if stream.flow == news.flow then
      local fault = news.error or ''
      stream.project, stream.task = news.project, news.task
      stream.stage, stream.attempt = news.stage, news.attempt
      vim.list_extend(stream.due, news.entries or {})
      if fault ~= '' then
        stream.due[#stream.due + 1] = { role = 'stderr', text = fault }
      end
      stream.ended = stream.ended or news.ended or fault ~= ''
      if not stream.scheduled then
        stream.scheduled = true
        vim.defer_fn(function()
          flush(stream)
        end, PAUSE)
      end
    end
  end
end

---@param stream? promptside.Stream
local function unfollow(stream)
  local server = client.get()
  if stream and stream.flow and server and not stream.ended then
    server:request('promptside/unfollow', { flow = stream.flow }, function() end)
  end
end

---Where the output of a task is followed, it goes on with the next attempt.
---@param stream promptside.Stream
---@param task promptside.TaskView
local function go_on(stream, task)
  local stage, attempt = tasks.running(task)
  if not stage or not attempt or (stage.id == stream.stage and attempt.n == stream.attempt) then
    return
  end
  vim.schedule(function()
    for _, win in ipairs(vim.fn.win_findbuf(stream.buf)) do
      local last = vim.api.nvim_buf_line_count(stream.buf)
      if stream.stage ~= '' and vim.api.nvim_win_get_cursor(win)[1] >= last then
        vim.api.nvim_win_call(win, function()
          buffers.edit(address.output(task.project, task.id, stage.id, attempt.n))
        end)
      end
    end
  end)
end

---Have the server tell what is written, and go along with the task.
---@param stream promptside.Stream
local function follow(stream)
  local buf = stream.buf
  local wish =
    { project = stream.project, task = stream.task, stage = stream.stage, attempt = stream.attempt }
  client.request('promptside/follow', wish, function(err, result)
    if err then
      buffers.put(buf, { message.sentence(err) })
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
          for _, win in ipairs(vim.fn.win_findbuf(buf)) do
            bar(stream, win)
          end
        end
      end)
      go_on(stream, task)
    end
    return false
  end)
end

---Fill a buffer with the output of an attempt, from its beginning.
---@param buf integer
---@param at promptside.Address
function M.open(buf, at)
  unfollow(streams[buf])
  local stream = {
    buf = buf,
    written = entries.begin(buf),
    project = at.project,
    task = at.task,
    stage = at.stage,
    attempt = at.attempt,
    due = {},
    cut = false,
    ended = false,
    scheduled = false,
  } -- stylua: ignore
  streams[buf] = stream
  buffers.put(buf, { '' })
  vim.bo[buf].formatlistpat = [[^\S\+\s\{2,}]] -- a tool and what it does: the rest stays below what it does
  require('promptside.keys').map(buf, 'output')
  local group = vim.api.nvim_create_augroup('promptside.output.' .. buf, {})
  vim.api.nvim_create_autocmd('BufWinEnter', {
    group = group,
    buffer = buf,
    callback = function()
      local win = vim.api.nvim_get_current_win()
      window.dress(win, { breakindentopt = 'list:-1' })
      vim.api.nvim_win_set_cursor(win, { vim.api.nvim_buf_line_count(buf), 0 })
      bar(streams[buf], win)
    end,
  })
  vim.api.nvim_create_autocmd('CursorMoved', {
    group = group,
    buffer = buf,
    callback = function()
      local win = vim.api.nvim_get_current_win()
      follows(win, vim.api.nvim_buf_line_count(buf))
      bar(streams[buf], win)
    end,
  })
  buffers.at_end(buf, group, function()
    unfollow(streams[buf])
    streams[buf] = nil
  end)
  follow(stream)
end

return M
