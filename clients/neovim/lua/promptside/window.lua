---How windows look that show our buffers: as something to read, without the columns of an editor of code.
local M = {}

local PLAIN = {
  wrap = true,
  linebreak = true,
  breakindent = true,
  number = false,
  relativenumber = false,
  signcolumn = 'no',
  foldcolumn = '0',
  list = false,
  spell = false,
}

---Dress a window, as long as it shows the buffer that it shows now.
---@param win integer
---@param more? table<string, any> Options that this kind of buffer has of its own.
function M.dress(win, more)
  local set = vim.wo[win][0]
  for option, value in pairs(vim.tbl_extend('force', PLAIN, more or {})) do
    set[option] = value
  end
end

---The line above a window: what it shows, and on the right what can be done or how it stands.
---@param win integer
---@param group string Of what it shows.
---@param left string
---@param right string
function M.bar(win, group, left, right)
  left, right = left:gsub('%%', '%%%%'), right:gsub('%%', '%%%%')
  vim.wo[win][0].winbar = ('%%#%s#%%< %s%%#PromptsideMuted#%%=%s %%*'):format(group, left, right)
end

return M
