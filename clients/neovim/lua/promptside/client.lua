---The one language server of this editor, for all its folders: started, started again, and spoken to.
local message = require('promptside.message')
local program = require('promptside.program')
local server = require('promptside.server')
local tasks = require('promptside.tasks')

local M = {}

local NAME = 'promptside'
---Starts in a row that may fail before the person has to ask for another.
local AGAIN = 3

---@type { take: fun(client: vim.lsp.Client), fail?: fun(sentence: string) }[]
local queue = {}
---@type table<string, boolean>
local told = {}
local failures, leaving, stopping = 0, false, false
---@type string[]
local folders = {}

---The directory that a buffer or a path is worked on in.
---@param source integer|string
---@return string?
local function root_of(source)
  return vim.fs.root(source, { '.promptside', '.git' })
end

local function folder(path)
  return { uri = vim.uri_from_fname(path), name = vim.fs.basename(path) }
end

---The server, once it can be spoken to.
---@return vim.lsp.Client?
function M.get()
  for _, client in ipairs(vim.lsp.get_clients({ name = NAME })) do
    if client.initialized and not client:is_stopped() then
      return client
    end
  end
end

---Have the server know a folder too.
---@param client vim.lsp.Client
---@param path string
local function add_folder(client, path)
  local uri = vim.uri_from_fname(path)
  for _, one in ipairs(client.workspace_folders or {}) do
    if one.uri == uri then
      return
    end
  end
  if not client.initialized then
    folders[#folders + 1] = path
    return
  end
  client.workspace_folders = client.workspace_folders or {}
  table.insert(client.workspace_folders, folder(path))
  client:notify('workspace/didChangeWorkspaceFolders', { event = { added = { folder(path) }, removed = {} } })
end

---Buffers of a folder that were opened before the server was there.
---@param client vim.lsp.Client
local function attach_all(client)
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == '' and vim.bo[buf].filetype ~= '' then
      local root = root_of(buf)
      for _, one in ipairs(client.workspace_folders or {}) do
        if root and vim.uri_from_fname(root) == one.uri then
          vim.lsp.buf_attach_client(buf, client.id)
        end
      end
    end
  end
end

---It can't be had: who waits for it is told, else the person.
---@param sentence string
local function give_up(sentence)
  local waiting = queue
  queue, folders = {}, {}
  local told_of = false
  for _, one in ipairs(waiting) do
    if one.fail then
      one.fail(sentence)
      told_of = true
    end
  end
  if not told_of then
    message.say(sentence, 'error')
  end
end

---Call with the server, which is started if need be; where that can't be, `fail` is told what to do, else the person.
---@param take fun(client: vim.lsp.Client)
---@param fail? fun(sentence: string)
function M.ready(take, fail)
  local client = M.get()
  if client then
    return take(client)
  end
  queue[#queue + 1] = { take = take, fail = fail }
  if not program.find() then
    return give_up(program.missing())
  end
  local here = vim.api.nvim_buf_get_name(0)
  local root = here ~= '' and vim.bo.buftype == '' and root_of(here)
    or root_of(vim.fn.getcwd())
    or vim.fn.getcwd()
  local config = vim.tbl_extend('force', vim.lsp.config[NAME] or M.config, { root_dir = root })
  vim.lsp.start(config, { attach = false, silent = true, reuse_client = M.config.reuse_client })
end

---Ask or order something of the server; refusals come as `err`.
---@param method string
---@param params table
---@param take? fun(err: lsp.ResponseError?, result: any)
function M.request(method, params, take)
  local function done(err, result)
    if err and err.code == vim.lsp.protocol.ErrorCodes.MethodNotFound then
      err = { code = err.code, message = program.too_old() }
    end
    if take then
      take(err, result)
    elseif err then
      message.say(message.sentence(err), 'error')
    end
  end
  M.ready(function(client)
    client:request(method, vim.tbl_isempty(params) and vim.empty_dict() or params, done)
  end, function(sentence)
    done({ code = 0, message = sentence })
  end)
end

---End the server; what is asked for next starts another.
function M.stop()
  failures = 0
  stopping = M.get() ~= nil
  for _, client in ipairs(vim.lsp.get_clients({ name = NAME })) do
    client:stop(true)
  end
end

local function opened(client)
  failures = 0
  -- Every command goes through one door, where it is confirmed and where a refusal becomes a line.
  client.commands = setmetatable({}, {
    __index = function(_, name)
      if type(name) == 'string' and vim.startswith(name, 'promptside.') then
        return function(command)
          require('promptside.order').give(name, (command.arguments or {})[1])
        end
      end
    end,
  })
  for _, path in ipairs(folders) do
    add_folder(client, path)
  end
  folders = {}
  local waiting = queue
  queue = {}
  vim.schedule(function()
    attach_all(client)
    for _, one in ipairs(waiting) do
      one.take(client)
    end
  end)
end

---@param code integer
---@param signal integer
---@param began boolean Whether it could ever be spoken to.
local function ended(code, signal, began)
  vim.schedule(function()
    if leaving then
      return
    end
    tasks.lost()
    if not began then
      return server.fault(code, give_up)
    end
    queue, folders = {}, {}
    if stopping or (code == 0 and signal == 0) then
      stopping = false
      return
    end
    failures = failures + 1
    if failures < AGAIN then
      message.note(('The language server ended (exit code %d); it is started again.'):format(code))
      vim.defer_fn(function()
        if not leaving and not M.get() then
          M.ready(function()
            require('promptside.buffers').again()
          end)
        end
      end, 500 * failures)
    else
      message.say(
        'Promptside’s language server ends again and again. See :LspLog, and :checkhealth promptside.',
        'error'
      )
    end
  end)
end

vim.api.nvim_create_autocmd('VimLeavePre', {
  group = vim.api.nvim_create_augroup('promptside.client', {}),
  callback = function()
    leaving = true
  end,
})

---@type vim.lsp.Config
M.config = {
  name = NAME,
  cmd = function(dispatchers)
    return server.run(dispatchers, ended)
  end,
  capabilities = {
    experimental = { promptside = true },
    workspace = {
      codeLens = { refreshSupport = true },
      textDocumentContent = vim.empty_dict(),
      workspaceFolders = true,
    },
  },
  ---A project of ours: `.promptside` is there, or a folder of the server.
  root_dir = function(buf, start)
    local root = root_of(buf)
    if not root then
      return
    end
    local known = vim.fs.root(buf, '.promptside') ~= nil
    for _, client in ipairs(vim.lsp.get_clients({ name = NAME })) do
      for _, one in ipairs(client.workspace_folders or {}) do
        known = known or one.uri == vim.uri_from_fname(root)
      end
    end
    if not known then
      return
    end
    if not program.find() then
      if not told[root] then
        told[root] = true
        message.say(program.missing(), 'warning')
      end
      return
    end
    start(root)
  end,
  reuse_client = function(client, config)
    if client.name ~= NAME or client:is_stopped() then
      return false
    end
    if config.root_dir then
      add_folder(client, config.root_dir)
    end
    return true
  end,
  on_init = opened,
  on_attach = function(_, buf)
    require('promptside.form').attach(buf)
  end,
  handlers = require('promptside.handlers'),
}

return M
