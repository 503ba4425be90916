---Comments on lines for the agent, kept here until they go with a redo or a word to it (ED-12).
local address = require('promptside.address')
local message = require('promptside.message')
local tasks = require('promptside.tasks')

local M = {}

local SPACE = vim.api.nvim_create_namespace('promptside.comments')

---@class promptside.Said : promptside.LineComment
---@field project string
---@field task integer
---@field old boolean Whether it is about what was there before the attempt.

---@type promptside.Said[]
local said = {}

---What a buffer shows: a path of a project, and the task whose change it is, where the name says so.
---@param buf integer
---@return { project: string, path: string, task: integer, old: boolean }?
local function place_of(buf)
  local name = vim.api.nvim_buf_get_name(buf)
  if vim.startswith(name, 'promptside://') then
    local task, path = name:gsub('%?.*$', ''):match('^promptside://%a+/(%d+)/[^/]+/%d+/(.+)$')
    local found = address.parse(name)
    local view = task and tasks.get(found and found.project or '', tonumber(task) or 0)
    local old = vim.startswith(name, 'promptside://before/')
    return view and { project = view.project, path = vim.uri_decode(path), task = view.id, old = old } or nil
  end
  local root = vim.fs.root(buf, { '.promptside', '.git' })
  if name == '' or vim.bo[buf].buftype ~= '' or not root or not vim.startswith(name, root .. '/') then
    return nil
  end
  return { project = root, path = name:sub(#root + 2), task = 0, old = false }
end

---The tasks that comments on a project's files could be for: those that could be sent back, or that run.
---@param project string
---@return promptside.TaskView[]
local function task_for(project)
  return vim.tbl_filter(function(task)
    local redo, word = tasks.offer(task, 'redo'), tasks.offer(task, 'interrupt')
    return task.project == project and ((redo and not redo.blocked) or (word and not word.blocked)) or false
  end, tasks.list())
end

---Show the comments of a buffer below their lines.
---@param buf integer
function M.draw(buf)
  if not vim.api.nvim_buf_is_loaded(buf) then
    return
  end
  vim.api.nvim_buf_clear_namespace(buf, SPACE, 0, -1)
  local place = place_of(buf)
  local count = vim.api.nvim_buf_line_count(buf)
  for _, one in ipairs(place and said or {}) do
    if
      one.project == place.project
      and one.path == place.path
      and one.old == place.old
      and one.line <= count
    then
      vim.api.nvim_buf_set_extmark(buf, SPACE, math.max(one.line - 1, 0), 0, {
        virt_lines = { { { '  >> ' .. one.text, 'PromptsideNote' } } },
        sign_text = '>>',
        sign_hl_group = 'PromptsideNote',
      })
    end
  end
end

local function draw_all()
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    M.draw(buf)
  end
end

---The comments that go to the agent of a task, as the protocol has them.
---@param project string
---@param task integer
---@return promptside.LineComment[]
function M.of(project, task)
  local found = {}
  for _, one in ipairs(said) do
    if one.task == task and (project == '' or one.project == project) then
      found[#found + 1] = {
        path = one.path,
        text = one.text,
        line = one.line,
        end_line = one.end_line,
        quote = one.quote,
      }
    end
  end
  return found
end

---They reached the agent.
---@param sent promptside.LineComment[]
function M.sent(sent)
  said = vim.tbl_filter(function(one)
    for _, other in ipairs(sent) do
      if other.path == one.path and other.line == one.line and other.text == one.text then
        return false
      end
    end
    return true
  end, said)
  draw_all()
end

local function keep(place, task, first, last, text)
  said = vim.tbl_filter(function(one)
    return not (one.project == place.project and one.path == place.path and one.line == first)
  end, said)
  if text ~= '' then
    local lines = vim.api.nvim_buf_get_lines(0, first - 1, last, false)
    said[#said + 1] = {
      project = place.project,
      task = task,
      path = place.path,
      old = place.old,
      text = text,
      line = first,
      end_line = last > first and last or 0,
      quote = table.concat(lines, '\n'),
    }
    local count = #M.of(place.project, task)
    message.say(('%d comment%s for task %d; :Promptside redo sends %s.'):format(
      count,
      count == 1 and '' or 's',
      task,
      count == 1 and 'it' or 'them' -- stylua: ignore
    ))
  else
    message.say('The comment is gone.')
  end
  draw_all()
end

---Comment on lines of the current buffer; an empty text takes the comment away.
---@param first integer
---@param last integer
---@param text? string
function M.add(first, last, text)
  local place = place_of(vim.api.nvim_get_current_buf())
  if not place then
    return message.say('Comments are for the files of a project, and for what an attempt changed.', 'warning')
  end
  local function with_task(task)
    if text and text ~= '' then
      return keep(place, task, first, last, text)
    end
    local old = ''
    for _, one in ipairs(said) do
      if one.project == place.project and one.path == place.path and one.line == first then
        old = one.text
      end
    end
    vim.ui.input({ prompt = 'Comment for the agent: ', default = old }, function(words)
      if words and (vim.trim(words) ~= '' or old ~= '') then
        keep(place, task, first, last, vim.trim(words))
      end
    end)
  end
  if place.task > 0 then
    return with_task(place.task)
  end
  local found = task_for(place.project)
  if #found == 0 then
    return message.say('No task of this project can take a comment now.', 'warning')
  elseif #found == 1 then
    return with_task(found[1].id)
  end
  require('promptside.ask').pick('For which task? ', found, function(task)
    return ('%d %s'):format(task.id, task.title)
  end, function(task)
    with_task(task.id)
  end)
end

return M
