---Buffers that are no files: opened by their name, by `:edit` as by us, so that sessions and the jump list know them.
local address = require('promptside.address')
local message = require('promptside.message')

local M = {}

---Where the next document goes that the server opens, as the person asked for it.
---@type { mods?: table }
local wish = {}

---What all of our buffers have in common.
---@param buf integer
---@param filetype string
function M.prepare(buf, filetype)
  vim.bo[buf].buftype = 'nowrite' -- a session keeps it by its name, which it would not with 'nofile'
  vim.bo[buf].swapfile = false
  vim.bo[buf].undofile = false
  vim.bo[buf].modifiable = false
  vim.bo[buf].bufhidden = 'hide'
  vim.bo[buf].filetype = filetype
end

---Fill a buffer that nobody may edit. Lines that stay are left alone: with them the jump list and the place where the
---cursor was would be gone.
---@param buf integer
---@param lines string[]
function M.put(buf, lines)
  local function text(some)
    return table.concat(some, '\n') .. '\n'
  end
  local old = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  local hunks = vim.diff(text(old), text(lines), { result_type = 'indices' }) --[[@as integer[][] ]]
  local readonly = vim.bo[buf].readonly
  vim.bo[buf].modifiable, vim.bo[buf].readonly = true, false -- else the editor warns, and waits a second to be read
  for index = #hunks, 1, -1 do
    local from, count, new, many = unpack(hunks[index])
    local first = count > 0 and from - 1 or from
    local taken = vim.list_slice(lines, new, new + many - 1)
    vim.api.nvim_buf_set_lines(buf, first, first + count, false, taken)
  end
  vim.bo[buf].modifiable, vim.bo[buf].readonly = false, readonly
  vim.bo[buf].modified = false
end

---When a buffer is unloaded: what was done for it ends, and its autocommands.
---@param buf integer
---@param group integer
---@param act fun()
function M.at_end(buf, group, act)
  vim.api.nvim_create_autocmd({ 'BufUnload', 'BufWipeout' }, {
    group = group,
    buffer = buf,
    callback = function()
      act()
      pcall(vim.api.nvim_del_augroup_by_id, group)
    end,
  })
end

---The buffer of a name, loaded or not; 0 or less if there is none.
---@param name string
---@return integer
local function numbered(name)
  return vim.fn.bufnr('^' .. vim.fn.escape(name, '?*[]{}\\,') .. '$')
end

---The filetype of a document of the server: what its path says.
local function filetype_of(name)
  local path = name:gsub('%?.*$', '')
  if path:match('^promptside://transcript/') then
    return 'promptside-output'
  end
  local side = path:match('^promptside://%a+/%d+/[^/]+/%d+/(.+)$')
  if side then
    return vim.filetype.match({ filename = vim.uri_decode(side) }) or ''
  end
  return 'markdown'
end

---A name with its project, which the shortest form leaves out.
local function with_project(name)
  if name:find('?project=', 1, true) then
    return name
  end
  local number = tonumber(name:match('^promptside://(%d+)/') or name:match('^promptside://%a+/(%d+)/'))
  local found = number and require('promptside.tasks').get('', number)
  return found and ('%s?project=%s'):format(name, vim.uri_encode(found.project, 'rfc3986')) or name
end

---What is to be done when a buffer has been filled; true where it has.
---@type table<integer, true|fun()[]>
local filled = {}

---Do something when what the server has under a buffer's name is there; of a file of the person's at once.
---@param buf integer
---@param act fun()
function M.when_filled(buf, act)
  local due = filled[buf]
  if type(due) == 'table' then
    due[#due + 1] = act
  else
    act()
  end
end

---Fill a buffer with what the server has under its name.
---@param buf integer
local function fill(buf)
  filled[buf] = type(filled[buf]) == 'table' and filled[buf] or {}
  local uri = with_project(vim.api.nvim_buf_get_name(buf))
  require('promptside.client').request('workspace/textDocumentContent', { uri = uri }, function(err, result)
    if not vim.api.nvim_buf_is_valid(buf) then
      return
    end
    -- No answer is an answer, too: nothing has this name.
    local text = err and message.sentence(err)
      or result and result.text
      or ('There is nothing with the name %s.  :Promptside shows all tasks.'):format(uri)
    local lines = vim.split(text, '\n')
    if #lines > 1 and lines[#lines] == '' then
      table.remove(lines)
    end
    M.put(buf, lines)
    local due = filled[buf]
    filled[buf] = true
    for _, act in ipairs(type(due) == 'table' and due or {}) do
      act()
    end
    if err or not result then
      message.say(text, 'error')
    end
  end)
end

---`:edit promptside://…`
---@param buf integer
function M.read(buf)
  local name = vim.api.nvim_buf_get_name(buf)
  local found = address.parse(name)
  if not found then
    return
  end
  if found.kind == 'page' then
    M.prepare(buf, 'promptside')
    require('promptside.page').open(buf, found)
  elseif found.kind == 'output' then
    M.prepare(buf, 'promptside-output')
    require('promptside.stream').open(buf, found)
  elseif found.kind == 'log' then
    M.prepare(buf, 'promptside-log')
    M.put(buf, message.lines())
    vim.keymap.set('n', 'q', function()
      M.leave()
    end, { buffer = buf, desc = 'Close' })
  else
    M.prepare(buf, filetype_of(name))
    vim.bo[buf].readonly = true
    fill(buf)
  end
end

---Ask anew for a document of the server that changed.
---@param uri string
function M.refresh(uri)
  local buf = numbered(address.short(uri))
  if buf > 0 and vim.api.nvim_buf_is_loaded(buf) then
    fill(buf)
  end
end

---Ask anew for everything that is shown: there is another server.
function M.again()
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buf) then
      local found = address.parse(vim.api.nvim_buf_get_name(buf))
      if found and found.kind ~= 'log' and found.kind ~= 'content' then
        M.read(buf)
      end
    end
  end
end

---Whether a window shows what is to stay there while documents come and go: a list of places, what an agent writes.
---@param win integer
local function stays(win)
  local buf = vim.api.nvim_win_get_buf(win)
  local found = address.parse(vim.api.nvim_buf_get_name(buf))
  return vim.bo[buf].buftype == 'quickfix' or (found ~= nil and found.kind == 'output')
end

---Whether a document may be opened in a window.
---@param win integer
local function takes(win)
  local kind = vim.bo[vim.api.nvim_win_get_buf(win)].buftype
  local floats = vim.api.nvim_win_get_config(win).relative ~= ''
  local kept = vim.wo[win].previewwindow or vim.wo[win].winfixbuf
  return not floats and not kept and not stays(win) and (kind == '' or kind == 'nowrite' or kind == 'acwrite')
end

---Go from a window that stays what it is to one where a document may be opened: where one came from, else any other of
---the tab, else a new one.
function M.step_aside()
  local current = vim.api.nvim_get_current_win()
  if not stays(current) then
    return
  end
  local before = vim.fn.win_getid(vim.fn.winnr('#'))
  for _, win in ipairs({ before, unpack(vim.api.nvim_tabpage_list_wins(0)) }) do
    if vim.api.nvim_win_is_valid(win) and takes(win) then
      return vim.api.nvim_set_current_win(win)
    end
  end
  vim.cmd('aboveleft new')
  vim.bo.bufhidden = 'wipe'
end

---Edit something in the current window, or where the modifiers of the command say.
---@param name string
---@param mods? table
function M.edit(name, mods)
  local place = mods or {}
  local split = place.split ~= nil and place.split ~= '' or place.vertical or (place.tab or -1) >= 0
  local found = address.parse(name)
  local output = found ~= nil and found.kind == 'output' -- of the next attempt, say: it takes the place of another
  if vim.bo.buftype == 'quickfix' or not (split or output) then
    M.step_aside()
  end
  local buf = numbered(name)
  local command = split and 'split' or 'edit'
  if not split and buf == vim.api.nvim_get_current_buf() then
    return found and found.kind == 'page' and M.read(buf) or nil -- drawn anew
  end
  -- A page or a preview gives way; a file with changes that could be lost is left where it is.
  if not split and vim.bo.modified and not vim.o.hidden and vim.bo.bufhidden == '' then
    command = 'split'
  end
  vim.cmd[command]({ args = { name }, mods = split and place or {}, magic = { file = false } })
end

---Have the documents that the server opens during an order go where the person asked for them.
---@param mods? table
function M.wish(mods)
  wish = { mods = mods }
end

---A window that shows something already, of this tab.
local function window_of(name)
  for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    if vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(win)) == name then
      return win
    end
  end
end

---Open a document: ours by its short name, a file as a file, an address of the web outside.
---@param params lsp.ShowDocumentParams
function M.show(params)
  local mods = wish.mods
  wish = {}
  if params.external or params.uri:match('^https?:') then
    vim.ui.open(params.uri)
    return
  end
  local name = address.path(params.uri)
  local before = vim.api.nvim_get_current_win()
  local there = not mods and window_of(name) or nil
  if there then
    vim.api.nvim_set_current_win(there)
  else
    if vim.api.nvim_win_get_config(before).relative ~= '' then
      vim.cmd.close()
    end
    M.edit(name, mods)
  end
  local at = params.selection and params.selection.start
  if at then
    local line = math.min(at.line + 1, vim.api.nvim_buf_line_count(0))
    local text = vim.api.nvim_buf_get_lines(0, line - 1, line, false)[1] or ''
    local column = vim.str_byteindex(text, 'utf-16', at.character, false)
    vim.cmd("normal! m'")
    vim.api.nvim_win_set_cursor(0, { line, column })
    vim.cmd('normal! zv')
    if text:match('^%s*>>%s*$') and vim.bo.modifiable then
      vim.cmd('startinsert!') -- a note was begun: the next thing is to write it
    end
  end
  if params.takeFocus == false and vim.api.nvim_win_is_valid(before) then
    vim.api.nvim_set_current_win(before)
  end
end

---Leave a buffer of ours: its window goes if there is another one, else what was there before comes back.
function M.leave()
  if #vim.api.nvim_tabpage_list_wins(0) > 1 or #vim.api.nvim_list_tabpages() > 1 then
    vim.cmd.close()
    return
  end
  local other = vim.fn.bufnr('#')
  if other > 0 and other ~= vim.api.nvim_get_current_buf() and vim.api.nvim_buf_is_loaded(other) then
    vim.cmd.buffer(other)
  else
    vim.cmd.enew()
  end
end

return M
