"""One client's connection: hello, orders, questions and flows.

A client can be slow, wrong or gone without anybody else noticing: what waits to be read by it is bounded, and
whatever it sends costs at most an answer that says what is wrong.
"""

import asyncio
import contextlib
import itertools
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from msgspec import Struct

from promptside_daemon.rpc import admission
from promptside_daemon.rpc.core import Core
from promptside_daemon.rpc.who import Peer, Unknowable, Who, attempt_of, peer_of
from promptside_protocol import PROTOCOL, __version__, connect, errors, frames
from promptside_protocol.commands import Ack, Shutdown
from promptside_protocol.notices import DaemonSays, FlowFailed
from promptside_protocol.queries import (
    Following,
    FollowOutput,
    Hello,
    Nothing,
    Query,
    Unfollow,
    Watch,
    Welcome,
)

log = logging.getLogger(__name__)

CHUNK = 256 * 1024
UNREAD_BYTES = 256 * 1024
"""How much may wait for a client to read it before its flows and requests wait for the client."""
REQUESTS = 64
"""How many requests of one client are answered at a time."""
FLOWS = 64
"""How many flows one client may have open."""
TURN = 64
"""After how many notices a flow that never had to wait lets others have a turn."""

_connections = itertools.count(1)


class Flow(Struct, frozen=True, kw_only=True):
    """A flow to be opened; it begins when the client has been told its number."""

    id: int
    query: Watch | FollowOutput
    who: Who


class Session:
    """Serves one connection until its end; `parting` stops the daemon and returns when it has stopped."""

    def __init__(
        self,
        core: Core,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        parting: Callable[[str], Awaitable[None]],
        log_path: str,
    ) -> None:
        self._core = core
        self._reader = reader
        self._writer = writer
        self._parting = parting
        self._log_path = log_path
        self._hello: Hello | None = None
        self._who: Who | None = None
        self._stopping = ""
        self._slots = asyncio.Semaphore(REQUESTS)
        self._answering: set[asyncio.Task[None]] = set()
        self._leaving: set[asyncio.Task[None]] = set()
        self._flows: dict[int, asyncio.Task[None]] = {}
        self._last_flow = 0
        writer.transport.set_write_buffer_limits(high=UNREAD_BYTES)

    async def serve(self) -> None:
        """Read until the client ends or is gone; what it ordered before that is still done."""
        framer = frames.Framer()
        try:
            peer = peer_of(self._writer.get_extra_info("socket"))
            if peer.uid == os.getuid():
                while data := await self._reader.read(CHUNK):
                    for frame in framer.feed(data):
                        await self._take(frame, peer)
            else:
                log.warning("a process of user %s was turned away", peer.user)
        except OSError as error:
            log.debug("a client went away: %s", error)
        finally:
            await self._end_flows()
            await _all(self._answering)
            await _all(self._leaving)
            if self._who is not None:
                self._core.gone(self._who)
            self._writer.close()

    async def wind_up(self, sentence: str, says: DaemonSays) -> None:
        """Take nothing any more, end the flows, and wait until what was taken before has its answer."""
        self._stopping = sentence
        await self._end_flows()
        if self._who is not None and not self._writer.is_closing():
            self._writer.write(frames.encode(frames.notification(says)))
        await _all(self._answering)

    async def part(self) -> None:
        """Let those who asked the daemon to stop hear that it did, and close."""
        await _all(self._leaving)
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    def abort(self) -> None:
        """Drop the connection and whatever is still being done for it."""
        for task in (*self._answering, *self._leaving):
            task.cancel()
        self._writer.transport.abort()

    # --- requests -------------------------------------------------------------------------------------

    async def _take(self, frame: frames.Frame, peer: Peer) -> None:
        match frame:
            case frames.Request(method="hello"):
                # In line, so that what stands behind it in the same piece finds it said.
                await self._answer(frame, self._greet(frame, peer))
            case frames.Request(method="shutdown"):
                # Answered last of all, so it is none of those that an end waits for.
                await self._in_a_slot(self._leaving, self._answer(frame, self._shut_down(frame)))
            case frames.Request():
                await self._in_a_slot(self._answering, self._answer(frame, self._perform(frame)))
            case frames.Malformed():
                error = frames.Error(code=frame.number, message=frame.sentence)
                await self._write(frames.encode(frames.Failure(id=None, error=error)))
            case frames.Notification() | frames.Response() | frames.Failure():
                pass  # a client has nothing to tell without asking, and we ask it nothing

    async def _in_a_slot(self, tasks: set[asyncio.Task[None]], work: Coroutine[Any, Any, None]) -> None:
        try:
            await self._slots.acquire()
        except asyncio.CancelledError:
            work.close()
            raise
        task = asyncio.create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        task.add_done_callback(lambda _: self._slots.release())

    async def _answer(self, request: frames.Request, work: Awaitable[object]) -> None:
        flow: Flow | None = None
        try:
            answer = await work
            if isinstance(answer, Flow):
                flow = answer
                answer = Following(flow=flow.id)
            line = frames.encode(frames.response(request.id, answer))
        except errors.PromptsideError as error:
            line = frames.encode(frames.failure(request.id, error))
        except Exception:
            log.exception("“%s” failed by a fault of ours", request.method)
            line = frames.encode(frames.failure(request.id, self._fault(request.method)))
        with contextlib.suppress(OSError):
            if flow is None:
                await self._write(line)
            else:
                # The client must know the number before the first notice that bears it.
                self._writer.write(line)
                self._flows[flow.id] = pump = asyncio.create_task(self._pump(flow))
                pump.add_done_callback(lambda _: self._flows.pop(flow.id, None))

    async def _greet(self, request: frames.Request, peer: Peer) -> Welcome:
        if self._who is not None:
            sentence = "Hello was said before on this connection."
            raise errors.InvalidParams(admission.refusal("hello-twice", sentence))
        hello = admission.decoded(request.params, Hello)
        try:
            attempt = await attempt_of(peer.pid, self._core.keepers())
        except Unknowable:
            sentence = "The process that opened this connection is gone, so nobody can say who speaks."
            raise errors.NotAllowed(admission.refusal("unknown-peer", sentence)) from None
        self._hello = hello
        self._who = Who(
            client=hello.client,
            user=peer.user,
            pid=peer.pid,
            session="attempt" if attempt else "person",
            attempt=attempt or "",
            environment=hello.environment,
            cwd=hello.cwd,
            connection=next(_connections),
        )
        return Welcome(
            version=__version__,
            protocol=PROTOCOL,
            pid=os.getpid(),
            session=self._who.session,
            sentence=admission.mismatch(hello),
        )

    async def _perform(self, request: frames.Request) -> object:
        hello, who = self._greeted()
        message = admission.message_in(request)
        if who.session == "attempt":
            message = admission.for_attempt(message, self._core.task_of(who.attempt))
        admission.check_protocol(hello, message)
        if self._stopping:
            raise errors.refused("stopping", self._stopping, "Try again in a moment.")
        match message:
            case Watch() | FollowOutput():
                return self._flow(message, who)
            case Unfollow():
                if message.flow in self._flows:
                    self._flows[message.flow].cancel()
                return Nothing()
            case Query():
                return await self._core.ask(message, who)
            case _:
                return await self._core.order(message, who)

    async def _shut_down(self, request: frames.Request) -> Ack:
        hello, who = self._greeted()
        order = admission.decoded(request.params, Shutdown)
        if who.session == "attempt":
            raise admission.agent_may_not("stop the daemon")
        upgrades = connect.newer(hello.protocol, hello.version, than=(PROTOCOL, __version__))
        if order.reason == "upgrade" and not upgrades:
            sentence = f"This daemon has version {__version__}; version {hello.version} does not replace it."
            raise errors.refused("not-newer", sentence)
        log.info("%s (process %d) asks to stop: %s", who.client, who.pid, order.reason or "no reason given")
        await self._parting(order.reason)
        return Ack(seq=0)

    def _greeted(self) -> tuple[Hello, Who]:
        if self._hello is None or self._who is None:
            sentence = "The first request of a connection is “hello”."
            raise errors.NotAllowed(admission.refusal("no-hello", sentence))
        return self._hello, self._who

    # --- flows ----------------------------------------------------------------------------------------

    def _flow(self, query: Watch | FollowOutput, who: Who) -> Flow:
        if len(self._flows) >= FLOWS:
            sentence = f"One connection follows at most {FLOWS} flows; end one first."
            raise errors.refused("too-many-flows", sentence)
        self._last_flow += 1
        return Flow(id=self._last_flow, query=query, who=who)

    async def _pump(self, flow: Flow) -> None:
        """Pull a flow as fast as the client reads it."""
        failed: errors.PromptsideError | None = None
        try:
            async with contextlib.aclosing(self._core.flow(flow.query, flow.who, flow.id)) as notices:
                told = 0
                async for notice in notices:
                    await self._write(frames.encode(frames.notification(notice)))
                    told += 1
                    if told % TURN == 0:
                        await asyncio.sleep(0)  # nothing made it wait: the others have their turn
        except ConnectionError:
            return  # the client is gone; `serve` ends the session
        except errors.PromptsideError as error:
            failed = error
        except Exception:
            log.exception("a flow failed by a fault of ours: %s", flow.query)
            failed = self._fault(frames.method_of(flow.query))
        if failed is not None:
            with contextlib.suppress(OSError):
                notice = FlowFailed(flow=flow.id, refusal=failed.refusal)
                await self._write(frames.encode(frames.notification(notice)))

    async def _end_flows(self) -> None:
        for pump in self._flows.values():
            pump.cancel()
        await _all(set(self._flows.values()))

    # --- writing --------------------------------------------------------------------------------------

    async def _write(self, line: bytes) -> None:
        """Write, then wait while too much is unread."""
        if self._writer.is_closing():
            raise ConnectionResetError("the client is gone")
        self._writer.write(line)
        await self._writer.drain()

    def _fault(self, method: str) -> errors.Internal:
        sentence = f"“{method}” failed by a fault of Promptside's own; the daemon goes on."
        return errors.Internal(admission.refusal("bug", sentence, f"The details are in {self._log_path}."))


async def _all(tasks: set[asyncio.Task[None]]) -> None:
    while tasks:
        _done, tasks = await asyncio.wait(set(tasks))
