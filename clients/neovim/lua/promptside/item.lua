---Where an item of a form stands in its document, and one of its choices.
local M = {}

local TICK = '^%s*[%-%*%+] %[[ xX]%]%s+'
---What may stand between an item's id and its title.
local BETWEEN = { '·', ':', '.', '-', '–', '—' }

---Whether a heading opens an item: by its id or, of a field, by its name.
local function names(title, id)
  local name = title:lower():gsub('%s*%(required%)%s*$', ''):gsub('[ %-]', '_')
  if name == id:lower():gsub('-', '_') then
    return true
  end
  local first, rest = title:match('^([%w_]+)%s*(.*)$')
  return first == id and vim.iter(BETWEEN):any(function(mark)
    return vim.startswith(rest, mark)
  end)
end

---The row of an item, or of one of its choices, from 1; nil where the document has none of that name.
---@param lines string[]
---@param id string
---@param choice? string
---@return integer?
function M.row(lines, id, choice)
  local found, level
  local quoted = false -- what an agent quotes is no item
  for row, line in ipairs(lines) do
    if line:match('^%s*```') or line:match('^%s*~~~') then
      quoted = not quoted
    end
    local head, title = line:match('^(#+)%s+(.+)$')
    if quoted then
      head = nil
    end
    if found and head and #head <= level then
      break
    elseif found and choice and line:match(TICK .. '([%w_]+)') == choice then
      return row
    elseif not found and not quoted and line:match(TICK .. '%*%*(.-)%*%*') == id then
      return row
    elseif not found and head and names(title, id) then
      found, level = row, #head
    end
  end
  return found
end

return M
