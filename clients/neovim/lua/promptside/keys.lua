---The keys of our buffers, in one table: mapped from it, shown from it by `g?`.
local settings = require('promptside.settings')

local M = {}

---@class promptside.Key
---@field [1] string The key.
---@field [2] string What it does, as `g?` shows it.
---@field [3] fun()

local function page(name, ...)
  local arguments = { ... }
  return function()
    require('promptside.page')[name](unpack(arguments))
  end
end

local function verb(name)
  return function()
    vim.cmd.Promptside(name)
  end
end

local function form(name, ...)
  local arguments = { ... }
  return function()
    require('promptside.form')[name](unpack(arguments))
  end
end

local LEAVE = {
  'q',
  'close',
  function()
    require('promptside.buffers').leave()
  end,
}

---@type table<'page'|'output'|'form', promptside.Key[]>
M.MAPS = {
  page = {
    { '<CR>', 'open what the line is about, or do what it says', page('enter') },
    { 'o', 'open it in a split', page('enter', { split = 'belowright' }) },
    { 'gO', 'open it in a vertical split', page('enter', { split = 'belowright', vertical = true }) },
    { 'p', 'preview its document', page('preview') },
    { '.', 'everything that can be done here …', page('menu') },
    {
      'a',
      'approve, send the answers, or allow once',
      page('order', { 'allow', 'send', 'approve' }, 'Nothing is to be approved here.'),
    },
    {
      'r',
      'run, retry or resume',
      page('order', { 'run', 'retry', 'resume' }, 'There is nothing to run here.'),
    },
    {
      'R',
      'redo with feedback …',
      page('order', { 'redo', 'interrupt' }, 'There is nothing to redo here.'),
    },
    { 's', 'stop the stage, after a question', page('order', { 'stop' }, 'Nothing runs here.') },
    { '-', 'pause, or resume', page('order', { 'pause', 'resume' }, 'There is nothing to pause here.') },
    { 'n', 'new task', verb('new') },
    { 'O', 'output of the agent', verb('output') },
    {
      'za',
      'fold or unfold',
      function()
        vim.cmd('silent! normal! za')
      end,
    },
    { ']]', 'next line with something to do', page('jump', 1, 'item') },
    { '[[', 'previous one', page('jump', -1, 'item') },
    { '}', 'next group', page('jump', 1, 'group') },
    { '{', 'previous group', page('jump', -1, 'group') },
    LEAVE,
  },
  output = {
    { '<CR>', 'go to the file under the cursor', form('go_to_place') },
    {
      'G',
      'go to the end, and follow',
      function()
        vim.cmd('normal! G')
      end,
    },
    { 's', 'stop the stage, after a question', verb('stop') },
    LEAVE,
  },
  form = {
    {
      '<CR>',
      'on a tick: tick or untick; on a heading: do what stands behind it; on path:line: go there',
      form('enter'),
    },
    { ']]', 'next heading', form('jump', 1) },
    { '[[', 'previous heading', form('jump', -1) },
    { '<LocalLeader>a', 'approve, send the answers, or create and run the task', form('approve') },
    { '<LocalLeader>r', 'redo, with your notes', verb('redo') },
    { '<LocalLeader>n', 'note to the agent here', form('note') },
    { '<LocalLeader>o', 'output of the agent', verb('output') },
  },
} -- stylua: ignore

---A key as one would press it.
---@param lhs string
---@return string
function M.spoken(lhs)
  local leader = vim.g.maplocalleader or '\\'
  return (lhs:gsub('<LocalLeader>', leader == ' ' and '<Space>' or leader))
end

---Show the keys of a kind of buffer.
---@param kind 'page'|'output'|'form'
function M.help(kind)
  local lines, width = {}, 0
  local maps = vim.list_extend(vim.list_slice(M.MAPS[kind]), { { 'g?', 'this list' } })
  for _, key in ipairs(maps) do
    width = math.max(width, vim.fn.strdisplaywidth(M.spoken(key[1])))
  end
  for _, key in ipairs(maps) do
    local lhs = M.spoken(key[1])
    lines[#lines + 1] = (' %s%s  %s'):format(lhs, (' '):rep(width - vim.fn.strdisplaywidth(lhs)), key[2])
  end
  lines[#lines + 1] = ''
  lines[#lines + 1] = ' :Promptside <Tab>  everything else       :help promptside'
  local win = require('promptside.message').float('Keys', lines)
  local buf = vim.api.nvim_win_get_buf(win)
  local space = vim.api.nvim_create_namespace('promptside.keys')
  for row = 0, #maps - 1 do
    vim.api.nvim_buf_set_extmark(
      buf,
      space,
      row,
      1,
      { end_col = 1 + #M.spoken(maps[row + 1][1]), hl_group = 'PromptsideTool' }
    )
  end
  vim.keymap.set('n', 'g?', '<Cmd>close<CR>', { buffer = buf })
end

---Map the keys of a buffer, unless the person wants none.
---@param buf integer
---@param kind 'page'|'output'|'form'
function M.map(buf, kind)
  if not settings.get().keys then
    return
  end
  for _, key in ipairs(M.MAPS[kind]) do
    vim.keymap.set(
      'n',
      key[1],
      key[3],
      { buffer = buf, nowait = true, silent = true, desc = 'Promptside: ' .. key[2] }
    )
  end
  vim.keymap.set('n', 'g?', function()
    M.help(kind)
  end, { buffer = buf, nowait = true, silent = true, desc = 'Promptside: these keys' })
end

return M
