std = 'luajit'
read_globals = { 'vim' }
globals = { 'vim.g', 'vim.b', 'vim.w', 'vim.o', 'vim.bo', 'vim.wo', 'vim.opt', 'vim.ui' }
exclude_files = { 'lua/promptside/protocol.lua' }
max_line_length = 120
self = false
