---`:Promptside <verb> [args]`: read, completed, and handed to its verb.
local answers = require('promptside.answers')
local buffers = require('promptside.buffers')
local message = require('promptside.message')
local permissions = require('promptside.permissions')
local subject = require('promptside.subject')
local tasks = require('promptside.tasks')
local verbs = require('promptside.verbs').all

local M = {}

---The terminal's words for the same.
local ALSO = {
  say = 'interrupt',
  ['take-back'] = 'takeback',
  ['take-over'] = 'takeover',
  diff = 'changes',
} -- stylua: ignore

---Where the person is in a file: the selection, or the cursor with what is wrong there.
---@return { uri?: string, range?: lsp.Range, diagnostics?: string[] }
local function place(call)
  local buf = vim.api.nvim_get_current_buf()
  local name = vim.api.nvim_buf_get_name(buf)
  if vim.bo[buf].buftype ~= '' or name == '' then
    return {}
  end
  local found = { uri = vim.uri_from_bufnr(buf) }
  local cursor = vim.api.nvim_win_get_cursor(0)
  if call.range > 0 then
    found.range = {
      start = { line = call.line1 - 1, character = 0 },
      ['end'] = { line = call.line2, character = 0 },
    }
  else
    local at = { line = cursor[1] - 1, character = 0 }
    found.range = { start = at, ['end'] = at }
  end
  local said = {}
  for _, diagnostic in ipairs(vim.diagnostic.get(buf, { lnum = cursor[1] - 1 })) do
    if diagnostic.source ~= 'promptside' then
      said[#said + 1] = diagnostic.message
    end
  end
  found.diagnostics = #said > 0 and said or nil
  return found
end

local function wanted(mods)
  local split = (mods.split or '') ~= '' or mods.vertical or (mods.tab or -1) >= 0 or mods.horizontal
  local side = mods.split ~= '' and mods.split or (mods.horizontal and 'belowright' or nil)
  return split and { split = side, vertical = mods.vertical, tab = mods.tab >= 0 and mods.tab or nil } or nil
end

---@param call table What `nvim_create_user_command` gives.
function M.run(call)
  local name, text = call.args:match('^(%S*)%s*(.-)%s*$')
  local mods = wanted(call.smods)
  if name == '' then
    return buffers.edit('promptside://tasks', mods)
  end
  local bang = call.bang
  if name:sub(-1) == '!' then
    name, bang = name:sub(1, -2), true
  end
  local verb = verbs[ALSO[name] or name]
  if not verb then
    local near = vim.tbl_filter(function(other)
      return vim.startswith(other, name)
    end, vim.tbl_keys(verbs))
    if #near ~= 1 then
      return message.say(
        ('“%s” is nothing that Promptside can do here.  :Promptside <Tab> lists it.'):format(name),
        'warning'
      )
    end
    verb = verbs[near[1]]
  end
  local about = subject.here()
  if text ~= '' and verb.takes ~= 'text' then
    local number = text:match('^#?(%d+)')
    if verb.takes == 'task' and number then
      about, text = { task = tonumber(number) }, ''
    elseif not verb.takes or verb.takes == 'task' then
      return message.say(('“%s” is no task.'):format(text), 'warning')
    end
  end
  verb.run({
    bang = bang,
    text = text,
    mods = mods,
    place = place(call),
    selected = call.range > 0,
    lines = { call.line1, call.line2 },
    target = about,
  })
end

---The task whose options and stages are completed.
local function current()
  local about = subject.here()
  local here = about.task and tasks.get(about.project or '', about.task)
    or tasks.owner(vim.api.nvim_buf_get_name(0))
  if here then
    return { here }
  end
  return tasks.list()
end

local COMPLETE = {
  task = function()
    return vim.tbl_map(function(task)
      return vim.fs.basename(task.directory) -- 12-add-login: the number counts
    end, tasks.list())
  end,
  option = function()
    local found = {}
    for _, task in ipairs(current()) do
      for _, option in ipairs(answers.options(task)) do
        found[#found + 1] = option.id
      end
    end
    return found
  end,
  stage = function()
    local found = {}
    for _, task in ipairs(current()) do
      for _, stage in ipairs(tasks.earlier(task)) do
        found[#found + 1] = stage.id
      end
    end
    return found
  end,
  scope = function()
    return permissions.SCOPES
  end,
  file = function(lead)
    local found = {}
    for _, task in ipairs(current()) do
      for _, stage in ipairs(task.stages) do
        local last = stage.attempts[#stage.attempts]
        for _, change in ipairs(last and last.changes or {}) do
          found[#found + 1] = change.path
        end
      end
    end
    return #found > 0 and found or vim.fn.getcompletion(lead, 'file')
  end,
}

---@param lead string
---@param line string
---@return string[]
function M.complete(lead, line)
  local rest = line:match('Promptside!?%s+(.*)$') or ''
  local name = rest:match('^(%S+)%s')
  local words
  if not name then
    words = vim.tbl_keys(verbs)
    table.sort(words)
  else
    local verb = verbs[(name:gsub('!$', ''))]
    local take = verb and COMPLETE[verb.takes or '']
    words = take and take(lead) or {}
  end
  local seen = {}
  return vim.tbl_filter(function(word)
    local fits = vim.startswith(word:lower(), lead:lower()) and not seen[word]
    seen[word] = true
    return fits
  end, words)
end

return M
