---Lines of a page: their text, what a line is known by when the page is another, and where a page is begun.
local address = require('promptside.address')
local look = require('promptside.look')

local M = {}

M.MARGIN = ' '
local SPACE = vim.api.nvim_create_namespace('promptside.page')
---What the server leaves out of a line.
local REST = { fold = '', ref = '', project = '', task = 0, uri = '', line = 0, page = '' }

---A line as it came, with what was left out of it.
---@param line table
---@return promptside.ours.PageLine
function M.whole(line)
  return vim.tbl_extend('keep', line, REST, { spans = {}, offers = {} })
end

---@param line promptside.ours.PageLine
---@return string
function M.text(line)
  local parts = { M.MARGIN }
  for _, span in ipairs(line.spans) do
    parts[#parts + 1] = span.text
  end
  return (table.concat(parts):gsub('\n', ' '):gsub('%s+$', ''))
end

---Their texts, each with a margin.
---@param lines promptside.ours.PageLine[]
---@return string[]
function M.texts(lines)
  return vim.tbl_map(M.text, lines)
end

---Colour a buffer that holds these lines.
---@param buf integer
---@param lines promptside.ours.PageLine[]
---@param texts string[]
function M.colour(buf, lines, texts)
  vim.api.nvim_buf_clear_namespace(buf, SPACE, 0, -1)
  for number, line in ipairs(lines) do
    local column, width = #M.MARGIN, #texts[number]
    for _, span in ipairs(line.spans) do
      local group = look.group(span.role or '')
      if group and column < width then
        vim.api.nvim_buf_set_extmark(buf, SPACE, number - 1, column, {
          end_col = math.min(column + #span.text, width),
          hl_group = group,
        })
      end
      column = column + #span.text
    end
  end
end

---Whether a line heads a group.
---@param line promptside.ours.PageLine
function M.heads(line)
  return line.fold == 'open' or line.fold == 'closed'
end

---What a line goes by when the page is drawn anew.
---@param line promptside.ours.PageLine
---@return string
function M.key(line)
  return line.ref ~= '' and line.ref or M.text(line)
end

---Where the cursor belongs when the page is another: the same thing, else the same place; nowhere where something to do
---or to decide is gone.
---@param old promptside.ours.PageLine[]
---@param new promptside.ours.PageLine[]
---@param at integer
---@return integer?
function M.moved(old, new, at)
  local line = old[at]
  if not line then
    return at
  end
  local key, nth = M.key(line), 0
  for number = 1, at do
    nth = nth + (M.key(old[number]) == key and 1 or 0)
  end
  for number, other in ipairs(new) do
    if M.key(other) == key then
      nth = nth - 1
      if nth == 0 then
        return number
      end
    end
  end
  local kind = key:match('^(%a+)/')
  return kind ~= 'offer' and kind ~= 'decision' and kind ~= 'item' and at or nil
end

---Where a page is begun: at what waits for the person, else at what can be done first, else at what can be opened.
---Never at what stops or throws away something because it happens to be the first that can be done, nor inside a group
---that is closed.
---@param lines promptside.ours.PageLine[]
---@return integer
function M.first(lines)
  local waits, primary, begin, opens
  local closed = false
  for number, line in ipairs(lines) do
    local offer = line.offers[1]
    closed = line.fold == 'closed' or (closed and line.fold == 'inside')
    if vim.startswith(line.ref, 'offer/') then
      if offer and offer.primary and not offer.blocked then
        primary = primary or number
      end
      begin = begin or (line.task == 0 and number or nil)
    elseif line.fold == 'inside' and (line.ref:match('^decision/') or line.ref:match('^item/')) then
      waits = waits or (line.uri ~= '' and number or nil)
    elseif line.fold == 'inside' and line.page ~= '' and not closed then
      opens = opens or number
    end
  end
  return waits or primary or opens or begin or 1
end

---The name of the page that a line leads to.
---@param line promptside.ours.PageLine
---@return string?
function M.page_of(line)
  if line.page == 'task' and line.task > 0 then
    return address.task(line.project, line.task)
  elseif line.page == 'pipeline' then
    return address.name('pipeline/' .. line.ref:gsub('^pipeline/', ''))
  elseif line.page == 'tasks' and line.project ~= '' then
    return ('promptside://tasks?project=%s'):format(vim.uri_encode(line.project, 'rfc3986'))
  end
end

return M
