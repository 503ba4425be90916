---`:checkhealth promptside`: what is there, what is missing, and what to do about it.
local client = require('promptside.client')
local program = require('promptside.program')
local protocol = require('promptside.protocol')
local settings = require('promptside.settings')
local tasks = require('promptside.tasks')
local trust = require('promptside.trust')

local M = {}

local WAIT = 8000

---Ask the server, and wait for the answer: health has no other way.
local function query(server, params)
  local answer = server:request_sync('promptside/query', params, WAIT)
  return answer and answer.result, answer and answer.err
end

local function check_editor(health)
  health.start('Neovim')
  if vim.fn.has('nvim-0.11') == 1 then
    health.ok(('Neovim %s'):format(vim.version()))
  else
    health.error('Neovim 0.11 or later is needed.')
  end
  for _, fault in ipairs(settings.faults()) do
    health.warn('vim.g.promptside: ' .. fault, ':help promptside-configuration')
  end
  if vim.o.autoread then
    health.ok("'autoread' is on: files that the agent changes are loaded anew.")
  else
    health.warn("'autoread' is off: you are asked for each file that the agent changes.", ':set autoread')
  end
end

local function check_program(health)
  health.start('Program')
  local found = program.find()
  if not found then
    health.error(program.missing(), {
      'Install it, in your clone of Promptside: pipx install .',
      'or name it: vim.g.promptside = { cmd = "/path/to/promptside" }',
    })
    return false
  end
  local ran =
    vim.system(vim.list_extend(vim.deepcopy(found.command), { '--version' }), { text = true }):wait(WAIT)
  local words = vim.trim(ran.stdout or '')
  if ran.code ~= 0 then
    health.error(('%s --version failed: %s'):format(found.command[1], vim.trim(ran.stderr or '')))
    return false
  end
  health.ok(('%s, from %s: %s'):format(words, found.origin, table.concat(found.command, ' ')))
  return true
end

local function check_server(health)
  health.start('Language server')
  local server = client.get()
  if not server then
    client.ready(function() end)
    vim.wait(WAIT, function()
      return client.get() ~= nil
    end, 20)
    server = client.get()
  end
  if not server then
    health.error('It does not start.', { ':LspLog', ':Promptside log' })
    return nil
  end
  health.ok(('runs for %s'):format(table.concat(
    vim.tbl_map(function(folder)
      return vim.uri_to_fname(folder.uri)
    end, server.workspace_folders or {}),
    ', '
  )))
  local served = {}
  for buf in pairs(server.attached_buffers or {}) do
    served[#served + 1] = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(buf), ':~:.')
  end
  if #served > 0 then
    health.ok('attached to ' .. table.concat(served, ', '))
  else
    health.info('attached to no buffer: open a file of a project that has a .promptside directory')
  end
  health.ok('lenses are asked for anew on BufEnter, InsertLeave, TextChanged, and when the server says so')
  health.info('log: ' .. vim.lsp.log.get_filename() .. ', and :Promptside log')
  return server
end

local function check_daemon(health, server)
  health.start('Daemon')
  local status, err = query(server, { type = 'status' })
  if not status then
    health.error(
      err and err.message or 'The daemon does not answer.',
      { ':Promptside daemon', 'promptside daemon status' }
    )
    return
  end
  health.ok(('version %s, process %s, for %d min'):format(status.version, status.pid, status.uptime_s / 60))
  if status.protocol == protocol.PROTOCOL then
    health.ok(('It speaks protocol %d, the same protocol as this plugin.'):format(protocol.PROTOCOL))
  elseif status.protocol then
    health.warn(
      ('It speaks protocol %d, this plugin %d.'):format(status.protocol, protocol.PROTOCOL),
      'Update the older one.'
    )
  end
  local found = query(server, { type = 'doctor' })
  for _, one in ipairs(found and found.checks or {}) do
    local words = ('%s: %s'):format(one.name, one.found ~= '' and one.found or 'not found')
    if one.ok then
      health.ok(words)
    else
      health.warn(
        words .. (one.needed ~= '' and (' (needed: %s)'):format(one.needed) or ''),
        one.hint ~= '' and one.hint or nil
      )
    end
  end
end

local function check_project(health, server)
  health.start('Project')
  local state, err = query(server, { type = 'trustState' })
  if not state then
    health.info(
      (err and err.message or 'No project is open.') .. ' It becomes one with its first task: :Promptside new'
    )
    return
  end
  if trust.settled(state) then
    health.ok(state.sentence ~= '' and state.sentence or 'Nothing here needs to be trusted.')
  else
    health.warn(state.sentence, ':Promptside trust')
  end
  health.info(('%d tasks are known'):format(#tasks.list()))
end

function M.check()
  local health = vim.health
  check_editor(health)
  if not check_program(health) then
    return
  end
  local server = check_server(health)
  if server then
    check_daemon(health, server)
    check_project(health, server)
  end
end

return M
