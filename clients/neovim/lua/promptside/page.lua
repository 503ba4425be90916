---Pages: lines with roles as the server draws them. Here they are put on the screen, and nothing else is known of them.
local buffers = require('promptside.buffers')
local client = require('promptside.client')
local folds = require('promptside.folds')
local inbox = require('promptside.inbox')
local keys = require('promptside.keys')
local lines_of = require('promptside.lines')
local message = require('promptside.message')
local notice = require('promptside.notice')
local settings = require('promptside.settings')
local tasks = require('promptside.tasks')
local window = require('promptside.window')

local M = {}

---@class promptside.ShownPage
---@field address promptside.Address
---@field told? { name: string, project: string, task: integer } What the server calls it.
---@field lines promptside.ours.PageLine[] As they stand in the buffer.
---@field shown? promptside.ours.PageShown As the server told it last.
---@field notices promptside.Notices
---@field begun? boolean Whether it lists tasks; what is said above them depends on it.
---@field put table<integer, integer> Where the cursor of a window was put; until it is moved, it goes to what is first.
---@field mark table<integer, string> What waited when the cursor of a window was put there.

---@type table<integer, promptside.ShownPage>
local pages = {}

---@param buf integer
---@param win integer
local function dress(buf, win)
  window.dress(win, {
    breakindentopt = 'shift:6',
    cursorline = true,
    foldmethod = 'manual',
    foldenable = true,
    foldtext = "v:lua.require'promptside.folds'.text()",
    fillchars = vim.o.fillchars .. (vim.o.fillchars ~= '' and ',' or '') .. 'fold: ',
    winhighlight = 'Folded:Normal',
  })
  local help = settings.get().keys and 'g? help' or ''
  window.bar(win, 'PromptsideMuted', vim.api.nvim_buf_get_name(buf), help)
end

---What the server has, with what is to be said of the project around it.
---@param page promptside.ShownPage
---@return promptside.ours.PageLine[]
local function with_notices(page)
  local lines = vim.tbl_map(lines_of.whole, page.shown.lines)
  if page.address.name ~= 'tasks' then
    return lines
  end
  return notice.around(inbox.whole(lines), page.notices)
end

---What a page is looked at for now: when it is another, the cursor belongs there.
---@param page promptside.ShownPage
---@return string
local function mark_of(page)
  local first = page.lines[lines_of.first(page.lines)]
  local task = page.told.task > 0 and tasks.get(page.told.project, page.told.task)
  local waiting = task and task.waiting_for
  if not task then
    return first and lines_of.key(first) or ''
  end
  return task.state .. (waiting and waiting.stage .. waiting.kind .. waiting.since or '')
end

---Have all of a group be seen, as far as there is room, with the cursor on its line.
---@param win integer
---@param lines promptside.ours.PageLine[]
---@param at integer
local function reveal(win, lines, at)
  local last = at
  while lines[last + 1] and lines[last + 1].fold == 'inside' do
    last = last + 1
  end
  vim.api.nvim_win_call(win, function()
    if vim.fn.line('w$') < last then
      vim.api.nvim_win_set_cursor(win, { last, 0 })
      vim.cmd('normal! zb')
      vim.api.nvim_win_set_cursor(win, { at, #lines_of.MARGIN })
    end
  end)
end

---@param buf integer
---@param fresh? boolean Whether the current window has come to it just now.
local function draw(buf, fresh)
  local page = pages[buf]
  local shown = page.shown --[[@as promptside.ours.PageShown]]
  local old, lines, views = page.lines, with_notices(page), {}
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    folds.note(buf, win)
    views[win] = vim.api.nvim_win_call(win, vim.fn.winsaveview)
  end
  page.lines = lines
  page.told = { name = shown.name, project = shown.project, task = shown.task }
  local texts = lines_of.texts(lines)
  buffers.put(buf, #texts > 0 and texts or { '' })
  lines_of.colour(buf, lines, texts)
  keys.beside(buf, lines)
  local mark = mark_of(page)
  for win, view in pairs(views) do
    dress(buf, win)
    folds.fold(buf, win, lines)
    -- Under the person's hand the cursor goes nowhere: Enter would do something else than what they read.
    local left = page.mark[win] ~= mark and (fresh or win ~= vim.api.nvim_get_current_win())
    local kept = #old > 0 and page.put[win] ~= view.lnum and not left
    local at = kept and lines_of.moved(old, lines, view.lnum)
    kept, at = at and true, at or lines_of.first(lines)
    page.put[win] = not kept and at or nil
    page.mark[win] = kept and page.mark[win] or mark
    local shift = at - view.lnum
    view.lnum = math.max(math.min(at, math.max(#texts, 1)), 1)
    local fits = #texts <= vim.api.nvim_win_get_height(win)
    view.topline = kept and not fits and math.max(view.topline + shift, 1) or 1
    vim.api.nvim_win_call(win, function()
      vim.fn.winrestview(view)
    end)
    if not kept and not fits then
      reveal(win, lines, at)
    end
  end
end

---@param lines promptside.ours.PageLine[]
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
  local win = vim.fn.win_findbuf(buf)[1]
  local width = (win and vim.api.nvim_win_get_width(win) or vim.o.columns) - #lines_of.MARGIN - 1
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
        local start = tasks.away() ~= '' and '  :Promptside daemon starts it.' or ''
        buffers.put(buf, { lines_of.MARGIN .. message.sentence(err) .. start })
      end
      return
    end
    page.shown = shown
    draw(buf, fresh)
    local begun = has_task(shown.lines)
    if at.name == 'tasks' and (fresh or begun ~= page.begun) then
      page.begun = begun
      notice.ask(begun, function(notices)
        if pages[buf] == page and page.begun == begun and not vim.deep_equal(notices, page.notices) then
          page.notices = notices
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
  pages[buf] = pages[buf] or { address = at, lines = {}, notices = notice.guess(), put = {}, mark = {} }
  vim.bo[buf].modifiable = false
  keys.map(buf, 'page')
  local group = vim.api.nvim_create_augroup('promptside.page.' .. buf, {})
  vim.api.nvim_create_autocmd('BufWinEnter', {
    group = group,
    buffer = buf,
    callback = function()
      local win = vim.api.nvim_get_current_win()
      dress(buf, win)
      local lines = pages[buf].lines
      if #lines > 0 then
        folds.fold(buf, win, lines)
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
  buffers.at_end(buf, group, function()
    local page, server = pages[buf], client.get()
    pages[buf] = nil
    folds.forget(buf)
    if page and page.told and server then
      server:request('promptside/closePage', page.told, function() end)
    end
  end)
  if #pages[buf].lines == 0 then
    buffers.put(buf, { lines_of.MARGIN .. 'One moment: Promptside is starting …' })
  end
  ask(buf, true)
end

---Have the cursor go to what the page is looked at for now, wherever it was left.
function M.begin()
  local buf = vim.api.nvim_get_current_buf()
  pages[buf].mark[vim.api.nvim_get_current_win()] = nil
  ask(buf, true)
end

---A page would be drawn otherwise now; where it is not shown, it is asked for when it is.
---@param news promptside.ours.PageNews
function M.changed(news)
  for buf, page in pairs(pages) do
    local told = page.told
    local same = told and told.name == news.name and told.project == news.project and told.task == news.task
    if same and #vim.fn.win_findbuf(buf) > 0 then
      ask(buf)
    end
  end
end

---A task is told, which may be after its page: lists say what it asks to be allowed whole.
---@param task promptside.TaskView
function M.told(task)
  for buf, page in pairs(pages) do
    if page.shown and page.address.name == 'tasks' and task.waiting_for and #vim.fn.win_findbuf(buf) > 0 then
      draw(buf)
    end
  end
end

---Ask anew for the pages that could not be had before.
function M.now_there()
  for buf, page in pairs(pages) do
    if #page.lines == 0 and #vim.fn.win_findbuf(buf) > 0 then
      ask(buf, true)
    end
  end
end

---Ask anew for the pages that are of no task: nobody tells when what they list is another.
function M.again()
  for buf, page in pairs(pages) do
    if page.address.task == 0 and page.address.name ~= 'tasks' and #vim.fn.win_findbuf(buf) > 0 then
      ask(buf)
    end
  end
end

---What the current buffer is a page of.
---@return promptside.Address?
function M.address()
  local page = pages[vim.api.nvim_get_current_buf()]
  return page and page.address
end

---A line of the page, counted from 1.
---@param number integer
---@return promptside.ours.PageLine?
function M.line(number)
  local page = pages[vim.api.nvim_get_current_buf()]
  return page and page.lines[number]
end

---The line of the page that the cursor is on; of a closed group its head, which is what is seen.
---@return promptside.ours.PageLine?
function M.here()
  local at = vim.api.nvim_win_get_cursor(0)[1]
  local head = vim.fn.foldclosed(at)
  return M.line(head > 0 and head or at)
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

return M
