---Where `promptside` is: what the person set, the Python environment in use, PATH. Nothing of a project is run.
local settings = require('promptside.settings')

local M = {}

local INSTALL = 'Install it with “pipx install .” in your clone of it, '
  .. 'or set vim.g.promptside = { cmd = "/path/to/promptside" }.'

---@class promptside.Program
---@field command string[] What is run, without arguments.
---@field origin string Where it was found.

---What a script names as its interpreter, where that is gone: a Python that was removed or replaced.
---@param path string
---@return string?
local function lost_interpreter(path)
  local file = io.open(path, 'rb')
  local head = file and file:read(512) or ''
  if file then
    file:close()
  end
  local first, second = head:match('^#!%s*(%S+)[ \t]*([^%s]*)')
  if first and vim.fs.basename(first) == 'env' and second ~= '' then
    return vim.fn.executable(second) == 0 and second or nil
  end
  return first and vim.fn.executable(first) == 0 and first or nil
end

---Where it is, whether it can be run or not.
---@return promptside.Program?
local function place()
  local given = settings.get().cmd
  if given and given ~= '' then
    local command = type(given) == 'table' and vim.deepcopy(given) or { vim.fn.expand(tostring(given)) }
    local path = vim.fn.exepath(command[1])
    return path ~= '' and { command = command, origin = 'vim.g.promptside.cmd' } or nil
  end
  local environment = vim.env.VIRTUAL_ENV
  if environment and environment ~= '' then
    for _, folder in ipairs({ 'bin', 'Scripts' }) do
      local path = vim.fs.joinpath(environment, folder, 'promptside')
      if vim.fn.executable(path) == 1 then
        return { command = { path }, origin = '$VIRTUAL_ENV' }
      end
    end
  end
  local path = vim.fn.exepath('promptside')
  return path ~= '' and { command = { path }, origin = 'PATH' } or nil
end

---The program; nil if there is none that could be run.
---@return promptside.Program?
function M.find()
  local found = place()
  return found and not lost_interpreter(vim.fn.exepath(found.command[1])) and found or nil
end

---What is said where it does not know what this plugin asks of it.
---@return string
function M.too_old()
  local found = place()
  local words =
    '%s is older than this plugin. Update it: “%s” in your clone of it, then :Promptside restart.'
  return words:format(found and found.command[1] or 'promptside', 'pipx install --force .')
end

---Why there is none, and what to do, in one sentence or two.
---@return string
function M.missing()
  local found, given = place(), settings.get().cmd
  if found then
    local path = vim.fn.exepath(found.command[1])
    return ('%s needs %s, which is not there. Install it anew: “pipx reinstall promptside”.'):format(
      path,
      lost_interpreter(path) or 'something'
    )
  elseif given and given ~= '' then
    local first = type(given) == 'table' and given[1] or given
    return ('vim.g.promptside.cmd names “%s”, which is no program. Correct it, or remove it.'):format(
      tostring(first)
    )
  elseif vim.fn.executable('python3') == 0 and vim.fn.executable('pipx') == 0 then
    return 'Promptside needs Python 3.11 or newer, which was not found. Install Python first.'
  end
  return 'promptside was not found. ' .. INSTALL
end

return M
