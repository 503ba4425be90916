"""Telling an editor at its own pace: about 30 times a second, and not at all while it doesn't read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from promptside_server.server import Server

FRAME_SECONDS = 1 / 30


class Pace:
    """Calls `send` soon after it is woken, at most once a frame; what came meanwhile is told at once."""

    def __init__(self, server: Server, send: Callable[[], None], *, every: float = FRAME_SECONDS) -> None:
        self._server = server
        self._send = send
        self._every = every
        self._last = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._waiting = False

    def wake(self) -> None:
        """There is something to tell."""
        if self._timer is not None or self._waiting:
            return
        loop = asyncio.get_running_loop()
        due = self._last + self._every
        self._timer = loop.call_at(max(due, loop.time()), self._due)

    def stop(self) -> None:
        """There is nothing to tell any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _due(self) -> None:
        self._timer = None
        self._last = asyncio.get_running_loop().time()
        if self._server.protocol.behind:
            self._waiting = True
            self._server.do(self._when_read())
        else:
            self._send()

    async def _when_read(self) -> None:
        await self._server.protocol.drained()
        self._waiting = False
        self.wake()
