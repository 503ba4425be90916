---Answers given from outside their document: an option selected, what is recommended taken.
local ask = require('promptside.ask')
local client = require('promptside.client')
local message = require('promptside.message')
local subject = require('promptside.subject')

local M = {}

---Put answers into the document that a task waits with; nothing is sent by it.
---@param task promptside.TaskView
---@param answers table<string, any>
---@param done? fun() Says what has come of it.
function M.give(task, answers, done)
  local wish = { project = task.project, task = task.id, answers = answers }
  client.request('promptside/answer', wish, function(err)
    if err then
      return message.say(message.sentence(err), 'warning')
    elseif done then
      return done()
    end
    message.say('Answered. Nothing is sent yet.')
  end)
end

---The selection that a task waits for.
---@param task promptside.TaskView
local function gate_of(task)
  local gate = task.waiting_for and task.waiting_for.gate
  return gate and gate.type == 'require_selection' and gate or nil
end

---The options that a task waits to have selected.
---@param task promptside.TaskView
function M.options(task)
  local gate = gate_of(task)
  return gate and gate.options or {}
end

---`:Promptside select`
---@param call promptside.Call
function M.select(call)
  subject.with(call, gate_of, 'No task waits for a selection.', function(task)
    local options = M.options(task)
    if #options == 0 then
      return message.say(('“%s” does not wait for a selection.'):format(task.title), 'warning')
    end
    local function take(option)
      M.give(task, { [option.id] = true })
    end
    if call.text == '' then
      return ask.pick('Select: ', options, function(option)
        return ('%s  %s%s'):format(option.id, option.title, option.recommended and ' (recommended)' or '')
      end, take)
    end
    for _, option in ipairs(options) do
      if option.id:lower() == call.text:lower() then
        return take(option)
      end
    end
    message.say(('There is no option %s.'):format(call.text), 'warning')
  end)
end

local function asks(task)
  return task.waiting_for ~= nil and task.waiting_for.kind == 'decision'
end

---`:Promptside recommended`
---@param call promptside.Call
function M.recommended(call)
  subject.with(call, asks, 'No questions are open.', function(task)
    local at = { project = task.project, task = task.id }
    client.request('promptside/openForm', at, function(err, news)
      if err then
        return message.say(message.sentence(err), 'warning')
      end
      client.request('promptside/closeForm', at, function() end)
      local first = news.form and (news.form.suggestions or {})[1]
      if not first then
        return message.say('Nothing is recommended for what is still open.')
      end
      M.give(task, first.answers)
    end)
  end)
end

return M
