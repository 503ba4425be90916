"""Stands between clients and the daemon, and lets something happen before one answer of the daemon is heard."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from unittest import mock

from rig.user import User

from promptside_protocol import paths

Between = Callable[[], None]


class WireTap:
    """Lines pass as they are; `once` says what is to happen, and when."""

    def __init__(self, real: Path) -> None:
        self._real = real
        self._method = ""
        self._wanted: Callable[[dict[str, Any]], bool] = lambda _: False
        self._between: Between = lambda: None
        self._held: tuple[asyncio.StreamWriter, Any] | None = None

    def once(self, method: str, wanted: Callable[[dict[str, Any]], bool], between: Between) -> None:
        """When the daemon has answered this request, do that, and only then pass the answer on."""
        self._method, self._wanted, self._between = method, wanted, between

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client's connection."""
        there, back = await asyncio.open_unix_connection(os.fspath(self._real), limit=1 << 24)
        out = asyncio.create_task(self._out(reader, back, writer))
        try:
            while line := await there.readline():
                if self._held is not None and self._held == (writer, json.loads(line).get("id")):
                    self._held = None
                    await asyncio.to_thread(self._between)
                writer.write(line)
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client is gone, or the story is over
        finally:
            out.cancel()
            back.close()
            writer.close()

    async def _out(
        self, reader: asyncio.StreamReader, back: asyncio.StreamWriter, client: asyncio.StreamWriter
    ) -> None:
        while line := await reader.readline():
            request = json.loads(line)
            if request.get("method") == self._method and self._wanted(request["params"]):
                self._method, self._held = "", (client, request["id"])
            back.write(line)
        back.write_eof()


@contextlib.asynccontextmanager
async def tapped(user: User) -> AsyncIterator[WireTap]:
    """From here on clients that connect to the daemon of this person, which runs, come through here."""
    with mock.patch.dict(os.environ, user.environment, clear=True):
        socket = paths.socket_path()
    real = socket.with_name("real.sock")
    socket.rename(real)
    tap = WireTap(real)
    server = await asyncio.start_unix_server(tap.pass_on, os.fspath(socket), limit=1 << 24)
    try:
        yield tap
    finally:
        server.close()
        socket.unlink(missing_ok=True)
        real.rename(socket)
