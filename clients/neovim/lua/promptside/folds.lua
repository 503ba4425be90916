---The folds of a page: its groups, open or closed as the person left them.
local lines_of = require('promptside.lines')
local look = require('promptside.look')
local text = require('promptside.text')

local M = {}

---Which groups the person has closed or opened, by buffer.
---@type table<integer, table<string, boolean>>
local closed_of = {}
---What each buffer shows.
---@type table<integer, promptside.ours.PageLine[]>
local shown = {}

---Fold a window that shows these lines now.
---@param buf integer
---@param win integer
---@param lines promptside.ours.PageLine[]
function M.fold(buf, win, lines)
  local known = closed_of[buf] or {}
  closed_of[buf], shown[buf] = known, lines
  vim.api.nvim_win_call(win, function()
    vim.cmd('silent! normal! zE')
    local head
    local function finish(last)
      if head and last > head then
        vim.cmd(('silent %d,%dfold'):format(head, last))
        local closed = known[lines_of.key(lines[head])]
        if closed == nil then
          closed = lines[head].fold == 'closed'
        end
        vim.cmd(('silent! %d%s'):format(head, closed and 'foldclose' or 'foldopen'))
      end
      head = nil
    end
    for number, line in ipairs(lines) do
      if line.fold ~= 'inside' then
        finish(number - 1)
        head = lines_of.heads(line) and number or nil
      end
    end
    finish(#lines)
  end)
end

---Note which folds the person has opened or closed, before the page is drawn anew.
---@param buf integer
---@param win integer
function M.note(buf, win)
  local known = closed_of[buf]
  if not known then
    return
  end
  vim.api.nvim_win_call(win, function()
    for number, line in ipairs(shown[buf]) do
      if lines_of.heads(line) and vim.fn.foldlevel(number) > 0 then
        known[lines_of.key(line)] = vim.fn.foldclosed(number) == number
      end
    end
  end)
end

---@param buf integer
function M.forget(buf)
  closed_of[buf], shown[buf] = nil, nil
end

---The line of a closed fold, for 'foldtext': its own text, with a mark.
function M.text()
  local line = (shown[vim.api.nvim_get_current_buf()] or {})[vim.v.foldstart]
  if not line then
    return vim.fn.foldtext()
  end
  local chunks, room =
    { { lines_of.MARGIN .. '+ ', 'PromptsideMuted' } }, vim.fn.winwidth(0) - #lines_of.MARGIN - 2
  for number, span in ipairs(line.spans) do
    local words = text.cut(number == 1 and span.text:gsub('^  ', '') or span.text, room)
    if span.text ~= '' and room > 0 then
      chunks[#chunks + 1] = { words, look.group(span.role or '') or 'Normal' }
      room = room - vim.fn.strdisplaywidth(words)
    end
  end
  return chunks
end

return M
