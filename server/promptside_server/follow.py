"""The output of one attempt, from a cursor on, for one reader: in frames, without a gap or a repeat.

While the reader is behind, nothing is kept for it: the flow is closed, and opened again where the reader stands.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from promptside_protocol.errors import PromptsideError
from promptside_protocol.notices import FlowFailed, Notice, OutputCame
from promptside_protocol.output import OutputEntry
from promptside_protocol.queries import FollowOutput, Unfollow
from promptside_server.pace import Pace

if TYPE_CHECKING:
    from promptside_server.server import Server

HELD_CHARACTERS = 256 * 1024
"""How much text a frame holds at most."""


class Piece(Struct, frozen=True, kw_only=True):
    """What came since the last piece."""

    stage: str
    attempt: int
    cursor: int
    entries: tuple[OutputEntry, ...]
    ended: bool = False
    error: str = ""


class Follower:
    """Follows for one reader; `take` gives back whether it took the piece."""

    def __init__(
        self, server: Server, flows: Flows, query: FollowOutput, take: Callable[[Piece], bool]
    ) -> None:
        self.query = query
        """Where the reader stands: what it has not taken is asked for again."""
        self._server = server
        self._flows = flows
        self._take = take
        self._flow = 0
        self._held: list[OutputCame] = []
        self._size = 0
        self._failed = ""
        self._over = False
        self._pace = Pace(server, self._pass_on)

    async def open(self) -> None:
        """Ask for what comes after the cursor."""
        self._flow = -1
        await self._flows.open(self.query, self)

    def opened(self, flow: int) -> None:
        """The number of the flow from now on."""
        self._flow = flow

    async def close(self) -> None:
        """Want no more."""
        self._over = True
        self._pace.stop()
        await self._flows.close(self._flow)

    def came(self, notice: OutputCame) -> None:
        """Hold it until the frame is over."""
        if self._over:
            return
        self._held.append(notice)
        self._size += sum(len(entry.text) for entry in notice.entries)
        if self._size > HELD_CHARACTERS:
            if self._server.protocol.behind:
                self._let_go()
            else:
                self._pass_on()
        self._pace.wake()

    def failed(self, sentence: str) -> None:
        """The flow has ended before the output has."""
        self._failed = sentence
        self._pace.wake()

    def _pass_on(self) -> None:
        if self._over:
            return
        if self._held:
            last = self._held[-1]
            entries = merged(entry for notice in self._held for entry in notice.entries)
            piece = Piece(
                stage=last.stage,
                attempt=last.attempt,
                cursor=last.cursor,
                entries=entries,
                ended=last.ended,
            )
            if not self._take(piece):
                self._let_go()
            else:
                self._over = last.ended
                self.query = msgspec.structs.replace(
                    self.query, stage=last.stage, attempt=last.attempt, cursor=last.cursor
                )
                self._held.clear()
                self._size = 0
        if self._failed:
            at = self.query
            self._over = self._take(
                Piece(stage=at.stage, attempt=at.attempt, cursor=at.cursor, entries=(), error=self._failed)
            )
            if not self._over:
                self._pace.wake()
        elif not self._flow and not self._over:
            self._server.do(self._reopen())

    def _let_go(self) -> None:
        """Keep nothing for a reader that is behind."""
        self._held.clear()
        self._size = 0
        flow, self._flow = self._flow, 0
        self._server.do(self._flows.close(flow))
        self._pace.wake()

    async def _reopen(self) -> None:
        try:
            await self.open()
        except PromptsideError as error:
            self.failed(str(error))
        if self._over:
            await self._flows.close(self._flow)


class Flows:
    """The open flows of output, by the number that their notices bear."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._readers: dict[int, Follower] = {}
        self._opening = 0
        self._early: list[OutputCame | FlowFailed] = []
        server.on_notice.append(self._heard)

    async def open(self, query: FollowOutput, reader: Follower) -> None:
        """Open a flow; notices that overtake the answer are not lost."""
        self._opening += 1
        try:
            answer = await self._server.link.call(query)
        finally:
            self._opening -= 1
        self._readers[answer.flow] = reader
        reader.opened(answer.flow)
        early, self._early = self._early, []
        for notice in early:
            self._heard(notice)
        if not self._opening:
            self._early.clear()

    async def close(self, flow: int) -> None:
        """Close a flow, if it is still open."""
        if self._readers.pop(flow, None) is not None:
            with contextlib.suppress(PromptsideError):  # gone with the daemon
                await self._server.link.call(Unfollow(flow=flow))

    def _heard(self, notice: Notice) -> None:
        if not isinstance(notice, OutputCame | FlowFailed):
            return
        reader = self._readers.get(notice.flow)
        if reader is None:
            if self._opening:
                self._early.append(notice)
        elif isinstance(notice, OutputCame):
            reader.came(notice)
            if notice.ended:
                self._readers.pop(notice.flow, None)
        else:
            self._readers.pop(notice.flow, None)
            reader.failed(notice.refusal.message)


def merged(entries: Iterable[OutputEntry]) -> tuple[OutputEntry, ...]:
    """Entries with what was appended to the same block in a row in one."""
    found: list[OutputEntry] = []
    texts: list[str] = []

    def close() -> None:
        if len(texts) > 1:
            found[-1] = msgspec.structs.replace(found[-1], text="".join(texts))

    for entry in entries:
        last = found[-1] if found else None
        if (
            last is not None
            and entry.block is not None
            and entry.block == last.block
            and entry.role == last.role
            and not entry.replace
            and (entry.path, entry.line, entry.ok) == (None, None, None)
        ):
            texts.append(entry.text)
            found[-1] = msgspec.structs.replace(last, cursor=entry.cursor)
            continue
        close()
        texts = [entry.text]
        found.append(entry)
    close()
    return tuple(found)
