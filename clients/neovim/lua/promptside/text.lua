---Texts made to fit the screen.
local M = {}

local width_of = vim.fn.strdisplaywidth

---A text that is no wider than this many cells; what is cut off is marked.
---@param text string
---@param width integer
---@return string
function M.cut(text, width)
  if width_of(text) <= width then
    return text
  end
  local room = math.max(width - 1, 0)
  local line = vim.fn.strcharpart(text, 0, room)
  while width_of(line) > room do
    line = vim.fn.strcharpart(line, 0, vim.fn.strchars(line) - 1)
  end
  return line .. '…'
end

---A text in rows that are no wider than this, broken between words.
---@param text string
---@param width integer
---@return string[]
function M.rows(text, width)
  local rows = {}
  for word in text:gmatch('%S+') do
    local longer = #rows > 0 and rows[#rows] .. ' ' .. word
    if longer and width_of(longer) <= width then
      rows[#rows] = longer
    else
      rows[#rows + 1] = word
    end
  end
  return rows
end

return M
