-- The configuration that `vim.lsp.enable('promptside')` takes; yours is laid over it with `vim.lsp.config()`.
return require('promptside.client').config
