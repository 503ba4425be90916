---What stands in the way of a run, said above the list of tasks with the one thing to do about it: a daemon of
---another version, a set-up that lacks something, a project that is not trusted.
local client = require('promptside.client')
local lines_of = require('promptside.lines')
local protocol = require('promptside.protocol')
local tasks = require('promptside.tasks')
local trust = require('promptside.trust')

local M = {}

---@param text string
---@param role string
---@param offer? promptside.Offer
---@return promptside.ours.PageLine
local function line(text, role, offer)
  return lines_of.whole({
    spans = { { text = text, role = role } },
    ref = offer and 'offer/' .. offer.command or '',
    offers = { offer },
  })
end

---Something to do: a verb of ours, under a name of its own.
---@param verb string
---@param title string
---@param margin string
---@return promptside.ours.PageLine
local function choice(verb, title, margin)
  local offer = { command = 'promptside.verb.' .. verb, title = title, args = {}, place = '' }
  return line(margin .. '> ' .. title, 'title', offer)
end

---Below a list without tasks: how to see it work before there is a task of one's own.
---@return promptside.ours.PageLine
function M.rehearsal()
  return choice('rehearse', 'Rehearse a pipeline: no agent, no cost', '      ')
end

---@param status promptside.DaemonView
local function version_lines(status)
  local ours, theirs = protocol.PROTOCOL, status.protocol
  if theirs == ours then
    return {}
  end
  local said =
    'This plugin speaks version %d, the daemon version %d. Update %s; until then you can read, not decide.'
  local older = theirs > ours and 'the plugin' or 'the program promptside'
  return { line(said:format(ours, theirs, older), 'failed'), choice('doctor', 'Check the set-up', '  ') }
end

---@param state { state: string, sentence: string }
local function trust_lines(state)
  if trust.settled(state) then
    return {}
  end
  return { line(state.sentence, 'waiting'), choice('trust', 'Read it, then trust it or not …', '  ') }
end

---@param doctor { checks: { name: string, ok: boolean, found: string }[] }
local function doctor_lines(doctor)
  for _, check in ipairs(doctor.checks) do
    if not check.ok and (check.name == 'git' or check.name == 'claude' or check.name == 'login') then
      local said = vim.startswith(check.found, 'The ') and check.found
        or ('%s: %s.'):format(check.name, check.found)
      return { line(said, 'failed'), choice('doctor', 'Check the set-up', '  ') }
    end
  end
  return {}
end

---Ask what is to be said: one thing, the first that is in the way. `take` is called where there is something.
---@param begun boolean Whether there are tasks: then a set-up that lacks something is said by the task that failed.
---@param take fun(lines: promptside.ours.PageLine[])
function M.ask(begun, take)
  if tasks.away() ~= '' then
    return -- asking would start the daemon again
  end
  local asked = {
    { 'status', version_lines },
    { 'doctor', doctor_lines },
    { 'trustState', trust_lines },
  } -- stylua: ignore
  if begun then
    table.remove(asked, 2)
  end
  local function ask(number)
    local kind, lines_of_answer = unpack(asked[number])
    client.request('promptside/query', { type = kind }, function(err, answer)
      local lines = not err and answer and lines_of_answer(answer) or {}
      if #lines > 0 or number == #asked then
        return take(lines)
      end
      ask(number + 1)
    end)
  end
  ask(1)
end

return M
