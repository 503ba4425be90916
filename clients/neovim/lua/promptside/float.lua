---What takes more than a line, in a window over the others.
local text = require('promptside.text')
local window = require('promptside.window')

local M = {}

---Open one, which `q` closes; the cursor is in it.
---@param title string
---@param lines string[]
---@param options? { filetype?: string, footer?: string, key?: string } `key` closes it, too.
---@return integer window
function M.open(title, lines, options)
  local how = options or {}
  local before = vim.api.nvim_get_current_win()
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
  vim.bo[buf].bufhidden = 'wipe'
  vim.bo[buf].formatlistpat = [[^\s*\S\+\s\{2,}]] -- a key and what it does: the rest stays below what it does
  if how.filetype then
    vim.bo[buf].filetype = how.filetype
  end
  local width = vim.fn.strdisplaywidth(title) + 2
  for _, line in ipairs(lines) do
    width = math.max(width, vim.fn.strdisplaywidth(line))
  end
  width = math.max(math.min(width + 1, vim.o.columns - 4), math.min(24, vim.o.columns - 4))
  local most = math.max(vim.o.lines - vim.o.cmdheight - 4, 1)
  local win = vim.api.nvim_open_win(buf, true, {
    relative = 'editor',
    row = 0,
    col = math.floor((vim.o.columns - width - 2) / 2),
    width = width,
    height = math.min(#lines, most),
    style = 'minimal',
    border = 'rounded',
    title = ' ' .. text.cut(title, width - 2) .. ' ',
  })
  window.dress(win, {
    breakindentopt = 'list:-1',
    winhighlight = 'NormalFloat:Normal,FloatTitle:PromptsideTitle,FloatFooter:PromptsideMuted',
  })
  local rows = vim.api.nvim_win_text_height(win, {}).all
  local height = math.min(rows, most)
  local footer = how.footer or rows > most and 'more below, q closes' or 'q closes'
  vim.api.nvim_win_set_config(win, {
    relative = 'editor',
    row = math.max(math.floor((vim.o.lines - height - 3) / 2), 0),
    col = math.floor((vim.o.columns - width - 2) / 2),
    height = height,
    footer = (' %s '):format(text.cut(footer, width - 2)),
    footer_pos = 'right',
  })
  local function close()
    vim.cmd.close()
    -- The editor may go elsewhere by itself: from a list of places to the first window.
    if vim.api.nvim_win_is_valid(before) then
      vim.api.nvim_set_current_win(before)
    end
  end
  for _, key in ipairs({ 'q', '<Esc>', how.key }) do
    vim.keymap.set('n', key, close, { buffer = buf, nowait = true })
  end
  return win
end

return M
