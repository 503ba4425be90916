---Questions to the person, through `vim.ui`, which a plugin of theirs may draw; closing one is no.
local M = {}

---Pick one of several; nothing is called when none is picked.
---@generic T
---@param prompt string
---@param items T[]
---@param label fun(item: T): string
---@param take fun(item: T)
function M.pick(prompt, items, label, take)
  vim.ui.select(items, { prompt = prompt, kind = 'promptside', format_item = label }, function(choice)
    if choice ~= nil then
      take(choice)
    end
  end)
end

---Ask before something is thrown away.
---@param question string
---@param button string
---@param act fun()
function M.confirm(question, button, act)
  M.pick(question, { button, 'Leave it as it is' }, tostring, function(choice)
    if choice == button then
      act()
    end
  end)
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
