---Where an item of a form stands in its document, and one of its choices.
local M = {}

---Whether a line opens an item: a heading with its id or, of a field, with its name; a tick that bears its id.
local function opens(line, id)
  if line:match('^%s*[%-%*%+] %[[ xX]%]%s+%*%*(.-)%*%*') == id then
    return true
  end
  local title = line:match('^#+%s+(.+)$')
  if not title then
    return false
  end
  local name = title:lower():gsub('%s*%(required%)%s*$', ''):gsub('[ %-]', '_')
  return title:match('^[%w_]+') == id or name == id:lower():gsub('-', '_')
end

---The row of an item, or of one of its choices, from 1; nil where the document has none of that name.
---@param lines string[]
---@param id string
---@param choice? string
---@return integer?
function M.row(lines, id, choice)
  local found
  local quoted = false -- what an agent quotes is no item
  for row, line in ipairs(lines) do
    if line:match('^%s*```') or line:match('^%s*~~~') then
      quoted = not quoted
    end
    if not found and not quoted and opens(line, id) then
      found = row
    elseif found and not quoted and line:match('^#+ ') then
      break
    elseif found and choice and line:match('^%s*[%-%*%+] %[[ xX]%]%s+([%w_]+)') == choice then
      return row
    end
  end
  return found
end

return M
