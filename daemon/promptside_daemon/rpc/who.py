"""Who speaks on a connection: which user, which client, and whether a person or one of our agents (DA-13)."""

import asyncio
import pwd
import socket
import struct
import sys
from typing import Literal

from msgspec import Struct

from promptside_daemon.world import processes

LOOKS = 8
"""How often a line of ancestors that changed while it was read is read again."""


class Who(Struct, frozen=True, kw_only=True):
    """The origin of an order."""

    client: str
    """`terminal`, `vscode`, … : as the client says."""
    user: str
    pid: int
    session: Literal["person", "attempt"]
    attempt: str
    """Whose agent it is; empty for a person."""
    environment: dict[str, str]
    cwd: str
    connection: int = 0
    """Tells the connections of one daemon apart."""


class Peer(Struct, frozen=True, kw_only=True):
    """The process that opened a connection, by the word of the system."""

    pid: int
    uid: int

    @property
    def user(self) -> str:
        try:
            return pwd.getpwuid(self.uid).pw_name
        except KeyError:
            return str(self.uid)  # a container may have no entry for its user


class Unknowable(Exception):  # not an error of ours: nobody can say who it was
    """The process is gone, or changes its ancestors faster than they can be read."""


def peer_of(sock: socket.socket) -> Peer:
    """The other end of a unix socket."""
    if sys.platform == "linux":
        layout = struct.Struct("3i")
        pid, uid, _gid = layout.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, layout.size))
        return Peer(pid=pid, uid=uid)
    # Written from unix(4) and sys/un.h of macOS, not tried there.
    local, peer_credentials, peer_pid = 0, 1, 2
    _version, uid = struct.unpack_from("2I", sock.getsockopt(local, peer_credentials, 128))
    (pid,) = struct.unpack("i", sock.getsockopt(local, peer_pid, 4))
    return Peer(pid=pid, uid=uid)


async def attempt_of(pid: int, keepers: dict[int, str]) -> str | None:
    """The attempt that a process belongs to, or None for a person's; raises `Unknowable`.

    A mark in the environment of the process or of any ancestor counts, and a keeper among the ancestors. A
    process can drop the mark and leave its parents; the keeper takes it in, as its subreaper.
    """
    # In a thread: on macOS each look at a process runs ps.
    return await asyncio.to_thread(_attempt_of, pid, dict(keepers))


def _attempt_of(pid: int, keepers: dict[int, str]) -> str | None:
    for process in _line_of(pid):
        attempt = keepers.get(process) or processes.mark_of(process)
        if attempt:
            return attempt
    return None


def _line_of(pid: int) -> list[int]:
    """A process and its ancestors, read twice alike: a parent that dies in between hands its children on."""
    line: list[int] = []
    for _ in range(LOOKS):
        again = [pid, *processes.ancestors(pid)]
        if again == line and processes.find(pid) is not None:
            return line
        line = again
    raise Unknowable
