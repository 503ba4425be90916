-- What is there before anything is asked for: the command, the names of our buffers, <Plug> maps, colours.
if vim.g.loaded_promptside then
  return
end
vim.g.loaded_promptside = true

if vim.fn.has('nvim-0.11') == 0 then
  vim.api.nvim_create_user_command('Promptside', function()
    vim.api.nvim_echo({ { 'Promptside needs Neovim 0.11 or later.', 'WarningMsg' } }, true, {})
  end, { nargs = '*', range = true, bang = true })
  return
end

vim.api.nvim_create_user_command('Promptside', function(call)
  require('promptside.command').run(call)
end, {
  nargs = '*',
  range = true,
  bang = true,
  desc = 'Promptside: tasks, stages and what waits for you',
  complete = function(lead, line)
    return require('promptside.command').complete(lead, line)
  end,
})

local group = vim.api.nvim_create_augroup('promptside', {})

vim.api.nvim_create_autocmd('BufReadCmd', {
  group = group,
  pattern = 'promptside://*',
  callback = function(event)
    require('promptside.buffers').read(event.buf)
  end,
})

vim.api.nvim_create_autocmd('ColorScheme', {
  group = group,
  callback = function()
    require('promptside.look').define()
  end,
})
require('promptside.look').define()

-- stylua: ignore
local VERBS = {
  'next', 'new', 'open', 'run', 'approve', 'select', 'send', 'recommended', 'redo', 'retry', 'interrupt', 'stop',
  'pause', 'resume', 'skip', 'back', 'takeback', 'abandon', 'output', 'transcript', 'prompt', 'changes', 'comment',
  'undo', 'takeover', 'allow', 'deny', 'rules', 'pipeline', 'trust', 'history', 'rehearse', 'demo', 'doctor', 'daemon',
  'restart', 'log',
}
for _, verb in ipairs(VERBS) do
  local name = '<Plug>(promptside-' .. verb .. ')'
  vim.keymap.set('n', name, '<Cmd>Promptside ' .. verb .. '<CR>')
  vim.keymap.set('x', name, ':Promptside ' .. verb .. '<CR>')
end
vim.keymap.set('n', '<Plug>(promptside-tasks)', '<Cmd>Promptside<CR>')

vim.lsp.enable('promptside')
