---What is said to the person: one line, never two at once, never in the middle of typing; all of it is kept in a log.
local text_of = require('promptside.text')

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
  local room = math.max(vim.v.echospace, 1)
  if vim.fn.strdisplaywidth(line .. tail) > room then
    tail = vim.fn.strdisplaywidth(tail) < room / 2 and tail or ''
    line = text_of.cut(line, room - vim.fn.strdisplaywidth(tail))
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

return M
