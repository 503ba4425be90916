---Form documents: Markdown files like any other, with lenses that stay fresh and a few keys in normal mode.
local address = require('promptside.address')
local ask = require('promptside.ask')
local client = require('promptside.client')
local lenses = require('promptside.lenses')
local message = require('promptside.message')
local settings = require('promptside.settings')
local tasks = require('promptside.tasks')

local M = {}

local SPACE = vim.api.nvim_create_namespace('promptside.form')
---@type table<integer, boolean>
local attached = {}
local hinted = false

local function is_draft(buf)
  return vim.api.nvim_buf_get_name(buf):find('/.promptside/drafts/', 1, true) ~= nil
end

---Colour the notes to the agent.
---@param buf integer
local function paint(buf)
  vim.api.nvim_buf_clear_namespace(buf, SPACE, 0, -1)
  for row, line in ipairs(vim.api.nvim_buf_get_lines(buf, 0, -1, false)) do
    if line:match('^%s*>>[^>]') or line:match('^%s*>>$') then
      vim.api.nvim_buf_set_extmark(buf, SPACE, row - 1, 0, { end_col = #line, hl_group = 'PromptsideNote' })
    end
  end
end

---Colours and lenses as they should be now.
---@param buf integer
local function refresh(buf)
  if vim.api.nvim_buf_is_loaded(buf) then
    paint(buf)
    lenses.ask(buf)
  end
end

---The server says that something that lenses show is another.
function M.refresh_all()
  for buf in pairs(attached) do
    refresh(buf)
  end
end

---When a buffer's file was last read or written here.
---@type table<integer, string>
local stamps = {}

local function stamp_of(buf)
  local stat = vim.uv.fs_stat(vim.api.nvim_buf_get_name(buf))
  return stat and ('%d.%d.%d'):format(stat.mtime.sec, stat.mtime.nsec, stat.size) or ''
end

---What is missing or can't be read has a sign; the words stand below the line that the cursor is on, unless the
---person shows diagnostics in a way of their own.
---@param buf integer
local function show_words(buf)
  local general = vim.diagnostic.config() or {}
  local own = not general.virtual_text and not general.virtual_lines
  for _, found in ipairs(vim.lsp.get_clients({ name = 'promptside', bufnr = buf })) do
    vim.diagnostic.config({
      signs = settings.get().signs and general.signs or false,
      virtual_lines = own and { current_line = true } or general.virtual_lines,
    }, vim.lsp.diagnostic.get_namespace(found.id))
  end
end

---A buffer that the server serves now.
---@param buf integer
function M.attach(buf)
  show_words(buf)
  require('promptside.comments').draw(buf)
  if not address.is_form(vim.api.nvim_buf_get_name(buf)) then
    return
  end
  vim.bo[buf].autoread = true
  lenses.forget(buf) -- what another server was asked is never answered
  refresh(buf)
  if attached[buf] then
    return
  end
  attached[buf] = true
  stamps[buf] = stamp_of(buf)
  require('promptside.keys').map(buf, 'form')
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    vim.wo[win][0].linebreak = true -- it is prose: words stay whole
  end
  if not hinted and settings.get().keys then
    hinted = true
    local draft = is_draft(buf)
    local key = require('promptside.keys').spoken('<LocalLeader>a')
    message.say(
      ('%s %s; g? shows all keys of this document.'):format(
        key,
        draft and 'creates and runs the task' or 'approves or sends'
      )
    )
  end
  local group = vim.api.nvim_create_augroup('promptside.form.' .. buf, {})
  vim.api.nvim_create_autocmd({ 'WinResized', 'BufWinEnter' }, {
    group = group,
    callback = function()
      lenses.draw(buf)
    end,
  })
  vim.api.nvim_create_autocmd({ 'TextChanged', 'InsertLeave', 'BufEnter' }, {
    group = group,
    buffer = buf,
    callback = function()
      refresh(buf)
    end,
  })
  vim.api.nvim_create_autocmd({ 'BufReadPost', 'BufWritePost', 'FileChangedShellPost' }, {
    group = group,
    buffer = buf,
    callback = function()
      stamps[buf] = stamp_of(buf)
    end,
  })
  vim.api.nvim_create_autocmd({ 'BufUnload', 'BufWipeout' }, {
    group = group,
    buffer = buf,
    callback = function()
      attached[buf], stamps[buf] = nil, nil
      lenses.forget(buf)
      pcall(vim.api.nvim_del_augroup_by_id, group)
    end,
  })
end

---A buffer as its file would be.
local function text_of(buf)
  local ending = vim.bo[buf].fileformat == 'dos' and '\r\n' or '\n'
  local lines = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  return table.concat(lines, ending) .. (vim.bo[buf].endofline and ending or '')
end

---Save a form, unless its file is another by now: then the editor asks when the person saves.
---@param buf integer
---@param before? string What the buffer was, where it had no changes.
local function save(buf, before)
  if not vim.bo[buf].modified or stamps[buf] == nil then
    return
  end
  if stamps[buf] ~= stamp_of(buf) then
    local file = io.open(vim.api.nvim_buf_get_name(buf), 'rb')
    local text = file and file:read('*a')
    if file then
      file:close()
    end
    if text == nil or (text ~= before and text ~= text_of(buf)) then
      return
    end
  end
  vim.api.nvim_buf_call(buf, function()
    vim.cmd('silent! lockmarks write!')
  end)
end

---What was sent or approved of a task is what its documents say: they are saved.
---@param project string
---@param task integer
function M.sent(project, task)
  local view = tasks.get(project, task)
  for buf in pairs(view and attached or {}) do
    if vim.api.nvim_buf_is_loaded(buf) and tasks.owner(vim.api.nvim_buf_get_name(buf)) == view then
      save(buf)
    end
  end
end

---`workspace/applyEdit`: what another client or a lens answered arrives in the buffer. A form that had no changes of
---the person's is saved with it, so that it does not look as if they had typed.
function M.apply(params, context)
  local server = assert(vim.lsp.get_client_by_id(context.client_id))
  local clean = {}
  for buf in pairs(attached) do
    if vim.api.nvim_buf_is_loaded(buf) and not vim.bo[buf].modified then
      clean[buf] = text_of(buf)
    end
  end
  local ok, fault = pcall(vim.lsp.util.apply_workspace_edit, params.edit, server.offset_encoding)
  for buf, before in pairs(clean) do
    save(buf, before)
  end
  M.refresh_all()
  return { applied = ok, failureReason = not ok and tostring(fault) or nil }
end

local function run(lens)
  require('promptside.order').give(lens.command.command, (lens.command.arguments or {})[1])
end

---The heading above a row, from 0.
local function heading_above(buf, row)
  for at = row, 0, -1 do
    local line = vim.api.nvim_buf_get_lines(buf, at, at + 1, false)[1] or ''
    if line:match('^#+ ') then
      return at
    end
  end
end

---Go to `src/a.py:3` under the cursor; false if there is none.
function M.go_to_place()
  local line, column = vim.api.nvim_get_current_line(), vim.api.nvim_win_get_cursor(0)[2] + 1
  local from = 1
  while true do
    local first, last, path, number = line:find('([%w%._/%-]+):(%d+)', from)
    if not first then
      break
    end
    if column >= first and column <= last then
      local here = vim.api.nvim_buf_get_name(0)
      local task = tasks.owner(here)
      local target = require('promptside.output').target(vim.api.nvim_get_current_buf())
      local root = task and task.project
        or target and target.project
        or vim.fs.root(0, { '.promptside', '.git' })
      local file = vim.fs.joinpath(root or vim.fn.getcwd(), path)
      if vim.uv.fs_stat(file) then
        vim.cmd("normal! m'")
        vim.cmd.edit({ args = { file }, magic = { file = false } })
        vim.api.nvim_win_set_cursor(0, { math.min(tonumber(number) or 1, vim.api.nvim_buf_line_count(0)), 0 })
        return true
      end
      message.say(('%s is not there.'):format(path))
      return true
    end
    from = last + 1
  end
  -- A path alone, as the output has it.
  local word = vim.fn.expand('<cfile>')
  local target = require('promptside.output').target(vim.api.nvim_get_current_buf())
  if target and word ~= '' then
    local file = vim.fs.joinpath(target.project, word)
    if vim.uv.fs_stat(file) and vim.uv.fs_stat(file).type == 'file' then
      vim.cmd.wincmd('p')
      vim.cmd.edit({ args = { file }, magic = { file = false } })
      return true
    end
  end
  return false
end

local TICK = '^(%s*[%-%*%+] %[)([ xX])(%].*)$'

---The rows of the ticks beside one, where its heading takes only one of them; nil where it takes several.
---@param buf integer
---@param row integer From 0.
---@return table<integer, string>?
local function alternatives(buf, row)
  local above = heading_above(buf, row)
  if not above then
    return nil
  end
  local lines = vim.api.nvim_buf_get_lines(buf, above, -1, false)
  local ticks, words = {}, {}
  for index = 2, #lines do
    if lines[index]:match('^#+ ') or vim.startswith(lines[index], '<!-- promptside') then
      break
    end
    if lines[index]:match(TICK) then
      ticks[above + index - 1] = lines[index]
      words[#words + 1] = lines[index]:match('%] (.*)$') or ''
    end
  end
  local draft = is_draft(buf)
  local one = lines[1]:match('%(choose one') ~= nil
    or lines[1]:match('%(yes or no') ~= nil
    or (#words == 2 and words[1] == 'Yes' and words[2] == 'No')
    or (draft and lines[1]:match('^## Pipeline') ~= nil)
  return one and ticks or nil
end

---Tick or untick a line; where one of several is to be chosen, the tick moves.
local function toggle(buf, row, line)
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

---`<CR>`: toggle a tick, do what a heading's lens says, go to a place; else what `<CR>` always does.
function M.enter()
  local buf = vim.api.nvim_get_current_buf()
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local line = vim.api.nvim_get_current_line()
  local place = line:find('[%w%._/%-]+:%d+')
  if line:match('^%s*[%-%*%+] %[[ xX]%]') then
    local column = vim.api.nvim_win_get_cursor(0)[2] + 1
    if place and column >= place and M.go_to_place() then
      return
    end
    if line:match('%] Select %S+%s*$') then
      -- With a choice of one the others are unticked in the same edit: that is what the lens does.
      local above = heading_above(buf, row)
      local lens = above and lenses.at(buf, above)[1]
      if lens and lens.command.command == 'promptside.editDraft' then
        return run(lens)
      end
    end
    toggle(buf, row, line)
    return
  end
  if line:match('^#+ ') then
    local all = lenses.at(buf, row)
    local here = vim.tbl_filter(function(lens)
      return lens.command.command ~= 'promptside.showLack' -- it says how things stand; nothing is done by it
    end, all)
    here = #here > 0 and here or all
    if #here == 1 then
      return run(here[1])
    elseif #here > 1 then
      return ask.pick('What do you want to do? ', here, function(lens)
        return lens.command.title
      end, run)
    end
    local wrong = vim.diagnostic.get(buf, { severity = vim.diagnostic.severity.ERROR })[1]
    if row == 0 and wrong then
      vim.cmd("normal! m'")
      vim.api.nvim_win_set_cursor(0, { wrong.lnum + 1, wrong.col })
      return message.say(wrong.message, 'warning')
    end
  end
  if M.go_to_place() then
    return
  end
  vim.api.nvim_feedkeys(vim.keycode('<CR>'), 'n', false)
end

---`]]`, `[[`: the next or previous heading.
---@param step 1|-1
function M.jump(step)
  local row = vim.api.nvim_win_get_cursor(0)[1] + step
  local lines = vim.api.nvim_buf_get_lines(0, 0, -1, false)
  while lines[row] do
    if lines[row]:match('^#+ ') then
      vim.cmd("normal! m'")
      vim.api.nvim_win_set_cursor(0, { row, 0 })
      return
    end
    row = row + step
  end
end

---Approve, send or create, whichever the document is for.
function M.approve()
  local buf = vim.api.nvim_get_current_buf()
  for _, lens in ipairs(lenses.at(buf, 0)) do
    local command = lens.command.command
    if vim.list_contains({ 'promptside.approve', 'promptside.send', 'promptside.createTask' }, command) then
      local args = (lens.command.arguments or {})[1] or {}
      if command ~= 'promptside.createTask' or args.run then
        return run(lens)
      end
    end
  end
  -- What is blocked has no lens: the refusal says why.
  local name = vim.api.nvim_buf_get_name(buf)
  if is_draft(buf) then
    return require('promptside.order').give(
      'promptside.createTask',
      { uri = vim.uri_from_bufnr(buf), run = true }
    )
  end
  local task = tasks.owner(name)
  local waiting = task and task.waiting_for
  local tag = waiting and waiting.kind == 'decision' and 'send' or 'approve'
  local args = task and { project = task.project, task = task.id } or { uri = vim.uri_from_bufnr(buf) }
  require('promptside.order').give('promptside.' .. tag, args)
end

---Begin a note to the agent below the heading that the cursor is under.
function M.note()
  local buf = vim.api.nvim_get_current_buf()
  local row = heading_above(buf, vim.api.nvim_win_get_cursor(0)[1] - 1) or 0
  vim.api.nvim_buf_set_lines(buf, row + 1, row + 1, false, { '>> ' })
  vim.api.nvim_win_set_cursor(0, { row + 2, 3 })
  vim.cmd('startinsert!')
end

---Ask the server for nothing more than that it is there.
function M.attached()
  return client.get() ~= nil and attached[vim.api.nvim_get_current_buf()] == true
end

return M
