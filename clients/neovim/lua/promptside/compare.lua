---A changed file beside what it was, in a tab of its own, and from there the other files of the same list (ED-12).
local address = require('promptside.address')
local buffers = require('promptside.buffers')
local keys = require('promptside.keys')
local message = require('promptside.message')
local window = require('promptside.window')

local M = {}

---@class promptside.Compared
---@field result promptside.ours.Changes
---@field name string Of the stage, in words.
---@field at integer Which of its files is shown.
---@field list? integer The quickfix list that it was opened from.
---@field from integer The window that it was opened from.
---@field left integer
---@field right integer

---By tab.
---@type table<integer, promptside.Compared>
local tabs = {}

---@return promptside.Compared?
local function here()
  local shown = tabs[vim.api.nvim_get_current_tabpage()]
  local there = shown and vim.api.nvim_win_is_valid(shown.left) and vim.api.nvim_win_is_valid(shown.right)
  return there and shown or nil
end

---Whether the right side is the file itself, which the agent still writes.
---@param file promptside.ours.ChangedFile
local function is_own(file)
  return not vim.startswith(file.after, 'promptside://')
end

---What each side is: before, and after or, while the attempt runs, now. Where there is no room for all of it, the left
---one says which file it is and the right one of which attempt.
---@param shown promptside.Compared
local function bars(shown)
  local result, file = shown.result, shown.result.files[shown.at]
  local own = is_own(file)
  local attempt = ('%s, attempt %d'):format(shown.name, result.attempt)
  local before, after = 'Before ' .. attempt, own and 'Now, the file itself' or 'After ' .. attempt
  if result.stage == '' then
    before, after = 'Before the task', 'After all stages'
  end
  local mapped = require('promptside.settings').get().keys
  local place = ('%d of %d'):format(shown.at, #result.files)
  local go_on = ']q [q  q close'
  local sides = {
    {
      shown.left,
      before,
      'Before: ' .. file.path,
      mapped and ('%s  %s'):format(place, own and go_on or 'g? help') or place,
    },
    { shown.right, after, after, mapped and (own and 'keys: in the left window' or go_on) or '' },
  }
  for _, one in ipairs(sides) do
    local win, said, short, right = unpack(one)
    local words = ('%s: %s'):format(said, file.path)
    local room = vim.api.nvim_win_get_width(win) - vim.fn.strdisplaywidth(right) - 3
    window.bar(win, 'PromptsideTitle', vim.fn.strdisplaywidth(words) <= room and words or short, right)
  end
end

---Begin at the first change, as soon as both sides are there.
---@param shown promptside.Compared
local function begin(shown)
  local at, left, right = shown.at, shown.left, shown.right
  local buf = vim.api.nvim_win_get_buf(right)
  buffers.when_filled(vim.api.nvim_win_get_buf(left), function()
    buffers.when_filled(buf, function()
      local there = vim.api.nvim_win_is_valid(left) and vim.api.nvim_win_is_valid(right)
      if not there or vim.api.nvim_win_get_buf(right) ~= buf or shown.at ~= at then
        return
      end
      for _, win in ipairs({ left, right }) do
        vim.api.nvim_win_call(win, function()
          vim.cmd('diffupdate | normal! gg')
          if vim.fn.diff_hlID(1, 1) == 0 and vim.fn.diff_filler(1) == 0 then
            vim.cmd('silent! normal! ]c')
          end
        end)
      end
    end)
  end)
end

---@param win integer
---@param name string
local function side(win, name)
  vim.api.nvim_win_call(win, function()
    vim.cmd.diffoff()
    if vim.api.nvim_buf_get_name(0) ~= name then
      vim.cmd.edit({ args = { name }, magic = { file = false } })
    end
    vim.cmd.diffthis()
    local buf = vim.api.nvim_get_current_buf()
    if vim.startswith(name, 'promptside://') then
      keys.map(buf, 'compare') -- a file of the person's keeps its own keys
    end
  end)
end

---Show one of the files in the two windows.
---@param shown promptside.Compared
---@param at integer
local function put(shown, at)
  local file = shown.result.files[at]
  shown.at = 0 -- what is opened meanwhile is opened by us
  local done, fault = pcall(function()
    side(shown.left, address.path(file.before))
    side(shown.right, address.path(file.after))
  end)
  shown.at = at
  if not done then
    return message.say((tostring(fault):gsub('^.*Vim%b():', '')), 'warning')
  end
  if shown.list then
    vim.fn.setqflist({}, 'a', { id = shown.list, idx = at })
  end
  -- Where our keys are: not in a file of the person's.
  vim.api.nvim_set_current_win(is_own(file) and shown.left or shown.right)
  bars(shown)
  begin(shown)
end

---Something else has come into one of the two windows: another file of the list is compared in its turn, anything else
---is no side of a comparison.
---@param shown promptside.Compared
---@param name string
local function came(shown, name)
  for index, file in ipairs(shown.result.files) do
    if name == vim.uri_to_fname(file.uri) then
      return put(shown, index)
    end
  end
  tabs[vim.api.nvim_win_get_tabpage(shown.left)] = nil
  for _, win in ipairs({ shown.left, shown.right }) do
    vim.api.nvim_win_call(win, function()
      vim.cmd('diffoff | setlocal winbar<')
    end)
  end
end

---Watch what comes into the windows of a comparison, as by `:cnext`.
local function watch()
  vim.api.nvim_create_autocmd('BufWinEnter', {
    group = vim.api.nvim_create_augroup('promptside.compare', {}),
    callback = function()
      local shown, win = here(), vim.api.nvim_get_current_win()
      if not shown or shown.at == 0 or (win ~= shown.left and win ~= shown.right) then
        return
      end
      vim.schedule(function()
        local now = here()
        if now ~= shown or shown.at == 0 then
          return
        end
        local file, name =
          shown.result.files[shown.at], vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(win))
        if name ~= address.path(win == shown.left and file.before or file.after) then
          came(shown, name)
        end
      end)
    end,
  })
end

---A file in a tab: on the left what it was, on the right what it is.
---@param result promptside.ours.Changes
---@param at integer
---@param list? integer
function M.open(result, at, list)
  watch()
  local task = require('promptside.tasks').get(result.project, result.task)
  local stage = task and require('promptside.tasks').stage(task, result.stage)
  local from = vim.api.nvim_get_current_win()
  vim.cmd.tabnew()
  vim.bo.bufhidden = 'wipe'
  local left = vim.api.nvim_get_current_win()
  vim.cmd('rightbelow vsplit')
  local shown = {
    result = result,
    name = stage and stage.name or result.stage,
    at = at,
    list = list,
    from = from,
    left = left,
    right = vim.api.nvim_get_current_win(),
  }
  for tab in pairs(tabs) do
    tabs[tab] = vim.api.nvim_tabpage_is_valid(tab) and tabs[tab] or nil
  end
  tabs[vim.api.nvim_get_current_tabpage()] = shown
  put(shown, at)
end

---`]q`, `[q`: the next or previous file, in the same tab.
---@param step 1|-1
function M.go(step)
  local shown = here()
  if not shown then
    vim.cmd(step > 0 and 'silent! cnext' or 'silent! cprevious') -- one side alone, opened by its name
    return
  end
  local at = shown.at + step * vim.v.count1
  if not shown.result.files[at] then
    return message.say(step > 0 and 'This is the last file.' or 'This is the first file.')
  end
  put(shown, at)
end

---`q`: back to where it was opened from.
function M.leave()
  local shown = here()
  if not shown or #vim.api.nvim_list_tabpages() == 1 then
    return buffers.leave()
  end
  tabs[vim.api.nvim_get_current_tabpage()] = nil
  vim.cmd.tabclose()
  if not vim.api.nvim_win_is_valid(shown.from) then
    return
  end
  vim.api.nvim_set_current_win(shown.from)
  local now = vim.fn.getqflist({ id = 0, winid = 0 })
  if now.winid == shown.from and now.id == shown.list then
    vim.api.nvim_win_set_cursor(0, { shown.at, 0 }) -- it is where one has come to meanwhile
  end
end

return M
