---What a project brings that would run: read, and trusted in one version (M23, M24).
local ask = require('promptside.ask')
local client = require('promptside.client')
local float = require('promptside.float')
local message = require('promptside.message')
local order = require('promptside.order')

local M = {}

---Whether nothing is to be decided.
---@param state table The answer to `trustState`.
function M.settled(state)
  return state.state == 'none_needed' or state.state == 'trusted'
end

local function show(state)
  local lines = {}
  for _, item in ipairs(state.items) do
    lines[#lines + 1] = ('%s%s  %s'):format(item.path, item.changed and ' (changed)' or '', item.what)
  end
  vim.list_extend(lines, { '', ':Promptside trust!  trusts this version' })
  float.open('What this project brings', lines)
end

---`:Promptside trust`
---@param call promptside.Call
function M.decide(call)
  client.request('promptside/query', { type = 'trustState' }, function(err, state)
    if err then
      return message.say(message.sentence(err), 'warning')
    elseif M.settled(state) then
      return message.say(state.sentence ~= '' and state.sentence or 'There is nothing to trust here.')
    end
    local function trust()
      order.give('promptside.trust', { hash = state.hash })
    end
    if call.bang then
      return trust()
    end
    ask.pick(state.sentence .. ' ', { 'Show', 'Trust', 'Leave it as it is' }, tostring, function(choice)
      if choice == 'Trust' then
        trust()
      elseif choice == 'Show' then
        show(state)
      end
    end)
  end)
end

return M
