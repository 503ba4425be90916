---The keys of our buffers, in one table: mapped from it, shown from it by `g?`.
local float = require('promptside.float')
local lines_of = require('promptside.lines')
local settings = require('promptside.settings')

local M = {}

local SPACE = vim.api.nvim_create_namespace('promptside.keys')

---@class promptside.Key
---@field [1] string The key.
---@field [2] string What it does, as `g?` shows it.
---@field [3] fun()

---A function of a module, which is loaded when the key is pressed.
local function act(module, name, ...)
  local arguments = { ... }
  return function()
    require('promptside.' .. module)[name](unpack(arguments))
  end
end

local function verb(name)
  return function()
    vim.cmd.Promptside(name)
  end
end

---Keys of a page that do the first of some commands that is offered.
local ORDERS = {
  a = { 'allow', 'send', 'approve' },
  r = { 'run', 'retry', 'resume' },
  R = { 'redo', 'interrupt' },
  s = { 'stop' },
  ['-'] = { 'pause', 'resume' },
}

local function order(key, nothing)
  return act('cursor', 'order', ORDERS[key], nothing)
end

---What is the same on the page of a task and in the output of its agent.
local ORDERED = {
  a = { 'a', 'approve, send the answers, or allow once', order('a', 'Nothing is to be approved here.') },
  r = { 'r', 'run, retry or resume', order('r', 'There is nothing to run here.') },
  R = { 'R', 'redo with feedback …', order('R', 'There is nothing to redo here.') },
  ['-'] = { '-', 'pause, or resume', order('-', 'There is nothing to pause here.') },
} -- stylua: ignore
local CHANGES = { 'c', 'what was changed, file by file', verb('changes') }
local NEXT = { '<LocalLeader>w', 'what waits for you next', verb('next') }
local LEAVE = { 'q', 'close', act('buffers', 'leave') }

---@alias promptside.Kind 'page'|'output'|'form'|'changes'|'compare'

---@type table<promptside.Kind, promptside.Key[]>
M.MAPS = {
  page = {
    {
      '<CR>',
      'open what the line is about, or do what it says; on a choice: tick it, too',
      act('cursor', 'enter'),
    },
    { 'o', 'open it in a split', act('cursor', 'enter', { split = 'belowright' }) },
    {
      'gO',
      'open it in a vertical split',
      act('cursor', 'enter', { split = 'belowright', vertical = true }),
    },
    { 'p', 'preview its document', act('cursor', 'preview') },
    { '.', 'everything that can be done here …', act('cursor', 'menu') },
    ORDERED.a,
    ORDERED.r,
    ORDERED.R,
    { 's', 'stop the stage, after a question', order('s', 'Nothing runs here.') },
    ORDERED['-'],
    { '+', 'new task', verb('new') },
    { 'O', 'output of the agent', verb('output') },
    CHANGES,
    NEXT,
    {
      'za',
      'fold or unfold',
      function()
        vim.cmd('silent! normal! za')
      end,
    },
    { ']]', 'next line with something to do', act('cursor', 'jump', 1, 'item') },
    { '[[', 'previous one', act('cursor', 'jump', -1, 'item') },
    { '}', 'next group', act('cursor', 'jump', 1, 'group') },
    { '{', 'previous group', act('cursor', 'jump', -1, 'group') },
    LEAVE,
  },
  output = {
    { '<CR>', 'go to the file under the cursor', act('path', 'go') },
    {
      'G',
      'go to the end, and follow',
      function()
        vim.cmd.normal({ args = { (vim.v.count > 0 and vim.v.count or '') .. 'G' }, bang = true })
      end,
    },
    { 's', 'stop the stage, after a question', verb('stop') },
    ORDERED.a,
    ORDERED.r,
    ORDERED.R,
    ORDERED['-'],
    { '.', 'everything that can be done with its task …', act('cursor', 'menu') },
    CHANGES,
    NEXT,
    LEAVE,
  },
  changes = {
    { '<CR>', 'the file beside what it was', act('changes', 'enter') },
    { 'gf', 'the file itself', act('changes', 'file') },
    { 'o', 'the same', act('changes', 'file') },
    { 'q', 'close the list', act('changes', 'leave') },
  },
  compare = {
    { ']q', 'the next file of the list', act('compare', 'go', 1) },
    { '[q', 'the previous one', act('compare', 'go', -1) },
    { 'q', 'close, and back to the list', act('compare', 'leave') },
  },
  form = {
    {
      '<CR>',
      'on a tick: tick or untick; on a heading: do what stands behind it; on path:line: go there',
      act('form', 'enter'),
    },
    { ']]', 'next heading', act('form', 'jump', 1) },
    { '[[', 'previous heading', act('form', 'jump', -1) },
    { '<LocalLeader>a', 'approve, send the answers, or create and run the task', act('form', 'approve') },
    { '<LocalLeader>r', 'redo, with your notes', verb('redo') },
    { '<LocalLeader>n', 'note to the agent here', act('form', 'note') },
    { '<LocalLeader>o', 'output of the agent', verb('output') },
    { '<LocalLeader>c', 'what was changed, file by file', verb('changes') },
    NEXT,
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
---@param kind promptside.Kind
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
  if kind == 'form' then
    lines[#lines + 1] = ''
    lines[#lines + 1] = ' <C-X><C-O> while you type: the paths and choices that can stand there'
    lines[#lines + 1] = ' E W I H in the margin: what is wrong or lacking; ]d goes there, <C-W>d says it'
  end
  lines[#lines + 1] = ''
  lines[#lines + 1] = ' :Promptside <Tab>  everything else       :help promptside'
  local win = float.open('Keys', lines, { key = 'g?' })
  local buf = vim.api.nvim_win_get_buf(win)
  for row = 0, #maps - 1 do
    vim.api.nvim_buf_set_extmark(
      buf,
      SPACE,
      row,
      1,
      { end_col = 1 + #M.spoken(maps[row + 1][1]), hl_group = 'PromptsideTool' }
    )
  end
end

---What can be done at a line that is there to do it.
---@param line promptside.ours.PageLine
---@return string?
local function tag_of(line)
  local offer = vim.startswith(line.ref, 'offer/') and line.offers[1]
  return offer and not offer.blocked and offer.command:match('^promptside%.(%a+)$') or nil
end

---Show behind what a page offers which key does it and, of the answers to a permission, what says it from anywhere.
---@param buf integer
---@param lines promptside.ours.PageLine[]
function M.beside(buf, lines)
  vim.api.nvim_buf_clear_namespace(buf, SPACE, 0, -1)
  local offered, key_of = {}, {}
  for _, line in ipairs(lines) do
    offered[tag_of(line) or ''] = true
  end
  for _, key in ipairs(settings.get().keys and { 'a', 'r', 'R', 's', '-' } or {}) do
    for _, tag in ipairs(ORDERS[key]) do
      if offered[tag] then
        key_of[tag] = key_of[tag] or key
        break
      end
    end
  end
  local beside, column = {}, 0
  for row, line in ipairs(lines) do
    local tag = tag_of(line)
    local answer = tag == 'allow' or tag == 'deny'
    if tag and (key_of[tag] or answer) then
      local words = { ':Promptside', tag, (line.offers[1].args or {}).scope }
      beside[row] = ('%-1s  %s'):format(key_of[tag] or '', answer and table.concat(words, ' ') or '')
      key_of[tag] = nil -- it does the first of them
      column = math.max(column, vim.fn.strdisplaywidth(lines_of.text(line)) + 2)
    end
  end
  local win = vim.fn.win_findbuf(buf)[1]
  local room = (win and vim.api.nvim_win_get_width(win) or vim.o.columns) - column
  for row, words in pairs(beside) do
    local fitting = #words > room and words:sub(1, 1) or words
    if room > 0 then
      vim.api.nvim_buf_set_extmark(buf, SPACE, row - 1, 0, {
        virt_text = { { fitting, 'PromptsideMuted' } },
        virt_text_win_col = column,
      })
    end
  end
end

---Take the keys out of a buffer again, but for those that somebody else has mapped since.
---@param buf integer
---@param kind promptside.Kind
function M.unmap(buf, kind)
  local ours = { ['g?'] = true }
  for _, key in ipairs(M.MAPS[kind]) do
    ours[key[1]] = true
  end
  for _, map in ipairs(vim.api.nvim_buf_get_keymap(buf, 'n')) do
    if ours[map.lhs] and vim.startswith(map.desc or '', 'Promptside: ') then
      vim.keymap.del('n', map.lhs, { buffer = buf })
    end
  end
end

---Map the keys of a buffer, unless the person wants none.
---@param buf integer
---@param kind promptside.Kind
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
