"""The unix socket that clients connect to: one session each, and an orderly end of all."""

import asyncio
import logging
import os
import socket
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

from promptside_daemon.rpc.core import Core
from promptside_daemon.rpc.session import CHUNK, Session
from promptside_protocol import errors
from promptside_protocol.notices import DaemonSays

log = logging.getLogger(__name__)

DRAIN_SECONDS = 10.0
"""How long an end waits for what was being answered when it began."""
PART_SECONDS = 1.0
"""How long an end waits for clients to read its last words."""


class Server:
    """Accepts clients; `changed` is called when one comes or goes."""

    def __init__(
        self,
        core: Core,
        *,
        parting: Callable[[str], Awaitable[None]],
        changed: Callable[[], None],
        log_path: str,
    ) -> None:
        self._core = core
        self._parting = parting
        self._changed = changed
        self._log_path = log_path
        self._sessions: set[Session] = set()
        self._listener: asyncio.Server | None = None
        self._path: Path | None = None

    @property
    def clients(self) -> int:
        return len(self._sessions)

    async def listen(self, path: Path) -> None:
        """Open the socket; only who holds the daemon's lock may, for a socket that is there is replaced."""
        sock = _bound(path)
        self._path = path
        self._listener = await asyncio.start_unix_server(self._connected, sock=sock, limit=CHUNK, backlog=128)

    async def wind_up(self, sentence: str, says: DaemonSays) -> None:
        """Accept nobody and take nothing any more; what was taken is answered, in a bounded time."""
        if self._listener is not None and self._path is not None:
            self._listener.close()
            _remove(self._path)
        sessions = [asyncio.create_task(session.wind_up(sentence, says)) for session in self._sessions]
        if sessions:
            _done, late = await asyncio.wait(sessions, timeout=DRAIN_SECONDS)
            for task in late:
                log.warning("a request was still being answered at the end")
                task.cancel()

    async def close(self) -> None:
        """Say the last words, and drop whoever doesn't read them."""
        sessions = {asyncio.create_task(session.part()): session for session in self._sessions}
        if sessions:
            _done, late = await asyncio.wait(sessions, timeout=PART_SECONDS)
            for task in late:
                task.cancel()
                sessions[task].abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session = Session(self._core, reader, writer, parting=self._parting, log_path=self._log_path)
        self._sessions.add(session)
        self._changed()
        try:
            await session.serve()
        except Exception:
            log.exception("a session failed by a fault of ours")
        finally:
            self._sessions.discard(session)
            self._changed()


def _bound(path: Path) -> socket.socket:
    _clear_the_way(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.bind(os.fspath(path))
    path.chmod(0o600)
    return sock


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def _clear_the_way(path: Path) -> None:
    """Remove the socket that a killed daemon left; anything else in its place is somebody's: refused."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise errors.refused(
            "in-the-way",
            f"{path} is where the daemon's socket belongs, but it is no socket.",
            "Move it away and try again.",
        )
    path.unlink()
