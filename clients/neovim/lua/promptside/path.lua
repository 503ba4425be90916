---A path under the cursor, as documents and the output of an agent have it: gone to.
local message = require('promptside.message')
local stream = require('promptside.stream')
local tasks = require('promptside.tasks')

local M = {}

---`src/a.py:3` where the cursor is in it.
---@return string? path
---@return integer? line
local function named()
  local line, column = vim.api.nvim_get_current_line(), vim.api.nvim_win_get_cursor(0)[2] + 1
  local from = 1
  while true do
    local first, last, path, number = line:find('([%w%._/%-]+):(%d+)', from)
    if not first then
      return
    elseif column >= first and column <= last then
      return path, tonumber(number)
    end
    from = last + 1
  end
end

---Where paths of the current buffer begin.
---@return string
local function root()
  local task = tasks.owner(vim.api.nvim_buf_get_name(0)) or stream.of(vim.api.nvim_get_current_buf())
  return task and task.project or vim.fs.root(0, { '.promptside', '.git' }) or vim.fn.getcwd()
end

---Show a file here, or beside the output, which stays.
local function edit(file)
  require('promptside.buffers').step_aside()
  vim.cmd("normal! m'")
  vim.cmd.edit({ args = { vim.fn.fnamemodify(file, ':.') }, magic = { file = false } })
end

---Go to the path under the cursor; false if there is none.
---@return boolean
function M.go()
  local path, line = named()
  if path then
    local file = vim.fs.joinpath(root(), path)
    if vim.uv.fs_stat(file) then
      edit(file)
      vim.api.nvim_win_set_cursor(0, { math.min(line or 1, vim.api.nvim_buf_line_count(0)), 0 })
    else
      message.say(('%s is not there.'):format(path))
    end
    return true
  end
  -- A path alone, as the output has it: under the cursor, else the first of the line.
  local here = stream.of(vim.api.nvim_get_current_buf())
  for word in
    (here and vim.fn.expand('<cfile>') .. ' ' .. vim.api.nvim_get_current_line() or ''):gmatch('%S+')
  do
    local file = vim.fs.joinpath(root(), word)
    local stat = vim.uv.fs_stat(file)
    if stat and stat.type == 'file' then
      edit(file)
      return true
    end
  end
  return false
end

return M
