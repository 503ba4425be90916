---Form documents: Markdown files like any other, with lenses that stay fresh and a few keys in normal mode.
local address = require('promptside.address')
local ask = require('promptside.ask')
local buffers = require('promptside.buffers')
local comments = require('promptside.comments')
local keys = require('promptside.keys')
local lenses = require('promptside.lenses')
local message = require('promptside.message')
local order = require('promptside.order')
local path = require('promptside.path')
local settings = require('promptside.settings')
local tasks = require('promptside.tasks')
local fitted = require('promptside.text')
local ticks = require('promptside.ticks')

local M = {}

local SPACE = vim.api.nvim_create_namespace('promptside.form')
---@type table<integer, boolean>
local attached = {}
local hinted = false

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

---A buffer as its file would be.
local function text_of(buf)
  local ending = vim.bo[buf].fileformat == 'dos' and '\r\n' or '\n'
  local lines = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  return table.concat(lines, ending) .. (vim.bo[buf].endofline and ending or '')
end

---What stands in a buffer's file.
local function on_disk(buf)
  local file = io.open(vim.api.nvim_buf_get_name(buf), 'rb')
  local text = file and file:read('*a')
  if file then
    file:close()
  end
  return text
end

local function write(buf)
  vim.api.nvim_buf_call(buf, function()
    vim.cmd('silent! lockmarks write!')
  end)
end

---As wide as what the editor draws before the words below a line.
local BRANCH = '----- '

---What is missing or can't be read has a sign; the words stand below the line that the cursor is on, unless the
---person shows diagnostics in a way of their own.
---@param buf integer
local function show_words(buf)
  local general = vim.diagnostic.config() or {}
  local own = not general.virtual_text and not general.virtual_lines
  for _, found in ipairs(vim.lsp.get_clients({ name = 'promptside', bufnr = buf })) do
    vim.diagnostic.config({
      signs = settings.get().signs and general.signs or false,
      virtual_lines = own and {
        current_line = true,
        format = function(diagnostic)
          return table.concat(fitted.rows(diagnostic.message, lenses.room(buf) - #BRANCH), '\n')
        end,
      } or general.virtual_lines,
    }, vim.lsp.diagnostic.get_namespace(found.id))
  end
end

---What is to be done with a buffer that the server does not serve yet.
---@type table<integer, fun()>
local served = {}

---Do something with a form as soon as the server knows its buffer: before, what it changes would not arrive there.
---@param buf integer
---@param act fun()
function M.when_served(buf, act)
  if attached[buf] then
    return act()
  end
  served[buf] = act
end

---How the windows look that show a form: words stay whole, and the column of the signs stays, so that the text does not
---jump with each sign that comes or goes.
---@param buf integer
local function dress(buf)
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    local set = vim.wo[win][0]
    set.linebreak = true
    if settings.get().signs and vim.wo[win].signcolumn:match('^auto') then
      set.signcolumn = 'yes'
    end
  end
end

---A buffer that the server serves now.
---@param buf integer
function M.attach(buf)
  show_words(buf)
  comments.draw(buf)
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
  keys.map(buf, 'form')
  dress(buf)
  if not hinted and settings.get().keys then
    hinted = true
    local draft = address.is_draft(vim.api.nvim_buf_get_name(buf))
    local key = keys.spoken('<LocalLeader>a')
    message.say(
      ('<CR> ticks, %s %s; g? shows all keys of this document.'):format(
        key,
        draft and 'creates and runs the task' or 'approves or sends'
      )
    )
  end
  local due = served[buf]
  served[buf] = nil
  if due then
    due()
  end
  local group = vim.api.nvim_create_augroup('promptside.form.' .. buf, {})
  vim.api.nvim_create_autocmd('BufWinEnter', {
    group = group,
    buffer = buf,
    callback = function()
      dress(buf)
    end,
  })
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
  vim.api.nvim_create_autocmd('BufWritePre', {
    group = group,
    buffer = buf,
    callback = function()
      if stamps[buf] ~= stamp_of(buf) and on_disk(buf) == text_of(buf) then
        write(buf) -- another editor has saved the very same: that is nothing to ask about
      end
    end,
  })
  buffers.at_end(buf, group, function()
    attached[buf], stamps[buf], served[buf] = nil, nil, nil
    lenses.forget(buf)
  end)
end

---How often, and how many milliseconds apart, a file that is neither is looked at again: another editor, or the daemon,
---may be about to write what the buffer has.
local TRIES, APART_MS = 10, 200

---Save a form, unless its file is another by now: then the editor asks when the person saves.
---@param buf integer
---@param before? string What the buffer was, where it had no changes.
---@param tries? integer
local function save(buf, before, tries)
  if not vim.bo[buf].modified or stamps[buf] == nil then
    return
  end
  if stamps[buf] ~= stamp_of(buf) then
    local now = on_disk(buf)
    if now == nil or (now ~= before and now ~= text_of(buf)) then
      local tick = vim.api.nvim_buf_get_changedtick(buf)
      if before and (tries or 0) < TRIES then
        vim.defer_fn(function()
          if vim.api.nvim_buf_is_loaded(buf) and vim.api.nvim_buf_get_changedtick(buf) == tick then
            save(buf, before, (tries or 0) + 1)
          end
        end, APART_MS)
      end
      return
    end
  end
  write(buf)
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

---Whether a buffer's task waits for something that stands elsewhere.
local function waits_elsewhere(buf)
  local name = vim.api.nvim_buf_get_name(buf)
  local task = tasks.owner(name)
  local waiting = task and task.waiting_for
  return waiting ~= nil and not (waiting.document and name == vim.fs.joinpath(task.project, waiting.document))
end

local function run(lens)
  order.give(lens.command.command, (lens.command.arguments or {})[1])
end

---`<CR>`: toggle a tick, do what a heading's lens says, go to a place; else what `<CR>` always does.
function M.enter()
  local buf = vim.api.nvim_get_current_buf()
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local line = vim.api.nvim_get_current_line()
  if ticks.is_one(line) then
    local place = line:find('[%w%._/%-]+:%d+')
    local column = vim.api.nvim_win_get_cursor(0)[2] + 1
    if place and column >= place and path.go() then
      return
    end
    if line:match('%] Select %S+%s*$') then
      -- With a choice of one the others are unticked in the same edit: that is what the lens does.
      local above = ticks.heading_above(buf, row)
      local lens = above and lenses.at(buf, above)[1]
      if lens and lens.command.command == 'promptside.editDraft' then
        return run(lens)
      end
    end
    return ticks.toggle(buf, row)
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
  if path.go() then
    return
  end
  vim.api.nvim_feedkeys((vim.v.count > 0 and vim.v.count or '') .. vim.keycode('<CR>'), 'n', false)
end

---`]]`, `[[`: the next or previous heading, or with a count one further on.
---@param step 1|-1
function M.jump(step)
  local left, row = vim.v.count1, vim.api.nvim_win_get_cursor(0)[1] + step
  local lines = vim.api.nvim_buf_get_lines(0, 0, -1, false)
  local found
  while lines[row] and left > 0 do
    if lines[row]:match('^#+ ') then
      found, left = row, left - 1
    end
    row = row + step
  end
  if found then
    vim.cmd("normal! m'")
    vim.api.nvim_win_set_cursor(0, { found, 0 })
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
  if address.is_draft(vim.api.nvim_buf_get_name(buf)) then
    return order.give('promptside.createTask', { uri = vim.uri_from_bufnr(buf), run = true })
  end
  local task = tasks.owner(name)
  local waiting = task and task.waiting_for
  if waits_elsewhere(buf) then
    return message.say('This is not what waits for you now.  :Promptside next', 'warning')
  end
  local tag = waiting and waiting.kind == 'decision' and 'send' or 'approve'
  local args = task and { project = task.project, task = task.id } or { uri = vim.uri_from_bufnr(buf) }
  order.give('promptside.' .. tag, args)
end

---Begin a note to the agent below the heading that the cursor is under.
function M.note()
  local buf = vim.api.nvim_get_current_buf()
  local row = ticks.heading_above(buf, vim.api.nvim_win_get_cursor(0)[1] - 1) or 0
  vim.api.nvim_buf_set_lines(buf, row + 1, row + 1, false, { '>> ' })
  vim.api.nvim_win_set_cursor(0, { row + 2, 3 })
  vim.cmd('startinsert!')
end

return M
