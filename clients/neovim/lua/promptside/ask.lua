---Questions to the person, through `vim.ui`, which a plugin of theirs may draw; closing one is no.
local float = require('promptside.float')
local text = require('promptside.text')

local M = {}

---Whether the editor's own picker is in place: that one holds up everything, the agent's output too, until it is
---answered.
local function stock()
  local source = debug.getinfo(vim.ui.select, 'S').source
  return source:match('vim[/\\]ui%.lua$') ~= nil
end

---A list in a window: `<CR>` or a number picks, `q` and leaving it pick nothing.
---@param prompt string
---@param labels string[]
---@param done fun(index?: integer)
---@param again? string The key that asked: pressed once more it picks the first.
local function list(prompt, labels, done, again)
  local title, lines = vim.trim(prompt), {}
  if vim.fn.strdisplaywidth(title) > vim.o.columns - 8 then
    lines = vim.list_extend(text.rows(title, vim.o.columns - 6), { '' })
    title = 'Promptside'
  end
  local above = #lines
  for number, label in ipairs(labels) do
    lines[above + number] = ('%s%d  %s'):format(number < 10 and ' ' or '', number, (label:gsub('%s+', ' ')))
  end
  local win = float.open(title, lines, { footer = '<CR> picks, q leaves' })
  local buf = vim.api.nvim_win_get_buf(win)
  vim.wo[win][0].cursorline = true
  vim.api.nvim_win_set_cursor(win, { above + 1, 0 })
  local over = false
  local function finish(index)
    if over then
      return
    end
    over = true
    if vim.api.nvim_win_is_valid(win) then
      vim.api.nvim_win_close(win, true)
    end
    vim.schedule(function()
      done(index)
    end)
  end
  local function map(key, act)
    vim.keymap.set('n', key, act, { buffer = buf, nowait = true })
  end
  map('<CR>', function()
    local index = vim.api.nvim_win_get_cursor(win)[1] - above
    if index > 0 then
      finish(index)
    end
  end)
  for number = 1, math.min(#labels, 9) do
    map(tostring(number), function()
      finish(number)
    end)
  end
  if again then
    map(again, function()
      finish(1)
    end)
  end
  map('q', finish)
  map('<Esc>', finish)
  vim.api.nvim_create_autocmd('BufWipeout', {
    buffer = buf,
    once = true,
    callback = function()
      finish()
    end,
  })
end

---Pick one of several; `none` is called, if given, when none is picked.
---@generic T
---@param prompt string
---@param items T[]
---@param label fun(item: T): string
---@param take fun(item: T)
---@param none? fun()
---@param again? string
function M.pick(prompt, items, label, take, none, again)
  local function done(choice)
    if choice ~= nil then
      take(choice)
    elseif none then
      none()
    end
  end
  if stock() then
    return list(prompt, vim.tbl_map(label, items), function(index)
      done(index and items[index])
    end, again)
  end
  vim.ui.select(items, { prompt = prompt, kind = 'promptside', format_item = label }, done)
end

---Ask before something is thrown away.
---@param question string
---@param button string
---@param act fun()
---@param again? string The key that asked, which pressed once more is yes.
function M.confirm(question, button, act, again)
  M.pick(question, { button, 'Leave it as it is' }, tostring, function(choice)
    if choice == button then
      act()
    end
  end, nil, again)
end

return M
