---Pages: lines with roles as the server draws them. Here they are put on the screen, and nothing else is known of them.
local address = require('promptside.address')
local buffers = require('promptside.buffers')
local client = require('promptside.client')
local look = require('promptside.look')
local message = require('promptside.message')
local settings = require('promptside.settings')
local tasks = require('promptside.tasks')

local M = {}

---@class promptside.PageLine : promptside.Line
---@field task integer
---@field uri string
---@field line integer
---@field page string

---@class promptside.ShownPage
---@field address promptside.Address
---@field told? { name: string, project: string, task: integer }
---@field lines promptside.PageLine[]
---@field shown? promptside.ours.PageShown As the server told it last.
---@field notices promptside.PageLine[]
---@field dirty boolean
---@field begun? boolean Whether it lists tasks; what is said above them depends on it.
---@field put table<integer, integer> Where the cursor of a window was put; until it is moved, it goes to what is first.

local SPACE = vim.api.nvim_create_namespace('promptside.page')
local MARGIN = ' '
---@type table<integer, promptside.ShownPage>
local pages = {}
---@type table<integer, table<string, boolean>>
local folded = {}

---What stands behind `promptside://` for the page of a task.
---@param project string
---@param task integer
---@return string
function M.name(project, task)
  return address.name(tostring(task), project)
end

---@param line promptside.PageLine
local function text_of(line)
  local parts = { MARGIN }
  for _, span in ipairs(line.spans or {}) do
    parts[#parts + 1] = span[1] or span.text
  end
  return (table.concat(parts):gsub('\n', ' '):gsub('%s+$', ''))
end

local function windows(buf)
  return vim.fn.win_findbuf(buf)
end

---What the page is about, in front of the key that explains it.
local function winbar(buf)
  local name = vim.api.nvim_buf_get_name(buf):gsub('%%', '%%%%')
  local keys = settings.get().keys and 'g? help ' or ''
  return '%#PromptsideMuted#%< ' .. name .. '%=' .. keys .. '%*'
end

---@param win integer
local function dress(win)
  local set = vim.wo[win][0]
  set.wrap = true
  set.linebreak = true
  set.breakindent = true
  set.breakindentopt = 'shift:6'
  set.number = false
  set.relativenumber = false
  set.signcolumn = 'no'
  set.foldcolumn = '0'
  set.list = false
  set.spell = false
  set.cursorline = true
  set.foldmethod = 'manual'
  set.foldenable = true
  set.foldtext = "v:lua.require'promptside.page'.foldtext()"
  set.fillchars = vim.o.fillchars .. (vim.o.fillchars ~= '' and ',' or '') .. 'fold: '
  set.winhighlight = 'Folded:Normal'
  set.winbar = winbar(vim.api.nvim_win_get_buf(win))
end

---The line of a closed fold: its own text, with a mark.
function M.foldtext()
  local page = pages[vim.api.nvim_get_current_buf()]
  local line = page and page.lines[vim.v.foldstart]
  if not line then
    return vim.fn.foldtext()
  end
  local chunks, first = { { MARGIN .. '> ', 'PromptsideMuted' } }, true
  for _, span in ipairs(line.spans or {}) do
    local text = span[1] or span.text
    if first then
      text = text:gsub('^  ', '')
      first = false
    end
    if text ~= '' then
      chunks[#chunks + 1] = { text, look.group(span[2] or span.role or '') or 'Normal' }
    end
  end
  return chunks
end

---What a fold goes by when the page is drawn anew.
---@param line promptside.PageLine
local function fold_key(line)
  return line.ref ~= '' and line.ref or text_of(line)
end

---@param buf integer
---@param win integer
---@param lines promptside.PageLine[]
local function fold(buf, win, lines)
  local known = folded[buf] or {}
  folded[buf] = known
  vim.api.nvim_win_call(win, function()
    vim.cmd('silent! normal! zE')
    local head
    local function finish(last)
      if head and last > head then
        vim.cmd(('silent %d,%dfold'):format(head, last))
        local key = fold_key(lines[head])
        local closed = known[key]
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
        head = (line.fold == 'open' or line.fold == 'closed') and number or nil
      end
    end
    finish(#lines)
  end)
end

---Note which folds the person has opened or closed.
---@param buf integer
---@param win integer
local function note_folds(buf, win)
  local page = pages[buf]
  if not page or #page.lines == 0 then
    return
  end
  vim.api.nvim_win_call(win, function()
    for number, line in ipairs(page.lines) do
      if (line.fold == 'open' or line.fold == 'closed') and vim.fn.foldlevel(number) > 0 then
        folded[buf] = folded[buf] or {}
        folded[buf][fold_key(line)] = vim.fn.foldclosed(number) == number
      end
    end
  end)
end

---Where the cursor belongs when the page is another: the same thing, else the same place.
---@param old promptside.PageLine[]
---@param new promptside.PageLine[]
---@param at integer
local function moved(old, new, at)
  local line = old[at]
  if not line then
    return at
  end
  local key, nth = fold_key(line), 0
  for number = 1, at do
    nth = nth + (fold_key(old[number]) == key and 1 or 0)
  end
  for number, other in ipairs(new) do
    if fold_key(other) == key then
      nth = nth - 1
      if nth == 0 then
        return number
      end
    end
  end
  return at
end

---Where a page is begun: at what waits for the person, else at what can be done first, else at what can be opened.
---Never at what stops or throws away something because it happens to be the first that can be done.
---@param lines promptside.PageLine[]
local function first_item(lines)
  local waits, primary, begin, opens
  for number, line in ipairs(lines) do
    local offer = line.offers[1]
    if vim.startswith(line.ref, 'offer/') then
      if offer and offer.primary and not offer.blocked then
        primary = primary or number
      end
      begin = begin or (line.task == 0 and number or nil)
    elseif line.fold == 'inside' and (line.ref:match('^decision/') or line.ref:match('^item/')) then
      waits = waits or (line.uri ~= '' and number or nil)
    elseif line.fold == 'inside' and line.page ~= '' then
      opens = opens or number
    end
  end
  return waits or primary or opens or begin or 1
end

---What the server has, with what is to be said of the project around it.
---@param page promptside.ShownPage
---@return promptside.PageLine[]
local function with_notices(page)
  local lines = vim.list_extend({}, page.shown.lines)
  if page.address.name ~= 'tasks' then
    return lines
  end
  if #lines > 0 and (lines[#lines].ref or '') == 'offer/promptside.newTask' then
    lines[#lines + 1] = require('promptside.notice').rehearsal()
  end
  if #page.notices > 0 then
    lines = vim.list_extend(vim.list_extend({}, page.notices), { { spans = {} }, unpack(lines) })
  end
  return lines
end

---@param buf integer
local function draw(buf)
  local page = pages[buf]
  local shown = {
    lines = with_notices(page),
    name = page.shown.name,
    project = page.shown.project,
    task = page.shown.task,
  }
  local old, views = page.lines, {}
  for _, line in ipairs(shown.lines) do
    line.ref, line.fold, line.offers = line.ref or '', line.fold or '', line.offers or {}
    line.project, line.task, line.uri = line.project or '', line.task or 0, line.uri or ''
    line.page, line.line = line.page or '', line.line or 0
  end
  for _, win in ipairs(windows(buf)) do
    note_folds(buf, win)
    views[win] = vim.api.nvim_win_call(win, vim.fn.winsaveview)
  end
  page.lines, page.dirty = shown.lines, false
  page.told = { name = shown.name, project = shown.project, task = shown.task }
  local texts = vim.tbl_map(text_of, shown.lines)
  buffers.set_lines(buf, 0, -1, #texts > 0 and texts or { '' })
  vim.api.nvim_buf_clear_namespace(buf, SPACE, 0, -1)
  for number, line in ipairs(shown.lines) do
    local column, width = #MARGIN, #texts[number]
    for _, span in ipairs(line.spans or {}) do
      local text = span[1] or span.text
      local group = look.group(span[2] or span.role or '')
      if group and column < width then
        vim.api.nvim_buf_set_extmark(buf, SPACE, number - 1, column, {
          end_col = math.min(column + #text, width),
          hl_group = group,
        })
      end
      column = column + #text
    end
  end
  for win, view in pairs(views) do
    dress(win)
    fold(buf, win, shown.lines)
    local kept = #old > 0 and (page.put[win] ~= view.lnum)
    local at = kept and moved(old, shown.lines, view.lnum) or first_item(shown.lines)
    page.put[win] = not kept and at or nil
    local shift = at - view.lnum
    view.lnum = math.max(math.min(at, math.max(#texts, 1)), 1)
    local fits = #texts <= vim.api.nvim_win_get_height(win)
    view.topline = kept and not fits and math.max(view.topline + shift, 1) or 1
    vim.api.nvim_win_call(win, function()
      vim.fn.winrestview(view)
    end)
  end
end

local function has_task(lines)
  for _, line in ipairs(lines) do
    if (line.task or 0) > 0 then
      return true
    end
  end
  return false
end

---Ask for a page as it is now.
---@param buf integer
---@param fresh? boolean Whether it is opened just now.
local function ask(buf, fresh)
  local page = pages[buf]
  local at = page.address
  local win = windows(buf)[1]
  local width = (win and vim.api.nvim_win_get_width(win) or vim.o.columns) - #MARGIN - 1
  client.request('promptside/page', {
    name = at.name,
    project = at.project,
    task = at.task,
    pipeline = at.pipeline,
    width = math.max(width, 20),
    unicode = settings.get().icons,
  }, function(err, shown)
    if not vim.api.nvim_buf_is_valid(buf) or pages[buf] ~= page then
      return
    end
    if err then
      message.say(message.sentence(err), 'error')
      if #page.lines == 0 then
        buffers.set_lines(buf, 0, -1, { MARGIN .. message.sentence(err) })
      end
      return
    end
    page.shown = shown
    draw(buf)
    local begun = has_task(shown.lines)
    if at.name == 'tasks' and (fresh or begun ~= page.begun) then
      page.begun = begun
      require('promptside.notice').ask(begun, function(lines)
        if pages[buf] == page and page.begun == begun and not vim.deep_equal(lines, page.notices) then
          page.notices = lines
          draw(buf)
        end
      end)
    end
  end)
end

---Fill a buffer with a page, and keep it as it is.
---@param buf integer
---@param at promptside.Address
function M.open(buf, at)
  pages[buf] = pages[buf] or { address = at, lines = {}, notices = {}, dirty = false, put = {} }
  vim.bo[buf].modifiable = false
  require('promptside.keys').map(buf, 'page')
  local group = vim.api.nvim_create_augroup('promptside.page.' .. buf, {})
  vim.api.nvim_create_autocmd('BufWinEnter', {
    group = group,
    buffer = buf,
    callback = function()
      local win = vim.api.nvim_get_current_win()
      dress(win)
      local page = pages[buf]
      if #page.lines > 0 then
        fold(buf, win, page.lines)
      end
      ask(buf, true)
    end,
  })
  vim.api.nvim_create_autocmd('WinResized', {
    group = group,
    callback = function()
      for _, win in ipairs(vim.v.event.windows or {}) do
        if vim.api.nvim_win_is_valid(win) and vim.api.nvim_win_get_buf(win) == buf then
          ask(buf)
          return
        end
      end
    end,
  })
  vim.api.nvim_create_autocmd({ 'BufUnload', 'BufWipeout' }, {
    group = group,
    buffer = buf,
    callback = function()
      local page = pages[buf]
      pages[buf], folded[buf] = nil, nil
      local server = client.get()
      if page and page.told and server then
        server:request('promptside/closePage', page.told, function() end)
      end
      pcall(vim.api.nvim_del_augroup_by_id, group)
    end,
  })
  if #pages[buf].lines == 0 then
    buffers.set_lines(buf, 0, -1, { MARGIN .. 'One moment: Promptside is starting …' })
  end
  ask(buf, true)
end

---A page would be drawn otherwise now.
---@param news { name: string, project: string, task: integer }
function M.changed(news)
  for buf, page in pairs(pages) do
    local told = page.told
    if told and told.name == news.name and told.project == news.project and told.task == news.task then
      if #windows(buf) > 0 then
        ask(buf)
      else
        page.dirty = true -- it is asked for when it is shown again
      end
    end
  end
end

---Ask anew for the pages that are of no task: nobody tells when what they list is another.
function M.again()
  for buf, page in pairs(pages) do
    if page.address.task == 0 and page.address.name ~= 'tasks' and #windows(buf) > 0 then
      ask(buf)
    end
  end
end

---The line of the page that the cursor is on.
---@return promptside.PageLine?
function M.here()
  local page = pages[vim.api.nvim_get_current_buf()]
  return page and page.lines[vim.api.nvim_win_get_cursor(0)[1]] or nil
end

---The task of the line, else of the page.
---@return { project: string, task: integer }?
function M.target()
  local line = M.here()
  if line and line.task > 0 then
    return { project = line.project, task = line.task }
  end
  local page = pages[vim.api.nvim_get_current_buf()]
  local told = page and page.told
  return told and told.task > 0 and { project = told.project, task = told.task } or nil
end

local function address_of(line)
  if line.page == 'task' and line.task > 0 then
    return M.name(line.project, line.task)
  elseif line.page == 'pipeline' then
    return address.name('pipeline/' .. line.ref:gsub('^pipeline/', ''))
  elseif line.page == 'tasks' and line.project ~= '' then
    return ('promptside://tasks?project=%s'):format(vim.uri_encode(line.project, 'rfc3986'))
  end
end

local function open_document(line, mods)
  buffers.wish(mods)
  local at = { line = math.max(line.line - 1, 0), character = 0 }
  buffers.show({ uri = line.uri, selection = line.line > 0 and { start = at, ['end'] = at } or nil })
end

---What can be done at a line, chosen from a list.
---@param line promptside.PageLine
local function choose(line)
  local offers = vim.tbl_filter(function(offer)
    return not offer.blocked
  end, line.offers)
  if #offers == 0 then
    local why = line.offers[1] and line.offers[1].blocked
    return message.say(why or 'There is nothing to do here.')
  end
  require('promptside.ask').pick('What do you want to do? ', offers, function(offer)
    return offer.title
  end, function(offer)
    require('promptside.order').offer(line, offer)
  end)
end

---`<CR>`: open what the line is about, or do what it says.
---@param mods? table
function M.enter(mods)
  local line = M.here()
  if not line then
    return
  end
  local page = pages[vim.api.nvim_get_current_buf()]
  local name = address_of(line)
  if vim.startswith(line.ref, 'offer/') and line.offers[1] then
    require('promptside.order').offer(line, line.offers[1])
  elseif name and not (page.address.name == 'task' and vim.startswith(line.ref, 'task/')) then
    buffers.edit(name, mods)
  elseif line.uri ~= '' then
    open_document(line, mods)
  elseif #line.offers > 0 then
    choose(line)
  elseif line.fold == 'open' or line.fold == 'closed' then
    vim.cmd('normal! za')
  end
end

---`p`: the document of the line in the preview window, else the one that its task waits with; the cursor stays.
function M.preview()
  local line = M.here()
  local target = M.target()
  local task = target and tasks.get(target.project, target.task)
  local document = task and task.waiting_for and task.waiting_for.document
  local name
  if line and line.uri ~= '' then
    name = vim.startswith(line.uri, 'promptside:') and address.short(line.uri) or vim.uri_to_fname(line.uri)
  elseif task and document then
    name = vim.fs.joinpath(task.project, document)
  elseif line then
    name = address_of(line)
  end
  if not name then
    return message.say('There is nothing to preview here.')
  end
  vim.cmd.pedit({ args = { name }, magic = { file = false } })
end

---`.`: everything that can be done at the line, else with its task.
function M.menu()
  local line = M.here()
  if not line then
    return
  end
  if (#line.offers == 0 or vim.startswith(line.ref, 'offer/')) and line.task > 0 then
    local task = tasks.get(line.project, line.task)
    line = vim.tbl_extend('force', line, { offers = task and task.offers or {} })
  end
  choose(line)
end

---Do the first of some commands that is offered for the line's task, or say why none is.
---@param commands string[]
---@param nothing string
function M.order(commands, nothing)
  local target = M.target()
  local task = target and tasks.get(target.project, target.task)
  if not target or not task then
    return message.say('No task stands here.')
  end
  local why
  for _, command in ipairs(commands) do
    for _, offer in ipairs(task.offers) do
      if offer.command == 'promptside.' .. command and (offer.place == '' or command == 'allow') then
        if not offer.blocked then
          return require('promptside.order').offer({ project = target.project, task = target.task }, offer)
        end
        why = why or offer.blocked
      end
    end
  end
  message.say(why or nothing)
end

---`]]`, `[[`: the next or previous line with something to open or to do; `}`, `{`: the next or previous group.
---@param step 1|-1
---@param what 'item'|'group'
function M.jump(step, what)
  local page = pages[vim.api.nvim_get_current_buf()]
  if not page then
    return
  end
  local at = vim.api.nvim_win_get_cursor(0)[1] + step
  while page.lines[at] do
    local line = page.lines[at]
    local hit
    if what == 'group' then
      hit = line.fold == 'open' or line.fold == 'closed'
    else
      hit = line.page ~= '' or line.uri ~= '' or #line.offers > 0
    end
    local closed = vim.fn.foldclosed(at)
    if hit and (closed == -1 or closed == at) then
      vim.api.nvim_win_set_cursor(0, { at, #MARGIN })
      return
    end
    at = at + step
  end
end

return M
