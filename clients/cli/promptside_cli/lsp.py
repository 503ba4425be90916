"""`lsp`: the language server, which an editor starts; nothing of the terminal is loaded for it."""

from __future__ import annotations

from promptside_cli.arguments import Arguments


def serve(_: Arguments) -> int:
    """`lsp`"""
    from promptside_server.__main__ import main  # noqa: PLC0415  # pygls costs half a second

    return main()
