"""The way to the daemon: found or started, watched from a cursor, and found again when it was gone.

`initialize` never waits for it. What is known is marked stale while it can't be reached (CW-16). Only what a
person does starts a daemon that was stopped; what goes on by itself looks for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any, TypeVar, overload

from promptside_protocol import client, connect
from promptside_protocol.client import Connection
from promptside_protocol.commands import Ack, AnyCommand
from promptside_protocol.errors import PromptsideError
from promptside_protocol.notices import DaemonSays, FlowFailed, Notice
from promptside_protocol.queries import Query, Watch

log = logging.getLogger(__name__)

A = TypeVar("A")
ORDER_SECONDS = 10.0
"""How long an order waits for a daemon that is not there yet."""
AGAIN_SECONDS = 1.0
"""The pause before a flow that failed is opened again."""
STOPPED = "The Promptside daemon stopped. Agents at work go on; nothing is lost."


class Link:
    """One connection for a whole editor; every notice goes to `heard`, every change of state to `moved`."""

    def __init__(
        self,
        heard: Callable[[Notice], None],
        moved: Callable[[bool, str], None],
        cursors: Callable[[], dict[str, int]],
    ) -> None:
        self._heard = heard
        self._moved = moved
        self._cursors = cursors
        self._daemon: asyncio.Future[client.Daemon] | None = None
        self._wanted = asyncio.Event()
        self._watching = 0
        self._parting = ""
        self.up = False
        """Whether what the mirror holds is live."""
        self.why = "The Promptside daemon has not been reached yet."
        """Why it isn't."""

    async def run(self, name: str) -> None:
        """Reach the daemon and stay with it, until cancelled; `name` stands in approvals as their origin."""
        self._wanted.set()  # an editor that is opened on a project is reason enough to start the daemon
        delays = client.back_off()
        while True:
            wanted = self._wanted.is_set()
            self._wanted.clear()
            try:
                if wanted or await self._listens():
                    async with client.connect(connect.hello(name)) as daemon:
                        delays = client.back_off()
                        await self._attend(daemon)
            except PromptsideError as error:
                log.warning("the daemon can't be reached: %s", error)
                self._down(str(error))
                if wanted:
                    self._refuse(error)
            except Exception:
                log.exception("a fault of ours in the link to the daemon")
                self._down("Something went wrong between this editor and the Promptside daemon.")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(next(delays)):
                    await self._wanted.wait()

    @overload
    async def call(self, request: Query[A]) -> A: ...
    @overload
    async def call(self, request: AnyCommand) -> Ack: ...
    async def call(self, request: Query[Any] | AnyCommand) -> Any:
        """Ask or order; waits at most 10 s for a daemon that is away, and is never sent later."""
        reached = self._reached()
        if not reached.done():
            self._wanted.set()
        try:
            async with asyncio.timeout(ORDER_SECONDS):
                daemon = await asyncio.shield(reached)
        except TimeoutError:
            raise connect.unreachable(self.why, "promptside daemon status") from None
        return await daemon.call(request)

    async def _attend(self, daemon: client.Daemon) -> None:
        await self._watch(daemon)
        self._wanted.clear()
        self._up(daemon.welcome.sentence)
        self._reached().set_result(daemon)
        try:
            async for notice in daemon:
                match notice:
                    case Connection(state="connected"):
                        self._up(notice.sentence)
                    case Connection():
                        self._down(self._parting or STOPPED)
                    case FlowFailed(flow=flow) if flow == self._watching:
                        log.warning("watching the tasks failed: %s", notice.refusal.message)
                        await self._watch_again(daemon)
                    case _:
                        if isinstance(notice, DaemonSays):
                            self._parting = notice.message if notice.state != "warning" else ""
                        self._heard(notice)
        finally:
            self._daemon = None

    async def _watch(self, daemon: client.Daemon) -> None:
        self._watching = 0
        answer = await daemon.call(Watch(activity=True, cursors=self._cursors()))
        self._watching = answer.flow

    async def _watch_again(self, daemon: client.Daemon) -> None:
        """Open the flow of tasks once more, where the mirror stands; not in a tight circle."""
        self._down("What happens to the tasks can't be followed at the moment.")
        await asyncio.sleep(AGAIN_SECONDS)
        await self._watch(daemon)
        self._up("")

    def _reached(self) -> asyncio.Future[client.Daemon]:
        """The daemon, when it has been reached; those who wait for it share this."""
        if self._daemon is None:
            self._daemon = asyncio.get_running_loop().create_future()
        return self._daemon

    async def _listens(self) -> bool:
        """Whether there is a daemon; asked in a thread, since a socket may be slow to answer."""
        wire = await asyncio.to_thread(connect.dial)
        if wire is not None:
            wire.close()
        return wire is not None

    def _refuse(self, error: PromptsideError) -> None:
        """Tell those who wait that waiting is of no use: the daemon can't be started."""
        waiting, self._daemon = self._reached(), None
        waiting.set_exception(error)
        waiting.exception()  # seen, also if nobody waits

    def _up(self, sentence: str) -> None:
        if not self.up or sentence:
            self.up, self.why, self._parting = True, "", ""
            self._moved(True, sentence)

    def _down(self, why: str) -> None:
        if self.up or self.why != why:
            self.up, self.why = False, why
            self._moved(False, why)
