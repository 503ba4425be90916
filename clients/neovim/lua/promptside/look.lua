---Highlight groups, all of them links that a colour scheme or a person can change (UX 4.5).
local M = {}

local LINKS = {
  PromptsideWaiting = 'DiagnosticWarn',
  PromptsideRunning = 'DiagnosticInfo',
  PromptsideDone = 'DiagnosticOk',
  PromptsideFailed = 'DiagnosticError',
  PromptsideNext = 'NonText',
  PromptsideSkipped = 'Comment',
  PromptsidePaused = 'DiagnosticHint',
  PromptsideTitle = 'Title',
  PromptsideMuted = 'Comment',
  PromptsideTool = 'Function',
  PromptsidePath = 'Directory',
  PromptsideStderr = 'ErrorMsg',
  PromptsideAdded = 'Added',
  PromptsideRemoved = 'Removed',
  PromptsideNote = 'DiagnosticHint',
  PromptsideLens = 'Function',
}

---Define what nobody has defined.
function M.define()
  for name, link in pairs(LINKS) do
    vim.api.nvim_set_hl(0, name, { link = link, default = true })
  end
end

---The group of a role of the protocol; nil for plain text.
---@param role string
---@return string?
function M.group(role)
  local name = 'Promptside' .. role:sub(1, 1):upper() .. role:sub(2)
  return LINKS[name] and name or nil
end

return M
