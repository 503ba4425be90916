---What a person's configuration may call; everything else is `:Promptside`.
local M = {}

---For a status line: `[!2]` tasks wait for you, `[~1]` run, `[x]` failed or the daemon is away; else nothing.
---@return string
function M.statusline()
  local status = vim.g.promptside_status
  if type(status) ~= 'table' then
    return ''
  elseif not status.daemon then
    return '[x]'
  elseif status.waiting > 0 then
    return ('[!%d]'):format(status.waiting)
  elseif status.running > 0 then
    return ('[~%d]'):format(status.running)
  end
  return status.failed > 0 and '[x]' or ''
end

return M
