---Form documents: Markdown files like any other, with lenses that stay fresh and a few keys in normal mode.
local address = require('promptside.address')
local ask = require('promptside.ask')
local client = require('promptside.client')
local message = require('promptside.message')
local settings = require('promptside.settings')
local tasks = require('promptside.tasks')

local M = {}

local SPACE = vim.api.nvim_create_namespace('promptside.form')
---@type table<integer, boolean>
local attached = {}
local hinted = false

local function lenses_of(buf, row)
  return vim.tbl_filter(function(lens)
    return lens.command ~= nil and lens.range.start.line == row
  end, vim.lsp.codelens.get(buf))
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

---Buffers whose lenses are asked for now; true where they are to be asked for once more.
---@type table<integer, boolean>
local asking = {}

---Lenses do not refresh by themselves, and the editor's own refresh drops a wish while another one is under way.
---@param buf integer
local function refresh(buf)
  if not vim.api.nvim_buf_is_loaded(buf) then
    return
  end
  paint(buf)
  local server = client.get()
  if not server or not vim.lsp.codelens.on_codelens then
    return vim.lsp.codelens.refresh({ bufnr = buf })
  elseif asking[buf] ~= nil then
    asking[buf] = true
    return
  end
  asking[buf] = false
  local params = { textDocument = { uri = vim.uri_from_bufnr(buf) } }
  server:request('textDocument/codeLens', params, function(err, result, context)
    local again = asking[buf]
    asking[buf] = nil
    if vim.api.nvim_buf_is_loaded(buf) and not err then
      vim.lsp.codelens.on_codelens(err, result or {}, context)
    end
    if again then
      M.refresh(buf)
    end
  end, buf)
end
M.refresh = refresh

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

---A buffer that the server serves now.
---@param buf integer
function M.attach(buf)
  if not settings.get().signs then
    for _, found in ipairs(vim.lsp.get_clients({ name = 'promptside', bufnr = buf })) do
      vim.diagnostic.config({ signs = false }, vim.lsp.diagnostic.get_namespace(found.id))
    end
  end
  require('promptside.comments').draw(buf)
  if not address.is_form(vim.api.nvim_buf_get_name(buf)) then
    return
  end
  vim.bo[buf].autoread = true
  asking[buf] = nil -- what another server was asked is never answered
  refresh(buf)
  if attached[buf] then
    return
  end
  attached[buf] = true
  stamps[buf] = stamp_of(buf)
  require('promptside.keys').map(buf, 'form')
  if not hinted and settings.get().keys then
    hinted = true
    message.say('g? shows the keys of this document.')
  end
  local group = vim.api.nvim_create_augroup('promptside.form.' .. buf, {})
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
      attached[buf], stamps[buf], asking[buf] = nil, nil, nil
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

---Tick or untick a line.
local function toggle(row, line)
  local head, box, tail = line:match('^(%s*[%-%*%+] %[)([ xX])(%].*)$')
  if not head then
    return false
  end
  vim.api.nvim_buf_set_lines(0, row, row + 1, false, { head .. (box == ' ' and 'x' or ' ') .. tail })
  return true
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
      local lens = above and lenses_of(buf, above)[1]
      if lens and lens.command.command == 'promptside.editDraft' then
        return run(lens)
      end
    end
    toggle(row, line)
    return
  end
  if line:match('^#+ ') then
    local lenses = lenses_of(buf, row)
    if #lenses == 1 then
      return run(lenses[1])
    elseif #lenses > 1 then
      return ask.pick('What do you want to do? ', lenses, function(lens)
        return lens.command.title
      end, run)
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
  for _, lens in ipairs(lenses_of(buf, 0)) do
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
  if name:find('/.promptside/drafts/', 1, true) then
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
