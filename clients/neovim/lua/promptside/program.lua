---Where `promptside` is: what the person set, the Python environment in use, PATH. Nothing of a project is run.
local settings = require('promptside.settings')

local M = {}

M.MISSING = 'promptside was not found. Install it with “pipx install promptside”, '
  .. 'or set vim.g.promptside = { cmd = "/path/to/promptside" }.'

---@class promptside.Program
---@field command string[] What is run, without arguments.
---@field origin string Where it was found.

---The program; nil if there is none.
---@return promptside.Program?
function M.find()
  local given = settings.get().cmd
  if given and given ~= '' then
    local command = type(given) == 'table' and vim.deepcopy(given)
      or {
        vim.fn.expand(given --[[@as string]]),
      }
    return vim.fn.executable(command[1]) == 1 and { command = command, origin = 'vim.g.promptside.cmd' }
      or nil
  end
  local environment = vim.env.VIRTUAL_ENV
  if environment and environment ~= '' then
    for _, place in ipairs({ 'bin', 'Scripts' }) do
      local path = vim.fs.joinpath(environment, place, 'promptside')
      if vim.fn.executable(path) == 1 then
        return { command = { path }, origin = '$VIRTUAL_ENV' }
      end
    end
  end
  local path = vim.fn.exepath('promptside')
  return path ~= '' and { command = { path }, origin = 'PATH' } or nil
end

---Why there is none, and what to do, in one sentence.
---@return string
function M.missing()
  local given = settings.get().cmd
  if given and given ~= '' then
    local first = type(given) == 'table' and given[1] or given
    return ('vim.g.promptside.cmd names “%s”, which is no program.'):format(tostring(first))
  end
  return M.MISSING
end

return M
