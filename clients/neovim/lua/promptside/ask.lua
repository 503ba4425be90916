---Questions to the person, through `vim.ui`, which a plugin of theirs may draw; closing one is no.
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
  local lines = {}
  for number, label in ipairs(labels) do
    lines[number] = ('%s%d  %s'):format(number < 10 and ' ' or '', number, (label:gsub('%s+', ' ')))
  end
  local win = require('promptside.message').float(vim.trim(prompt), lines)
  local buf = vim.api.nvim_win_get_buf(win)
  vim.wo[win][0].cursorline = true
  vim.api.nvim_win_set_config(win, { footer = ' <CR> picks, q leaves ', footer_pos = 'right' })
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
    finish(vim.api.nvim_win_get_cursor(win)[1])
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

---A line of words; nothing is called for an empty one.
---@param prompt string
---@param take fun(text: string)
---@param default? string
function M.words(prompt, take, default)
  vim.ui.input({ prompt = prompt, default = default }, function(text)
    if text and vim.trim(text) ~= '' then
      take(vim.trim(text))
    end
  end)
end

return M
