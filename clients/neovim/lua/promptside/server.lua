---The process of the language server: run, and what is known of it where it does not start.
local program = require('promptside.program')

local M = {}

local WAIT = 5000

---A server that could not be run, for an editor that expects one: it ends at once.
---@param dispatchers vim.lsp.rpc.Dispatchers
local function stillborn(dispatchers)
  local gone = false
  vim.schedule(function()
    gone = true
    dispatchers.on_exit(0, 0)
  end)
  return {
    request = function()
      return false
    end,
    notify = function()
      return false
    end,
    is_closing = function()
      return gone
    end,
    terminate = function() end,
  }
end

---Run it. How it ended is told to us alone: the editor would say it in more lines than the screen has for it.
---@param dispatchers vim.lsp.rpc.Dispatchers
---@param ended fun(code: integer, signal: integer, began: boolean) `began` is whether it could ever be spoken to.
function M.run(dispatchers, ended)
  local found, began = program.find(), false
  local command = vim.list_extend(found and vim.deepcopy(found.command) or { 'promptside' }, { 'lsp' })
  local told_exit = dispatchers.on_exit
  dispatchers.on_exit = function(code, signal)
    ended(code, signal, began)
    told_exit(0, 0)
  end
  local ran, rpc = pcall(vim.lsp.rpc.start, command, dispatchers)
  if not ran then
    return stillborn(dispatchers)
  end
  local request = rpc.request
  rpc.request = function(method, params, callback, ...)
    if method ~= 'initialize' then
      return request(method, params, callback, ...)
    end
    return request(method, params, function(err, result)
      began = began or err == nil
      return callback(err, result)
    end, ...)
  end
  return rpc
end

---Why it ends as soon as it is started: what the program itself says of that, else where to look.
---@param code integer
---@param take fun(sentence: string)
function M.fault(code, take)
  local found = program.find()
  local words = 'promptside does not start (exit code %d)%s. :checkhealth promptside says more.'
  if not found then
    return take(program.missing())
  end
  local call = vim.list_extend(vim.deepcopy(found.command), { '--version' })
  local ran, fault = pcall(vim.system, call, { text = true, timeout = WAIT }, function(done)
    local lines = vim.split(vim.trim(done.stderr or ''), '\n')
    local why = done.code ~= 0 and lines[#lines] ~= '' and ': ' .. lines[#lines]:gsub('%.$', '') or ''
    vim.schedule(function()
      take(words:format(code, why))
    end)
  end)
  if not ran then
    take(words:format(code, ': ' .. tostring(fault)))
  end
end

return M
