"""Diagnostics by file: each owner lays down its own, and a file is told whole, since LSP replaces all of a file's."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from lsprotocol import types

if TYPE_CHECKING:
    from promptside_server.server import Server

SOURCE = "promptside"


class Board:
    """What each owner has to say about each file."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._said: dict[str, dict[str, list[types.Diagnostic]]] = {}
        self._names: dict[str, str] = {}
        """How each file was written by who spoke of it first; without that, the same file had two names."""

    def put(self, uri: str, owner: str, found: list[types.Diagnostic]) -> None:
        """Say this about a file, in the place of what the same owner said before."""
        self._put(self._server.seen_as(uri), owner, found)

    def _put(self, uri: str, owner: str, found: list[types.Diagnostic]) -> None:
        uri, asked = unquote(uri), self._names.setdefault(unquote(uri), uri)
        owners = self._said.setdefault(uri, {})
        if owners.get(owner, []) == found:
            return
        owners[owner] = found
        everything = [one for part in owners.values() for one in part]
        if not everything:
            del self._said[uri]
        document = self._server.workspace.text_documents.get(uri)
        self._server.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(
                uri=document.uri if document is not None else asked,
                diagnostics=everything,
                version=document.version if document is not None else None,
            )
        )

    def keep(self, owner: str, found: dict[str, list[types.Diagnostic]]) -> None:
        """Everything that an owner has to say, of all files; where it says nothing any more, that is told."""
        wanted = {unquote(self._server.seen_as(uri)) for uri in found}
        for uri in [uri for uri, owners in self._said.items() if owners.get(owner) and uri not in wanted]:
            self._put(self._names[uri], owner, [])
        for uri, diagnostics in found.items():
            self.put(uri, owner, diagnostics)


_boards: WeakKeyDictionary[Server, Board] = WeakKeyDictionary()


def board(server: Server) -> Board:
    """The one board of an editor."""
    return _boards.setdefault(server, Board(server))
