---What is said to the person: one line, never two at once, never in the middle of typing; all of it is kept in a log.
local M = {}

local KEPT = 500
local GROUPS = { warning = 'WarningMsg', error = 'ErrorMsg' }

---@type { at: string, text: string }[]
local log = {}
---@type { text: string, level: string }?
local due
local scheduled = false

---Whether an echo would be in the way of what is being typed.
local function busy()
  local mode = vim.api.nvim_get_mode()
  return mode.blocking or mode.mode:match('^[icrR!t]') ~= nil or vim.fn.getcmdwintype() ~= ''
end

local function show()
  scheduled = false
  if not due or busy() then
    return -- it is shown when the mode is left
  end
  local text, group = due.text, GROUPS[due.level]
  due = nil
  -- What can be typed stands at the end, behind two blanks: it is the last thing to be cut.
  local words, call = text:match('^(.-)  (:Promptside .*)$')
  local line, tail = (words or text):gsub('%s+', ' '), call and '  ' .. call or ''
  local room = math.max(vim.v.echospace, 20)
  if vim.fn.strdisplaywidth(line .. tail) > room then
    tail = vim.fn.strdisplaywidth(tail) < room / 2 and tail or ''
    room = room - vim.fn.strdisplaywidth(tail) - 1
    line = vim.fn.strcharpart(line, 0, room)
    while vim.fn.strdisplaywidth(line) > room do
      line = vim.fn.strcharpart(line, 0, vim.fn.strchars(line) - 1)
    end
    line = line .. '…'
  end
  line = line .. tail
  vim.cmd.redraw()
  vim.api.nvim_echo({ { line, group } }, false, {})
end

local function soon()
  if not scheduled then
    scheduled = true
    vim.schedule(show)
  end
end

vim.api.nvim_create_autocmd({ 'ModeChanged', 'CmdlineLeave', 'CmdwinLeave' }, {
  group = vim.api.nvim_create_augroup('promptside.message', {}),
  callback = function()
    if due then
      soon()
    end
  end,
})

---Keep it in the log, and say nothing.
---@param text string
function M.note(text)
  log[#log + 1] = {
    at = os.date('%H:%M:%S') --[[@as string]],
    text = text,
  }
  if #log > KEPT then
    table.remove(log, 1)
  end
end

---Say it in one line; of several at once the last is seen, and `:Promptside log` has them all.
---@param text string
---@param level? 'info'|'warning'|'error'
function M.say(text, level)
  if text == '' then
    return
  end
  M.note(text)
  due = { text = text, level = level or 'info' }
  soon()
end

---A refusal in one line: why, and what to do in its place.
---@param err { message: string, data?: promptside.Refusal }
---@return string
function M.sentence(err)
  local hint = type(err.data) == 'table' and err.data.hint or ''
  hint = vim.split(hint or '', '\n')[1]
  if hint == '' or vim.startswith(hint, 'promptside ') then
    return err.message -- a call of the terminal helps nobody here
  end
  return hint:match('[%.…%?]$') and err.message .. ' ' .. hint or ('%s (%s)'):format(err.message, hint)
end

---Everything that was said, oldest first.
---@return string[]
function M.lines()
  local found = {}
  for _, one in ipairs(log) do
    for index, line in ipairs(vim.split(one.text, '\n')) do
      found[#found + 1] = (index == 1 and one.at or (' '):rep(8)) .. '  ' .. line
    end
  end
  return #found > 0 and found or { 'Nothing was said yet.' }
end

---Something that takes more than a line, in a window that `q` closes.
---@param title string
---@param lines string[]
---@param filetype? string
---@return integer window
function M.float(title, lines, filetype)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
  vim.bo[buf].bufhidden = 'wipe'
  if filetype then
    vim.bo[buf].filetype = filetype
  end
  local width = vim.fn.strdisplaywidth(title) + 2
  for _, line in ipairs(lines) do
    width = math.max(width, vim.fn.strdisplaywidth(line))
  end
  width = math.max(math.min(width + 1, vim.o.columns - 4), math.min(24, vim.o.columns - 4))
  local height = math.max(math.min(#lines, vim.o.lines - 5), 1)
  local win = vim.api.nvim_open_win(buf, true, {
    relative = 'editor',
    row = math.floor((vim.o.lines - height - 3) / 2),
    col = math.floor((vim.o.columns - width - 2) / 2),
    width = width,
    height = height,
    style = 'minimal',
    border = 'rounded',
    title = ' ' .. title .. ' ',
  })
  vim.wo[win][0].wrap = true
  vim.wo[win][0].winhighlight = 'NormalFloat:Normal,FloatTitle:PromptsideTitle,FloatFooter:PromptsideMuted'
  vim.wo[win][0].linebreak = true
  for _, key in ipairs({ 'q', '<Esc>' }) do
    vim.keymap.set('n', key, '<Cmd>close<CR>', { buffer = buf, nowait = true })
  end
  return win
end

return M
