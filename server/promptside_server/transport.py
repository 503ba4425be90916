"""Standard input and output without threads, bounded on both sides.

A slow editor never makes memory grow: what can be asked for again is not sent to it, and if it goes on asking
without reading the answers, nothing more is read from it.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Callable

UNREAD_BYTES = 256 * 1024
"""How much may wait for the editor before what can be dropped is dropped."""
STOP_READING_BYTES = 4 * 1024 * 1024
"""How much may wait before nothing more is read from it; high, so that an editor which writes one long message
before it reads again is not left hanging."""
HOPELESS_BYTES = 64 * 1024 * 1024
"""Behind this, the editor is taken for dead."""
MESSAGE_BYTES = 64 * 1024 * 1024
"""The longest message that is taken."""
HEADER_BYTES = 4096
PARTING_SECONDS = 1.0

_LENGTH = re.compile(rb"content-length:[ \t]*(\d{1,18})[ \t]*\r?\n", re.IGNORECASE)
_END = re.compile(rb"\r?\n\r?\n")


class TooLong:
    """A message that was longer than is taken, and was passed over."""


class Framer:
    """Pieces of bytes to bodies of messages; what is neither header nor body is passed over.

    Memory holds at most one unfinished message.
    """

    def __init__(self, limit: int = MESSAGE_BYTES) -> None:
        self._limit = limit
        self._held = bytearray()
        self._wanted: int | None = None
        self._skipping = 0

    def feed(self, data: bytes) -> None:
        """Take bytes over."""
        if self._skipping:
            skipped = min(self._skipping, len(data))
            self._skipping -= skipped
            data = data[skipped:]
        self._held += data

    def next(self) -> bytes | TooLong | None:
        """The next whole message; None until more bytes come."""
        while True:
            if self._wanted is not None:
                if len(self._held) < self._wanted:
                    return None
                body = bytes(memoryview(self._held)[: self._wanted])
                del self._held[: self._wanted]
                self._wanted = None
                return body
            length = _LENGTH.search(self._held)
            if length is None:
                # Nothing before the last line can be part of a header any more.
                del self._held[: max(0, len(self._held) - HEADER_BYTES)]
                return None
            end = _END.search(self._held, length.end() - 2)
            if end is None:
                if len(self._held) - length.start() < HEADER_BYTES:
                    return None
                del self._held[: length.end()]  # no header goes on for so long
                continue
            wanted = int(length.group(1))
            del self._held[: end.end()]
            if wanted > self._limit:
                here = min(wanted, len(self._held))
                del self._held[:here]
                self._skipping = wanted - here
                return TooLong()
            self._wanted = wanted

    def unread(self, body: bytes) -> bool:
        """Give back what stands behind a header inside a body that is no message: its length was a lie."""
        found = _LENGTH.search(body)
        if found is None:
            return False
        self._held[:0] = body[found.start() :]
        return True


class Input(asyncio.Protocol):
    """Reads messages and hands each on at once; takes none while the editor is far behind in reading."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._framer = Framer()
        self._take: Callable[[bytes | TooLong], None] | None = None
        self._transport: asyncio.ReadTransport | None = None
        self._over = asyncio.Event()
        self._held_up: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.ReadTransport), "made by connect_read_pipe"
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._framer.feed(data)
        self._hand_on()

    def connection_lost(self, _: Exception | None) -> None:
        self._over.set()

    async def serve(self, take: Callable[[bytes | TooLong], None]) -> None:
        """Hand on every message, until the input ends, also if it does in the middle of one."""
        self._take = take
        self._hand_on()
        await self._over.wait()

    def unread(self, body: bytes) -> bool:
        """See `Framer.unread`."""
        return self._framer.unread(body)

    def stop(self) -> None:
        """Take nothing more, although the editor is still there."""
        self._over.set()

    def _hand_on(self) -> None:
        while self._take is not None and self._held_up is None and not self._over.is_set():
            message = self._framer.next()
            if message is None:
                return
            self._take(message)
            if self._output.far_behind and self._transport is not None:
                self._transport.pause_reading()
                self._held_up = asyncio.get_running_loop().create_task(self._when_read())

    async def _when_read(self) -> None:
        await self._output.drained()
        self._held_up = None
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
        self._hand_on()


class Output(asyncio.BaseProtocol):
    """Writes messages; never blocks the loop."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._gone = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport), "made by connect_write_pipe"
        transport.set_write_buffer_limits(high=UNREAD_BYTES)
        self._transport = transport

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def connection_lost(self, _: Exception | None) -> None:
        self._room.set()
        self._gone.set()

    def write(self, data: bytes) -> None:
        """Take a message over."""
        if self._transport is None or self._transport.is_closing():
            return
        if self._transport.get_write_buffer_size() > HOPELESS_BYTES:
            self._transport.abort()
            return
        self._transport.write(data)

    @property
    def full(self) -> bool:
        """Whether the editor is behind: what can be asked for again should wait."""
        return not self._room.is_set()

    async def drained(self) -> None:
        """Wait until the editor has read most of what it was sent, or is gone."""
        await self._room.wait()

    @property
    def far_behind(self) -> bool:
        """Whether far too much is unread."""
        return self._transport is not None and self._transport.get_write_buffer_size() > STOP_READING_BYTES

    async def gone(self) -> None:
        """Wait until nobody reads any more."""
        await self._gone.wait()

    def close(self) -> None:
        """Say no more than was said."""
        if self._transport is not None:
            self._transport.close()

    async def closed(self) -> None:
        """Let the editor read the last words, if it does so soon."""
        self.close()
        try:
            async with asyncio.timeout(PARTING_SECONDS):
                await self._gone.wait()
        except TimeoutError:
            if self._transport is not None:
                self._transport.abort()


async def open_stdio() -> tuple[Input, Output]:
    """This process's own standard streams; whatever prints from now on prints to standard error."""
    loop = asyncio.get_running_loop()
    source, target = os.dup(0), os.dup(1)
    os.dup2(2, 1)  # a stray print must not end up between messages
    sys.stdout = sys.stderr
    _, output = await loop.connect_write_pipe(Output, os.fdopen(target, "wb", buffering=0))
    _, reader = await loop.connect_read_pipe(lambda: Input(output), os.fdopen(source, "rb", buffering=0))
    return reader, output
