---What a person may set in `vim.g.promptside`, read whenever it is needed: there is nothing to call first.
local M = {}

---@class promptside.Settings
---@field cmd? string|string[] What starts Promptside, in place of looking for it.
---@field keys boolean Whether our buffers get their keys.
---@field icons boolean Marks beyond ASCII in pages.
---@field signs boolean Signs of what waits, in the sign column.
---@field output 'split'|'vsplit'|'tab'|'never' Where `run` shows the output.
local DEFAULTS = { keys = true, icons = false, signs = true, output = 'split' }

---The settings as they are now.
---@return promptside.Settings
function M.get()
  local given = vim.g.promptside
  return vim.tbl_extend('force', DEFAULTS, type(given) == 'table' and given or {})
end

---What is wrong with them, in sentences.
---@return string[]
function M.faults()
  local given, found = vim.g.promptside, {}
  if given == nil then
    return found
  end
  if type(given) ~= 'table' then
    return { 'vim.g.promptside is no table.' }
  end
  for key, value in pairs(given) do
    if key == 'cmd' then
      if type(value) ~= 'string' and type(value) ~= 'table' then
        found[#found + 1] = 'cmd is neither a string nor a list.'
      end
    elseif DEFAULTS[key] == nil then
      found[#found + 1] = ('there is no setting %s.'):format(key)
    elseif type(value) ~= type(DEFAULTS[key]) then
      found[#found + 1] = ('%s is no %s.'):format(key, type(DEFAULTS[key]))
    end
  end
  return found
end

return M
