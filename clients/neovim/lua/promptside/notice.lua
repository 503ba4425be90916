---What stands in the way of a run, said above the list of tasks with the one thing to do about it: a daemon of
---another version, a set-up that lacks something, a project that is not trusted.
local client = require('promptside.client')
local lines_of = require('promptside.lines')
local protocol = require('promptside.protocol')
local tasks = require('promptside.tasks')
local trust = require('promptside.trust')

local M = {}

---@class promptside.Notices
---@field lines promptside.ours.PageLine[]
---@field later? boolean Whether one can begin without: it is said below what can be done.

local BEGIN = 'offer/promptside.newTask'

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

---Whether there is a list, and nothing in it is under way.
local function is_over(lines)
  for _, one in ipairs(lines) do
    local over = one.ref == 'group/completed' or one.ref == 'group/archived'
    if (one.fold == 'open' and not over) or one.ref == 'daemon' or one.ref == BEGIN then
      return false
    end
  end
  return #lines > 0
end

---A list with what one begins with where nothing is under way: a task of one's own, or seeing it work before. Where a
---task of one's own lacks something, the other comes first.
---@param lines promptside.ours.PageLine[]
---@param notices promptside.Notices
---@return promptside.ours.PageLine[]
function M.around(lines, notices)
  local said, found = notices.lines, vim.list_slice(lines)
  local last = found[#found]
  if is_over(found) then
    vim.list_extend(found, { lines_of.whole({}), choice('new', 'New Task…', 'Next: ') })
  elseif last and last.ref == BEGIN then
    local rehearse = 'Rehearse a pipeline: no agent, no cost'
    if notices.later then
      found[#found] = choice('rehearse', rehearse, 'Next: ')
      found[#found].offers[1].primary = true
      last.spans = { { text = '      ' }, unpack(last.spans, 2) }
      found[#found + 1] = last
      return vim.list_extend(vim.list_extend(found, { lines_of.whole({}) }), said)
    end
    found[#found + 1] = choice('rehearse', rehearse, '      ')
  end
  return #said > 0 and vim.list_extend(vim.list_slice(said), { lines_of.whole({}), unpack(found) }) or found
end

---@param status promptside.DaemonView
---@return promptside.Notices?
local function of_version(status)
  local ours, theirs = protocol.PROTOCOL, status.protocol
  if theirs == ours then
    return nil
  end
  local said =
    'This plugin speaks version %d, the daemon version %d. Update %s; until then you can read, not decide.'
  local older = theirs > ours and 'the plugin' or 'the program promptside'
  return {
    lines = { line(said:format(ours, theirs, older), 'failed'), choice('doctor', 'Check the set-up', '  ') },
  }
end

---@param state { state: string, sentence: string }
---@return promptside.Notices?
local function of_trust(state)
  if trust.settled(state) then
    return nil
  end
  return {
    lines = { line(state.sentence, 'waiting'), choice('trust', 'Read it, then trust it or not …', '  ') },
  }
end

---@param doctor { checks: { name: string, ok: boolean, found: string }[] }
---@return promptside.Notices?
local function of_doctor(doctor)
  for _, check in ipairs(doctor.checks) do
    local agent = check.name == 'claude' or check.name == 'login'
    if not check.ok and (agent or check.name == 'git') then
      local said = vim.startswith(check.found, 'The ') and check.found
        or ('%s: %s.'):format(check.name, check.found)
      local words = agent and 'A task of your own needs an agent. ' .. said or said
      return {
        lines = { line(words, agent and 'muted' or 'failed'), choice('doctor', 'Check the set-up', '  ') },
        later = agent or nil,
      }
    end
  end
end

---What is taken for so until there is an answer, which takes seconds: what is first shall not change under the hand.
---@return promptside.Notices
function M.guess()
  return { lines = {}, later = vim.fn.executable('claude') == 0 or nil }
end

---Ask what is to be said: one thing, the first that is in the way.
---@param begun boolean Whether there are tasks: then a set-up that lacks something is said by the task that failed.
---@param take fun(notices: promptside.Notices)
function M.ask(begun, take)
  if tasks.away() ~= '' then
    return -- asking would start the daemon again
  end
  local asked = {
    { 'status', of_version },
    { 'doctor', of_doctor },
    { 'trustState', of_trust },
  } -- stylua: ignore
  if begun then
    table.remove(asked, 2)
  end
  local function ask(number)
    local kind, of_answer = unpack(asked[number])
    client.request('promptside/query', { type = kind }, function(err, answer)
      local notices = not err and answer and of_answer(answer) or nil
      if notices or number == #asked then
        return take(notices or { lines = {} })
      end
      ask(number + 1)
    end)
  end
  ask(1)
end

return M
