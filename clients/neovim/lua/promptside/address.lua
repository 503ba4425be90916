---Names of our buffers: `promptside://tasks`, `promptside://12/research/1/output`; with `?project=…` where a number
---alone would be two tasks.
local M = {}

local SCHEME = 'promptside://'
---Pages that are of no task, and what the protocol calls them.
local PAGES = { 'tasks', 'rules', 'doctor', 'pipelines', 'projects' }

---@class promptside.Address
---@field kind 'page'|'output'|'log'|'content'
---@field name? string Of a page.
---@field project string Empty where the server is to find it.
---@field task integer 0 is none.
---@field stage string
---@field attempt integer
---@field pipeline string

---What a name means.
---@param name string
---@return promptside.Address?
function M.parse(name)
  if not vim.startswith(name, SCHEME) then
    return nil
  end
  local path, query = name:sub(#SCHEME + 1), ''
  local mark = path:find('?', 1, true)
  if mark then
    path, query = path:sub(1, mark - 1), path:sub(mark + 1)
  end
  local project = query:match('project=([^&]*)') or ''
  local found =
    { kind = 'content', project = vim.uri_decode(project), task = 0, stage = '', attempt = 0, pipeline = '' }
  local parts = vim.split(path, '/', { trimempty = true })
  local number = tonumber(parts[1])
  if parts[1] == 'log' then
    found.kind = 'log'
  elseif #parts == 1 and vim.list_contains(PAGES, parts[1]) then
    found.kind, found.name = 'page', parts[1]
  elseif parts[1] == 'pipeline' and parts[2] then
    found.kind, found.name, found.pipeline = 'page', 'pipeline', table.concat(parts, '/', 2)
  elseif number and #parts == 1 then
    found.kind, found.name, found.task = 'page', 'task', number
  elseif number and #parts == 2 and parts[2] == 'history' then
    found.kind, found.name, found.task = 'page', 'history', number
  elseif number and parts[#parts] == 'output' then
    found.kind, found.task = 'output', number
    found.stage, found.attempt = #parts == 4 and parts[2] or '', #parts == 4 and tonumber(parts[3]) or 0
  end
  return found
end

---The shortest name under which something is found again.
---@param path string What stands behind `promptside://`.
---@param project? string
---@return string
function M.name(path, project)
  if not project or project == '' then
    return SCHEME .. path
  end
  local number = tonumber(path:match('^(%d+)') or path:match('^%a+/(%d+)/'))
  if number and #require('promptside.tasks').numbered(number) == 1 then
    return SCHEME .. path
  end
  return ('%s%s?project=%s'):format(SCHEME, path, vim.uri_encode(project, 'rfc3986'))
end

---The name of the page of a task.
---@param project string
---@param task integer
---@return string
function M.task(project, task)
  return M.name(tostring(task), project)
end

---The name of the output of an attempt.
---@param project string
---@param task integer
---@param stage string
---@param attempt integer
---@return string
function M.output(project, task, stage, attempt)
  return M.name(('%d/%s/%d/output'):format(task, stage, attempt), project)
end

---A name as short as it can be; the address of a document of ours keeps its meaning.
---@param uri string
---@return string
function M.short(uri)
  local found = M.parse(uri)
  if not found or found.project == '' then
    return uri
  end
  return M.name((uri:sub(#SCHEME + 1):gsub('%?.*$', '')), found.project)
end

---What a document is opened by: ours by its short name, a file by its path.
---@param uri string
---@return string
function M.path(uri)
  return vim.startswith(uri, SCHEME) and M.short(uri) or vim.uri_to_fname(uri)
end

---Whether a file is the draft of a task that is not there yet.
---@param path string
---@return boolean
function M.is_draft(path)
  return path:find('/.promptside/drafts/', 1, true) ~= nil
end

---Whether a file is a form document or a draft of a task.
---@param path string
---@return boolean
function M.is_form(path)
  return path:find('/.promptside/tasks/', 1, true) ~= nil or M.is_draft(path)
end

return M
