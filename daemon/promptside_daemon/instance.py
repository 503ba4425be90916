"""One daemon per person: two locks, and the file that says who holds them.

`daemon.lock` is held as long as a daemon lives. `change.lock` is held only while one starts or ends, so that
whoever comes meanwhile waits for the outcome instead of guessing it. The system frees both on any death.
"""

import contextlib
import fcntl
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import msgspec

from promptside_daemon.world import processes
from promptside_protocol import PROTOCOL, __version__, connect, errors, paths

CHANGE_SECONDS = 45
"""How long to wait for another daemon's start or end; less than clients wait for ours."""


class Instance:
    """The right to be the daemon; made by `enter`, it starts in the state of change."""

    def __init__(self, life: int, change: int) -> None:
        self._life = life
        self._change = change

    @classmethod
    def enter(cls) -> "Instance | None":
        """Take the locks, or None if a daemon is there; waits while another starts or ends."""
        directory = private_directory()
        change = _opened(directory / "change.lock")
        with _bounded():
            fcntl.flock(change, fcntl.LOCK_EX)
        life = _opened(directory / "daemon.lock")
        try:
            fcntl.flock(life, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(life)
            os.close(change)
            return None
        return cls(life, change)

    def settled(self) -> None:
        """The socket listens: leave word who we are, and let the others look."""
        path = connect.status_path()
        ours = processes.find(os.getpid())
        standing = connect.Standing(
            pid=os.getpid(),
            started=ours.started if ours else "",
            version=__version__,
            protocol=PROTOCOL,
        )
        draft = path.with_suffix(".new")
        draft.write_bytes(msgspec.json.encode(standing))
        draft.replace(path)
        fcntl.flock(self._change, fcntl.LOCK_UN)

    def leaving(self) -> None:
        """The socket is about to go: let the others wait until we have."""
        fcntl.flock(self._change, fcntl.LOCK_EX)

    def gone(self) -> None:
        """Everything is written: the next one may start. Called before the last word to any client."""
        connect.status_path().unlink(missing_ok=True)
        os.close(self._life)
        os.close(self._change)


def private_directory() -> Path:
    """The directory of the socket, made for its owner only (DA-4)."""
    directory = paths.runtime_dir()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        connect.check_private(directory)
        directory.chmod(0o700)
    except FileExistsError:
        raise errors.refused(
            "in-the-way",
            f"{directory} is where the daemon's socket belongs, but it is no directory.",
            "Move it away and try again.",
        ) from None
    return directory


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


@contextlib.contextmanager
def _bounded() -> Iterator[None]:
    def expired(_number: int, _frame: FrameType | None) -> None:
        raise errors.refused(
            "locked",
            f"Another daemon has been starting or ending for {CHANGE_SECONDS} seconds.",
            f"See {paths.log_dir() / 'daemon.log'}.",
        )

    before = signal.signal(signal.SIGALRM, expired)
    signal.alarm(CHANGE_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
