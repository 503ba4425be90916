---What an agent writes, entry by entry, put behind each other into a buffer; what it writes over is replaced.
local M = {}

local SPACE = vim.api.nvim_create_namespace('promptside.output')
---The column behind the names of tools.
local COLUMN = 9
local GROUPS = {
  stderr = 'PromptsideStderr',
  note = 'PromptsideMuted',
  status = 'PromptsideMuted',
  result = 'PromptsideMuted',
}

---@class promptside.Written
---@field buf integer
---@field blocks table<string, { text: string, mark: integer }> What may still be written over, and where it stands.
---@field empty boolean

---A group from one column of a line to another; all from 0.
---@class promptside.Painted
---@field row integer
---@field from integer
---@field to integer
---@field group string

---An empty buffer to write into.
---@param buf integer
---@return promptside.Written
function M.begin(buf)
  return { buf = buf, blocks = {}, empty = true }
end

local function clean(text)
  return (text:gsub('\r\n?', '\n'):gsub('[%z\1-\8\11-\31\127]', ''))
end

---An entry as lines, each with the groups of its parts.
---@param entry { role: string, text: string, ok?: boolean }
---@return string[], promptside.Painted[]
function M.lines_of(entry)
  local lines = vim.split((clean(entry.text):gsub('\n+$', '')), '\n')
  local painted = {}
  local function paint(row, from, to, group)
    if group and to > from then
      painted[#painted + 1] = { row = row, from = from, to = to, group = group }
    end
  end
  if entry.role == 'tool' then
    local verb, rest = lines[1]:match('^(%S+)%s*(.*)$')
    if verb then
      local head = verb .. (' '):rep(math.max(COLUMN - 1 - #verb, 0)) .. ' '
      lines[1] = head .. rest
      paint(0, 0, #verb, 'PromptsideTool')
      paint(0, #head, #lines[1], 'PromptsidePath')
      for number = 2, #lines do
        lines[number] = (' '):rep(#head) .. lines[number]
      end
    end
  elseif entry.role ~= 'text' then
    for number, line in ipairs(lines) do
      if entry.role == 'result' then
        lines[number] = (' '):rep(COLUMN) .. line
      end
      local group = entry.ok == false and 'PromptsideFailed' or GROUPS[entry.role]
      paint(number - 1, 0, #lines[number], group)
    end
  end
  return lines, painted
end

---Put lines in the place of others; the row behind them.
local function put(buf, first, last, lines, painted)
  vim.api.nvim_buf_set_lines(buf, first, last, false, lines)
  for _, one in ipairs(painted) do
    local place = { end_col = one.to, hl_group = one.group }
    vim.api.nvim_buf_set_extmark(buf, SPACE, first + one.row, one.from, place)
  end
  return first + #lines
end

---Remember where the lines of a block stand.
local function keep(written, id, text, first, last)
  local place = { end_row = last, strict = false }
  local mark = vim.api.nvim_buf_set_extmark(written.buf, SPACE, first, 0, place)
  written.blocks[id] = { text = text, mark = mark }
end

---Where the lines of a block stand now.
local function place_of(written, block)
  local at = vim.api.nvim_buf_get_extmark_by_id(written.buf, SPACE, block.mark, { details = true })
  return at[1], at[3] and at[3].end_row
end

---Write an entry: into its block, else behind everything else.
---@param written promptside.Written
---@param entry promptside.OutputEntry
function M.add(written, entry)
  local buf, block = written.buf, entry.block and written.blocks[entry.block]
  local text = block and not entry.replace and block.text .. entry.text or entry.text
  local lines, painted = {}, {}
  if text ~= '' then
    lines, painted = M.lines_of({ role = entry.role, text = text, ok = entry.ok })
  end
  if block then
    local first, last = place_of(written, block)
    if first and last then
      vim.api.nvim_buf_clear_namespace(buf, SPACE, first, last)
      keep(written, entry.block, text, first, put(buf, first, last, lines, painted))
      written.empty = vim.api.nvim_buf_line_count(buf) == 1
        and vim.api.nvim_buf_get_lines(buf, 0, 1, false)[1] == ''
      return
    end
  end
  if text == '' then
    return
  end
  local first = written.empty and 0 or vim.api.nvim_buf_line_count(buf)
  local last = put(buf, first, -1, lines, painted)
  written.empty = false
  if entry.block then
    keep(written, entry.block, text, first, last)
  end
end

return M
