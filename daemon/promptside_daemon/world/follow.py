"""Follow attempt directories and read transcripts: woken by the system, never by a clock.

A line is handed on only whole, split at b"\\n" alone; memory is bounded by one line, however long the file.
"""

import asyncio
import contextlib
import ctypes
import os
import select
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

# After a wake with news, more is let gather for this long: one screen frame, half the CPU time under load.
PAUSE_SECONDS = 0.016
CHUNK_BYTES = 256 * 1024
# A line longer than this is not one an agent means to write; it is handed on cut, and so parses as nothing.
LONGEST_LINE_BYTES = 64 * 1024 * 1024


class Follower:
    """Calls back when something in a watched directory may have changed. One for a whole daemon."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._notifier = _Notifier()
        self._watches: dict[int, list[Watch]] = {}
        self._pause: asyncio.TimerHandle | None = None
        loop.add_reader(self._notifier.fileno(), self._read)

    def watch(self, directory: Path, wake: Callable[[], None]) -> "Watch":
        """Call `wake` once soon, and then whenever a file in the directory grew, came, went or was renamed there.

        A wake says only "look again": it may come for nothing, and one may stand for many changes.
        """
        key = self._notifier.add(directory)
        watch = Watch(self, key, wake)
        self._watches.setdefault(key, []).append(watch)
        # What was written before the watch began tells nobody.
        self._loop.call_soon(watch.call)
        return watch

    def close(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._notifier.fileno())
        self._watches.clear()
        self._notifier.close()

    def forget(self, watch: "Watch") -> None:
        watches = self._watches.get(watch.key, [])
        if watch in watches:
            watches.remove(watch)
            if not watches:
                del self._watches[watch.key]
                self._notifier.remove(watch.key)

    def _read(self) -> None:
        keys = self._notifier.read()
        for key in self._watches if keys is None else keys:
            for watch in self._watches.get(key, ()):
                # Each in a call of its own: an error in one is reported by the loop and stops no other.
                self._loop.call_soon(watch.call)
        self._loop.remove_reader(self._notifier.fileno())
        self._pause = self._loop.call_later(PAUSE_SECONDS, self._resume)

    def _resume(self) -> None:
        self._pause = None
        self._loop.add_reader(self._notifier.fileno(), self._read)


class Watch:
    """One directory followed by one reader, until closed."""

    def __init__(self, follower: Follower, key: int, wake: Callable[[], None]) -> None:
        self.key = key
        self._follower = follower
        self._wake: Callable[[], None] | None = wake

    def call(self) -> None:
        if self._wake is not None:
            self._wake()

    def close(self) -> None:
        self._wake = None
        self._follower.forget(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class LineReader:
    """Reads the whole lines of a growing file from an offset on.

    It remembers how far an unfinished line was searched: a long one that comes bit by bit is read twice, not
    once for every bit.
    """

    def __init__(self, path: Path, offset: int = 0) -> None:
        self.path = path
        # Where the first line not handed on begins. What a restart must remember.
        self.offset = offset
        self._searched = offset

    def read(self, limit: int = CHUNK_BYTES) -> list[bytes]:
        """The next whole lines, without b"\\n": about `limit` bytes of them, or one longer line.

        Empty if no line is complete, or if the file is not there yet.
        """
        with contextlib.suppress(FileNotFoundError), self.path.open("rb", buffering=0) as file:
            return self._read(file.fileno(), limit)
        return []

    def unfinished(self) -> bytes:
        """The half line at the end of a file that nobody writes to any more, once `read` gives nothing."""
        with contextlib.suppress(FileNotFoundError), self.path.open("rb", buffering=0) as file:
            return _read_range(file.fileno(), self.offset, self.offset + LONGEST_LINE_BYTES)
        return b""

    def _read(self, descriptor: int, limit: int) -> list[bytes]:
        first = self._find_end(descriptor)
        if first is None:
            return []
        if first - self.offset >= limit:
            line = _read_range(descriptor, self.offset, min(first, self.offset + LONGEST_LINE_BYTES))
            self.offset = self._searched = first + 1
            return [line]
        block = _read_range(descriptor, self.offset, self.offset + limit)
        *lines, rest = block.split(b"\n")
        self.offset += len(block) - len(rest)
        self._searched = self.offset + len(rest)
        return lines

    def _find_end(self, descriptor: int) -> int | None:
        """Where the line at `offset` ends: the place of its b"\\n"."""
        while chunk := os.pread(descriptor, CHUNK_BYTES, self._searched):
            place = chunk.find(b"\n")
            if place >= 0:
                return self._searched + place
            self._searched += len(chunk)
        return None


def read_lines(path: Path, offset: int, limit: int = CHUNK_BYTES) -> tuple[list[bytes], int]:
    """The whole lines of a file from an offset on, about `limit` bytes of them, and where to go on from."""
    reader = LineReader(path, offset)
    return reader.read(limit), reader.offset


def _read_range(descriptor: int, start: int, end: int) -> bytes:
    parts = []
    while start < end and (part := os.pread(descriptor, min(CHUNK_BYTES, end - start), start)):
        parts.append(part)
        start += len(part)
    return b"".join(parts)


if sys.platform == "linux":
    _IN_MODIFY, _IN_MOVED_TO, _IN_CREATE, _IN_ONLYDIR = 0x2, 0x80, 0x100, 0x01000000
    # The keeper holds its directory, so that the end of the watch itself does not tell when it is removed.
    _IN_DELETE = 0x200
    _IN_Q_OVERFLOW = 0x4000
    _EVENT = struct.Struct("iIII")
    # Larger than any event with a name in it, and some thousand without.
    _EVENTS_BYTES = 64 * 1024

    class _Notifier:
        """One inotify instance for all directories: a user has only 128 of them."""

        def __init__(self) -> None:
            self._libc = ctypes.CDLL(None, use_errno=True)
            self._descriptor = self._checked(
                self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), "inotify"
            )

        def fileno(self) -> int:
            return self._descriptor

        def add(self, directory: Path) -> int:
            mask = _IN_MODIFY | _IN_MOVED_TO | _IN_CREATE | _IN_DELETE | _IN_ONLYDIR
            added = self._libc.inotify_add_watch(self._descriptor, os.fsencode(directory), mask)
            return self._checked(added, str(directory))

        def remove(self, key: int) -> None:
            # Fails if the directory is gone: then so is the watch.
            self._libc.inotify_rm_watch(self._descriptor, key)

        def read(self) -> set[int] | None:
            """The directories with news; None if there was too much of it to say."""
            keys = set()
            events, at = os.read(self._descriptor, _EVENTS_BYTES), 0
            while at < len(events):
                key, mask, _, name_length = _EVENT.unpack_from(events, at)
                if mask & _IN_Q_OVERFLOW:
                    return None
                keys.add(key)
                at += _EVENT.size + name_length
            return keys

        def close(self) -> None:
            os.close(self._descriptor)

        def _checked(self, result: int, what: str) -> int:
            if result < 0:
                number = ctypes.get_errno()
                raise OSError(number, f"can't be followed: {os.strerror(number)}", what)
            return int(result)

elif sys.platform == "darwin":

    class _Notifier:
        """A kqueue, with a descriptor for each directory and file. Written from kqueue(2), not tried."""

        def __init__(self) -> None:
            self._queue = select.kqueue()
            self._keys: dict[int, int] = {}
            self._files: dict[int, dict[str, int]] = {}
            self._directories: dict[int, Path] = {}

        def fileno(self) -> int:
            return self._queue.fileno()

        def add(self, directory: Path) -> int:
            key = self._open(directory)
            self._keys[key] = key
            self._files[key], self._directories[key] = {}, directory
            self._look(key)
            return key

        def remove(self, key: int) -> None:
            # Closing a descriptor takes it out of the queue.
            for descriptor in (key, *self._files.pop(key).values()):
                del self._keys[descriptor]
                os.close(descriptor)
            del self._directories[key]

        def read(self) -> set[int] | None:
            keys = {
                self._keys[event.ident]
                for event in self._queue.control(None, 64, 0)
                if event.ident in self._keys
            }
            for key in keys:
                self._look(key)
            return keys

        def close(self) -> None:
            for key in list(self._directories):
                self.remove(key)
            self._queue.close()

        def _look(self, key: int) -> None:
            """Watch the files that came since the last look."""
            for name in ("transcript.ndjson", "stderr.log"):
                path = self._directories[key] / name
                if name not in self._files[key] and path.exists():
                    descriptor = self._open(path)
                    self._files[key][name] = descriptor
                    self._keys[descriptor] = key

        def _open(self, path: Path) -> int:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            news = select.KQ_NOTE_WRITE | select.KQ_NOTE_EXTEND
            flags = select.KQ_EV_ADD | select.KQ_EV_CLEAR
            self._queue.control([select.kevent(descriptor, select.KQ_FILTER_VNODE, flags, news)], 0)
            return descriptor

else:
    raise ImportError(f"Promptside runs on Linux and macOS; it can't follow files on {sys.platform}")
