---Permissions that an agent asks for: allowed in a scope, or denied with a word to it.
local ask = require('promptside.ask')
local message = require('promptside.message')
local order = require('promptside.order')
local subject = require('promptside.subject')

local M = {}

M.SCOPES = { 'once', 'attempt', 'task', 'always' }

---@param task promptside.TaskView
local function open_in(task)
  return vim.tbl_filter(function(decision)
    return decision.kind == 'permission' and decision.status == 'open'
  end, task.waiting_for and task.waiting_for.decisions or {})
end

local function asks(task)
  return #open_in(task) > 0
end

---The permission that is meant; several are asked about.
local function answer(call, command, more)
  local nothing = 'No permission is asked for.'
  subject.with(call, asks, nothing, function(task)
    local function take(one)
      local args = { project = task.project, task = task.id, decision = one.id }
      order.give(command, vim.tbl_extend('force', args, more))
    end
    local open = open_in(task)
    if #open == 0 then
      return message.say(nothing, 'warning')
    elseif #open == 1 then
      return take(open[1])
    end
    ask.pick('Which one? ', open, function(one)
      return ('%s  %s %s'):format(one.id, one.tool, one.what)
    end, take)
  end)
end

---`:Promptside allow`
---@param call promptside.Call
function M.allow(call)
  local scope = call.text ~= '' and call.text or 'once'
  if not vim.list_contains(M.SCOPES, scope) then
    return message.say('A permission is given once, or for an attempt, a task, or always.', 'warning')
  end
  answer(call, 'promptside.allow', { scope = scope })
end

---`:Promptside deny`
---@param call promptside.Call
function M.deny(call)
  answer(call, 'promptside.deny', { text = call.text })
end

return M
