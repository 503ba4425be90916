---What the server tells and asks by itself, each handed to the one whom it concerns.
local address = require('promptside.address')
local buffers = require('promptside.buffers')
local message = require('promptside.message')
local tasks = require('promptside.tasks')

---By the protocol's `MessageType`.
local LEVELS = { 'error', 'warning', 'info', 'info' }

---Ask with buttons, without holding up anything: the answer goes back when there is one.
local function ask(_, params)
  local waiting = coroutine.running()
  local function answer(choice)
    vim.schedule(function()
      coroutine.resume(waiting, choice)
    end)
  end
  vim.schedule(function()
    require('promptside.ask').pick(
      params.message,
      params.actions or {},
      function(item)
        return item.title
      end,
      answer,
      function()
        answer(vim.NIL)
      end
    )
  end)
  return coroutine.yield()
end

---@type table<string, lsp.Handler>
return {
  ['promptside/task'] = function(_, news)
    tasks.put(news)
    require('promptside.page').told(news.task)
  end,
  ['promptside/gone'] = function(_, news)
    tasks.forget(news.project)
  end,
  ['promptside/daemon'] = function(_, news)
    tasks.daemon(news)
    if news.up then
      require('promptside.page').now_there()
    end
  end,
  ['promptside/output'] = function(_, news)
    require('promptside.stream').take(news)
  end,
  ['promptside/pageChanged'] = function(_, news)
    require('promptside.page').changed(news)
  end,
  ['workspace/codeLens/refresh'] = function()
    require('promptside.form').refresh_all()
    return vim.NIL
  end,
  ['workspace/textDocumentContent/refresh'] = function(_, params)
    buffers.refresh(params.uri)
    return vim.NIL
  end,
  ['workspace/applyEdit'] = function(_, params, context)
    return require('promptside.form').apply(params, context)
  end,
  ['window/showDocument'] = function(_, params)
    local task = tasks.undocumented(params.uri)
    if task then
      buffers.show({ uri = address.task(task.project, task.id) })
      require('promptside.page').begin()
    else
      buffers.show(params)
    end
    return { success = true }
  end,
  ['window/showMessage'] = function(_, params)
    message.say(params.message, LEVELS[params.type])
    return vim.NIL
  end,
  ['window/logMessage'] = function(_, params)
    message.note(params.message)
    return vim.NIL
  end,
  ['window/showMessageRequest'] = ask,
}
