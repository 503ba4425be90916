"""Which files editors hold with changes that are not saved, by the word of their clients (ED-11).

Kept in memory only: a client that comes back tells it again, and one that goes takes its own along.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from promptside_daemon.engine.given import UnsavedFile
from promptside_daemon.rpc.who import Who

OURS = (".promptside/tasks/", ".promptside/drafts/", ".promptside/DESK.md")
"""Documents of Promptside's own: what stands in them decides nothing until it is sent."""
FILES = 1000
"""Of one client; whoever has more open has other troubles."""


class Buffers:
    """By connection, the files that it holds unsaved; links are followed."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[str, frozenset[str]]] = {}

    def tell(self, who: Who, files: Iterable[str]) -> dict[str, str]:
        """Take what a client holds now; answers with the files that nobody holds any more, and why in words."""
        before = set(self.by_file())
        wanted = [file for _, file in zip(range(FILES), files, strict=False)]
        self._held[who.connection] = (
            who.client,
            frozenset(os.path.realpath(f) for f in wanted if f[:1] == "/"),
        )
        return dict.fromkeys(before - set(self.by_file()), "It was saved or closed meanwhile.")

    def gone(self, who: Who) -> dict[str, str]:
        """A client is gone, and what it held with it; answers as `tell`."""
        before = set(self.by_file())
        self._held.pop(who.connection, None)
        return dict.fromkeys(
            before - set(self.by_file()), f"Meanwhile {who.client} was closed, which held the changes."
        )

    def by_file(self) -> dict[str, str]:
        """Each file that is held, with who holds it."""
        found: dict[str, list[str]] = {}
        for client, files in self._held.values():
            for file in files:
                clients = found.setdefault(file, [])
                if client not in clients:
                    clients.append(client)
        return {file: " and ".join(sorted(clients)) for file, clients in sorted(found.items())}

    def under(self, root: Path) -> tuple[UnsavedFile, ...]:
        """Those of a tree that a stage may write to."""
        top = os.path.realpath(root)
        found = []
        for file, client in self.by_file().items():
            if file.startswith(f"{top}/") and not (name := file[len(top) + 1 :]).startswith(OURS):
                found.append(UnsavedFile(path=name, client=client))
        return tuple(found)
