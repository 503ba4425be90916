"""The daemon as an object: `await daemon.call(order)` and `async for notice in daemon`.

It outlives the wire: it reconnects, opens the flows again where they stood, and says so with a notice of its
own. An order is sent once or refused, never later and never twice (CW-16).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Iterator
from typing import Any, Literal, TypeVar, cast, overload

import msgspec
from msgspec import Struct

from promptside_protocol import connect as reach
from promptside_protocol import errors, frames
from promptside_protocol.commands import Ack, AnyCommand
from promptside_protocol.flows import Flow
from promptside_protocol.notices import NOTICES, DaemonSays, FlowFailed, Notice
from promptside_protocol.queries import (
    FollowOutput,
    Hello,
    Nothing,
    Query,
    Unfollow,
    Watch,
    Welcome,
)

log = logging.getLogger(__name__)

A = TypeVar("A")

ORDER_SECONDS = 10.0
"""How long an order that is given while the daemon is away waits for it."""
UNREAD_NOTICES = 256
"""How many notices may wait to be read here before the daemon has to wait."""


class Connection(Struct, frozen=True, kw_only=True):
    """The client's own notice: what is shown is stale from `lost` until `connected`."""

    state: Literal["lost", "connected"]
    sentence: str = ""


@contextlib.asynccontextmanager
async def connect(greeting: Hello, *, start: bool = True) -> AsyncIterator[Daemon]:
    """Reach the daemon, or raise `Unreachable`; with `start`, whatever is called starts it when it is away.

    What goes on by itself in the background only looks for it: who stopped the daemon meant it.
    """
    wire, welcome = await _greet(greeting, start=start)
    daemon = Daemon(greeting, welcome, start=start)
    life = asyncio.create_task(daemon.live(wire))
    try:
        yield daemon
    finally:
        life.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await life


def back_off() -> Iterator[float]:
    """Seconds to wait before each look for the daemon: 1, 2, 4 … 30."""
    seconds = 1.0
    while True:
        yield seconds
        seconds = min(2 * seconds, 30.0)


class Daemon:
    """The daemon, as long as `connect` is open; made by it."""

    def __init__(self, greeting: Hello, welcome: Welcome, *, start: bool) -> None:
        self.welcome = welcome
        """What the daemon said at the last hello."""
        self._greeting = greeting
        self._start = start
        self._why: errors.PromptsideError | None = None
        self._link: asyncio.Future[_Link] = asyncio.get_running_loop().create_future()
        self._wanted = asyncio.Event()
        self._closed = False
        self._flows: dict[int, Flow] = {}
        self._last_flow = 0
        self._notices: deque[Notice | Connection] = deque()
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()

    @overload
    async def call(self, request: Query[A]) -> A: ...
    @overload
    async def call(self, request: AnyCommand) -> Ack: ...
    async def call(self, request: Query[Any] | AnyCommand) -> Any:
        """The typed answer to a question, or the Ack of an order; raises `PromptsideError`."""
        if isinstance(request, Unfollow):
            self._unfollow(request.flow)
            return Nothing()
        while True:
            link = await self._linked()
            answer = link.ask(request)
            self._room.set()
            with contextlib.suppress(OSError):  # the reader finds the same, and says it for all
                await link.writer.drain()
            try:
                return await answer
            except _WireBrokeError:
                if not reach.repeatable(request):
                    raise reach.answer_lost(request) from None
            except errors.Refused as refused:
                if refused.refusal.code != "stopping":
                    raise
                await link.over.wait()  # it was not taken; the next daemon may

    def __aiter__(self) -> AsyncIterator[Notice | Connection]:
        return self

    async def __anext__(self) -> Notice | Connection:
        while not self._notices:
            if self._closed:
                raise StopAsyncIteration
            self._arrived.clear()
            await self._arrived.wait()
        self._room.set()
        return self._notices.popleft()

    async def live(self, wire: reach.Wire) -> None:
        """Read one wire after the other; runs until it is cancelled."""
        try:
            while True:
                link = await self._adopt(wire)
                await self._read(link, wire)
                self._link = asyncio.get_running_loop().create_future()
                link.lose()
                self._put(Connection(state="lost"))
                wire = await self._reconnected()
                self._put(Connection(state="connected", sentence=self.welcome.sentence))
        finally:
            self._closed = True
            self._arrived.set()
            if not self._link.done():
                self._link.cancel()
            elif not self._link.cancelled() and self._link.exception() is None:
                self._link.result().lose()

    # --- the wire -------------------------------------------------------------------------------------

    async def _linked(self) -> _Link:
        """The connection; waits for it, but not for long."""
        if self._closed:
            raise _closed()
        if not self._link.done():
            self._wanted.set()
        try:
            async with asyncio.timeout(ORDER_SECONDS):
                return await asyncio.shield(self._link)
        except TimeoutError:
            raise self._why or reach.unreachable("The Promptside daemon can't be reached.") from None
        except asyncio.CancelledError:
            if self._closed:
                raise _closed() from None
            raise

    async def _adopt(self, wire: reach.Wire) -> _Link:
        reader, writer = await asyncio.open_unix_connection(sock=wire.sock, limit=reach.CHUNK)
        link = _Link(reader, writer)
        for flow in self._flows.values():
            link.ask(flow.again(), reopening=flow)
        self._wanted.clear()  # who wanted a connection has it now
        self._link.set_result(link)
        return link

    async def _reconnected(self) -> reach.Wire:
        delays = back_off()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(next(delays)):
                    await self._wanted.wait()
            wanted = self._wanted.is_set()
            if wanted:
                self._wanted.clear()
                delays = back_off()
            try:
                wire, self.welcome = await _greet(self._greeting, start=self._start and wanted)
            except errors.PromptsideError as error:
                self._why = error
                if wanted and self._start:
                    self._refuse(error)
            else:
                return wire

    def _refuse(self, error: errors.PromptsideError) -> None:
        """Tell those who wait that waiting is of no use: the daemon can't be started."""
        self._link.set_exception(error)
        self._link.exception()  # seen, also if nobody waits any more
        self._link = asyncio.get_running_loop().create_future()

    async def _read(self, link: _Link, wire: reach.Wire) -> None:
        try:
            for frame in wire.unread:
                self._take(frame, link)
            while data := await link.reader.read(reach.CHUNK):
                for frame in wire.framer.feed(data):
                    self._take(frame, link)
                    await self._has_room(link)
        except OSError as error:
            log.debug("the wire broke: %s", error)

    async def _has_room(self, link: _Link) -> None:
        """Let the daemon wait while nobody reads here; but whoever has asked may be the one who reads."""
        while len(self._notices) >= UNREAD_NOTICES and not link.asked:
            self._room.clear()
            await self._room.wait()

    # --- what comes -----------------------------------------------------------------------------------

    def _take(self, frame: frames.Frame, link: _Link) -> None:
        match frame:
            case frames.Response(id=int(number)) if number in link.asked:
                self._answered(link.asked.pop(number), frame, link)
            case frames.Failure(id=int(number)) if number in link.asked:
                asked = link.asked.pop(number)
                error = frames.error_of(frame)
                if asked.reopening is None:
                    asked.fail(error)
                elif error.refusal.code != "stopping":
                    self._flow_failed(asked.reopening, error)
            case frames.Notification():
                self._noticed(frame, link)
            case _:
                log.warning("the daemon said something that nobody asked for: %s", type(frame).__name__)

    def _answered(self, asked: _Asked, frame: frames.Response, link: _Link) -> None:
        try:
            answer = reach.answer_in(frame, asked.request)
        except errors.PromptsideError as error:
            asked.fail(error)
            return
        if isinstance(asked.request, Watch | FollowOutput):
            if asked.reopening is not None and asked.reopening.number in self._flows:
                link.flows[answer.flow] = asked.reopening
            elif asked.reopening is not None or asked.answer.done():
                link.ask(Unfollow(flow=answer.flow))  # nobody wants it any more
            else:
                self._last_flow += 1
                flow = Flow(self._last_flow, asked.request)
                self._flows[flow.number] = link.flows[answer.flow] = flow
                answer = msgspec.structs.replace(answer, flow=flow.number)
        if not asked.answer.done():
            asked.answer.set_result(answer)

    def _noticed(self, frame: frames.Notification, link: _Link) -> None:
        kind = NOTICES.get(frame.method)
        if kind is None:
            return  # of a newer daemon
        try:
            notice = cast("Notice", msgspec.json.decode(frame.params, type=kind))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            log.warning("a notice “%s” can't be read: %s", frame.method, error)
            return
        if isinstance(notice, DaemonSays):
            self._put(notice)
            return
        flow = link.flows.get(notice.flow)
        if flow is None:
            return  # nobody wants it any more
        flow.noticed(notice)
        if flow.ended or isinstance(notice, FlowFailed):
            link.flows.pop(notice.flow)
            self._flows.pop(flow.number, None)
        if notice.flow != flow.number:
            notice = msgspec.structs.replace(notice, flow=flow.number)
        self._put(notice)

    def _flow_failed(self, flow: Flow, error: errors.PromptsideError) -> None:
        if self._flows.pop(flow.number, None) is not None:
            self._put(FlowFailed(flow=flow.number, refusal=error.refusal))

    def _put(self, notice: Notice | Connection) -> None:
        self._notices.append(notice)
        self._arrived.set()

    def _unfollow(self, number: int) -> None:
        if self._flows.pop(number, None) is None or not self._link.done():
            return
        link = self._link.result()
        for theirs, flow in tuple(link.flows.items()):
            if flow.number == number:
                del link.flows[theirs]
                link.ask(Unfollow(flow=theirs))


class _WireBrokeError(Exception):
    """The answer will not come on this wire."""


class _Asked:
    """A request that waits for its answer; `reopening` if it is the client's own, for a flow of before."""

    def __init__(self, request: Struct, reopening: Flow | None) -> None:
        self.request = request
        self.reopening = reopening
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)
            self.answer.exception()  # seen: the client's own requests have nobody who awaits them


class _Link:
    """One connection and what is asked on it; the daemon's numbers of flows hold only here."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.asked: dict[int, _Asked] = {}
        self.flows: dict[int, Flow] = {}
        self.over = asyncio.Event()
        self._last = 0

    def ask(self, request: Struct, reopening: Flow | None = None) -> asyncio.Future[Any]:
        self._last += 1
        line = frames.encode(frames.request(self._last, request))
        asked = _Asked(request, reopening)
        if self.over.is_set():
            asked.fail(_WireBrokeError())
            return asked.answer
        self.asked[self._last] = asked
        self.writer.write(line)
        return asked.answer

    def lose(self) -> None:
        self.over.set()
        self.writer.close()
        for asked in self.asked.values():
            asked.fail(_WireBrokeError())
        self.asked.clear()


def _closed() -> errors.Unreachable:
    return reach.unreachable("The connection to the daemon was closed.")


async def _greet(greeting: Hello, *, start: bool) -> tuple[reach.Wire, Welcome]:
    """`connect.greet` in a thread, since it blocks; what comes of it when nobody waits any more is closed."""
    work = asyncio.get_running_loop().run_in_executor(None, lambda: reach.greet(greeting, start=start))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        work.add_done_callback(_close_unused)
        raise


def _close_unused(work: asyncio.Future[tuple[reach.Wire, Welcome]]) -> None:
    if not work.cancelled() and work.exception() is None:
        work.result()[0].close()
