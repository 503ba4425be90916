"""What is said between the daemon, the language server and the clients: types, forms, pages, frames."""

__version__ = "0.1.0"
PROTOCOL = 1
