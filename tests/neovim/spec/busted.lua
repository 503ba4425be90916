-- nvim -u NONE -i NONE -n -l busted.lua spec: busted with Neovim as the Lua interpreter.
package.path = '/usr/share/lua/5.1/?.lua;/usr/share/lua/5.1/?/init.lua;' .. package.path
package.cpath = '/usr/lib/x86_64-linux-gnu/lua/5.1/?.so;/usr/lib/aarch64-linux-gnu/lua/5.1/?.so;'
  .. package.cpath
local here = vim.fn.fnamemodify(debug.getinfo(1, 'S').source:sub(2), ':p:h')
vim.opt.runtimepath:prepend(vim.fs.normalize(here .. '/../../../clients/neovim'))
require('busted.runner')({ standalone = false })
