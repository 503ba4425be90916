"""How LSP says it: the language server, which translates between editors and the daemon and decides nothing."""
