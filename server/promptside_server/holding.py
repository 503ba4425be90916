"""Which documents of tasks this editor holds open and takes edits of, as the daemon is told (UX 2.1).

The daemon leaves the files of those alone. It is told the whole list whenever it changes, and when it comes back.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from promptside_protocol.errors import PromptsideError
from promptside_protocol.queries import HeldDocument, Hold

if TYPE_CHECKING:
    from promptside_server.server import Server

log = logging.getLogger(__name__)


class Holding:
    """By uri, what is held."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._held: dict[str, HeldDocument] = {}
        self._told: tuple[HeldDocument, ...] = ()
        self._refused: set[str] = set()
        self._telling = asyncio.Lock()
        server.on_link.append(self._moved)

    async def hold(self, uri: str, held: HeldDocument) -> None:
        """Hold a document from now on, if the editor takes edits; returns when the daemon knows it."""
        if self._server.editor.edits and uri not in self._refused:
            self._held[uri] = held
            await self._tell()

    async def let_go(self, uri: str, *, refused: bool = False) -> None:
        """Hold it no longer; with `refused` the editor did not take an edit, and this stands until it is closed."""
        self._held.pop(uri, None)
        if refused:
            self._refused.add(uri)
        else:
            self._refused.discard(uri)
        await self._tell()

    async def _tell(self) -> None:
        async with self._telling:  # so that the newest list is the last that is told
            wanted = tuple(self._held.values())
            if wanted == self._told:
                return
            try:
                await self._server.link.call(Hold(documents=wanted))
            except PromptsideError as error:
                log.info("the daemon could not be told what is open: %s", error)
            else:
                self._told = wanted

    def _moved(self, up: bool, _: str) -> None:
        self._told = ()  # another connection: what was told went with the one before
        if up and self._held:
            self._server.do(self._tell())
