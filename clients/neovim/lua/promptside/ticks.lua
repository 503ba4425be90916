---Ticks of a form: put in and taken out; where one of several is to be chosen, the tick moves.
local address = require('promptside.address')

local M = {}

local TICK = '^(%s*[%-%*%+] %[)([ xX])(%].*)$'

---@param line string
function M.is_one(line)
  return line:match(TICK) ~= nil
end

---@param line string
function M.is_ticked(line)
  local _, box = line:match(TICK)
  return box ~= nil and box ~= ' '
end

---The heading above a row, both from 0.
---@param buf integer
---@param row integer
---@return integer?
function M.heading_above(buf, row)
  for at = row, 0, -1 do
    local line = vim.api.nvim_buf_get_lines(buf, at, at + 1, false)[1] or ''
    if line:match('^#+ ') then
      return at
    end
  end
end

---The ticks beside one, by their rows, where its heading takes only one of them; empty where it takes several.
---@param buf integer
---@param row integer From 0.
---@return table<integer, string>
local function alternatives(buf, row)
  local above = M.heading_above(buf, row)
  if not above then
    return {}
  end
  local lines = vim.api.nvim_buf_get_lines(buf, above, -1, false)
  local found, words = {}, {}
  for index = 2, #lines do
    if lines[index]:match('^#+ ') or vim.startswith(lines[index], '<!-- promptside') then
      break
    end
    if M.is_one(lines[index]) then
      found[above + index - 1] = lines[index]
      words[#words + 1] = lines[index]:match('%] (.*)$') or ''
    end
  end
  local one = lines[1]:match('%(choose one') ~= nil
    or lines[1]:match('%(yes or no') ~= nil
    or (#words == 2 and words[1] == 'Yes' and words[2] == 'No')
    or address.is_draft(vim.api.nvim_buf_get_name(buf)) -- a pipeline, an agent: all it has to tick
  return one and found or {}
end

---Tick or untick a row.
---@param buf integer
---@param row integer From 0.
function M.toggle(buf, row)
  local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ''
  local head, box, tail = line:match(TICK)
  if not head then
    return
  end
  local others = box == ' ' and alternatives(buf, row) or {}
  local first, last = row, row
  for other in pairs(others) do
    first, last = math.min(first, other), math.max(last, other)
  end
  local lines = vim.api.nvim_buf_get_lines(buf, first, last + 1, false)
  for other, text in pairs(others) do
    lines[other - first + 1] = text:gsub(TICK, '%1 %3')
  end
  lines[row - first + 1] = head .. (box == ' ' and 'x' or ' ') .. tail
  vim.api.nvim_buf_set_lines(buf, first, last + 1, false, lines)
end

return M
