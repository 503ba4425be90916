"""One SQLite file: a connection that writes, a connection that reads, and a thread for each.

A transaction is one hop to the writer's thread: nothing comes between its statements, and a cancelled await
doesn't cut it short. Reads are single statements outside any transaction: they see what is committed, and
hold up neither commits nor checkpoints. Closing empties the -wal file into the database, so that copying the
one file of a closed database is a backup.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import stat
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

import aiosqlite

from promptside_daemon.store.errors import StoreFault, closed, damaged, explained
from promptside_daemon.store.migrations import Layout, migrate

BUSY_S = 5.0
"""How long another process may hold the file before we say so; the wait is the thread's, not the loop's."""
WAL_LIMIT = 4 << 20
"""Bytes; what the -wal file is cut back to after a checkpoint, however long a reader kept it from one."""
JOURNAL_CHECKED = 16 << 20
"""Bytes of a file up to which opening checks the journal too: it takes about 1 ms per MiB, and the journal
only ever grows. In larger files a damaged piece of it is found when it is read."""
CHUNK = 64
"""Rows; aiosqlite asks for it, and only its own cursors, which we don't use, would heed it."""

T = TypeVar("T")
log = logging.getLogger(__name__)


class Database:
    """An open database; made by `open`, let go by `close`."""

    def __init__(self, path: Path, writer: _Thread, reader: _Thread) -> None:
        self.path = path
        self._writer = writer
        self._reader = reader
        self._writes: set[asyncio.Task[Any]] = set()
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, path: Path, layout: Layout, busy_s: float = BUSY_S) -> Self:
        """Open the file, making it if it is not there and migrating it if it is old; raises a StoreFault."""
        doing = f"open the database of {layout.name}"
        with explained(path, doing):
            writer = await _Thread.begin(partial(_open_writer, path, layout, doing, busy_s))
            try:
                reader = await _Thread.begin(partial(_open_reader, path, busy_s))
            except BaseException:
                await writer.close()
                raise
        return cls(path, writer, reader)

    async def write(
        self,
        doing: str,
        work: Callable[[sqlite3.Connection], T],
        then: Callable[[T], Awaitable[None] | None] | None = None,
    ) -> T:
        """Run `work` as one durable transaction; `then` hears its result on the loop, before anyone else.

        Whoever is cancelled while waiting doesn't know whether it happened: it is committed or failed all the
        same, and `then` is called if it was committed, and waited for if it has something to wait for.
        """
        if self._closing is not None:
            raise closed(self.path, doing)
        task = asyncio.ensure_future(self._write(doing, work, then))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        return await asyncio.shield(task)

    async def written(self) -> None:
        """Return when what is being written now is, with all that belongs to it, or has failed."""
        if self._writes:
            await asyncio.wait(set(self._writes))

    async def read(self, doing: str, statement: str, *parameters: object) -> list[sqlite3.Row]:
        """Run one statement that changes nothing; what it sees is the state at one moment."""
        if self._closing is not None:
            raise closed(self.path, doing)
        with explained(self.path, doing):
            return await self._reader.hop(lambda reader: reader.execute(statement, parameters).fetchall())

    async def close(self) -> None:
        """Finish what is being written, empty the -wal file, and close; twice is once."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _write(
        self,
        doing: str,
        work: Callable[[sqlite3.Connection], T],
        then: Callable[[T], Awaitable[None] | None] | None,
    ) -> T:
        with explained(self.path, doing):
            result = await self._writer.hop(partial(_transaction, work))
        follows = then(result) if then is not None else None
        if follows is not None:
            await follows
        return result

    async def _close(self) -> None:
        try:
            await asyncio.gather(*self._writes, return_exceptions=True)
            await self._reader.close()
            with explained(self.path, "tidy up the database"):
                await self._writer.hop(_checkpoint)
        except StoreFault as fault:
            # The facts are in the -wal file, and the next one to open the database finds them there.
            log.warning("%s", fault.refusal.message)
        finally:
            # Both, whatever happened: a thread that is left keeps the process from ending.
            await self._reader.close()
            await self._writer.close()


class _Thread(aiosqlite.Connection):
    """aiosqlite's connection and its thread, with a way to run several statements in one hop.

    `_execute` is aiosqlite's own and a test pins it: with one await per statement a commit costs 1.76 times a
    bare one against 1.24 (measured), and a cancellation could leave a transaction open between two of them.
    """

    @classmethod
    async def begin(cls, connect: Callable[[], sqlite3.Connection]) -> Self:
        """Start the thread and make the connection in it."""
        failures: list[Exception] = []

        def connector() -> sqlite3.Connection:
            # Where a connector raises, aiosqlite doesn't wait for its thread, which then outlives the loop.
            try:
                return connect()
            except Exception as error:  # noqa: BLE001  # raised again below, whatever it is
                failures.append(error)
                return sqlite3.connect(":memory:")

        thread = cls(connector, CHUNK)
        await thread
        if failures:
            await thread.close()
            raise failures[0]
        return thread

    async def hop(self, work: Callable[[sqlite3.Connection], T]) -> T:
        result: T = await self._execute(work, self._conn)  # type: ignore[no-untyped-call]  # has no types
        return result


def _transaction(work: Callable[[sqlite3.Connection], T], connection: sqlite3.Connection) -> T:
    # `immediate` takes the writer's lock first: what `work` reads can't be out of date when it writes.
    connection.execute("begin immediate")
    try:
        result = work(connection)
        connection.execute("commit")
    except BaseException:
        # A full disk ends some transactions by itself; a second rollback would hide the first error.
        if connection.in_transaction:
            connection.execute("rollback")
        raise
    return result


def _checkpoint(connection: sqlite3.Connection) -> None:
    connection.execute("pragma wal_checkpoint(truncate)")


def _open_writer(path: Path, layout: Layout, doing: str, busy_s: float) -> sqlite3.Connection:
    _make_private(path.parent)
    if not path.exists():
        _create(path, layout, doing)
    elif path.stat().st_size == 0:
        # We never leave an empty file behind (see _create), so this one has lost what was in it.
        raise damaged(path, doing, "the file is empty")
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)
    connection = _connect(path, busy_s)
    try:
        migrate(connection, path, layout, doing)
        _check(connection, path, doing)
        connection.execute("pragma foreign_keys = on")
    except BaseException:
        connection.close()
        raise
    return connection


def _open_reader(path: Path, busy_s: float) -> sqlite3.Connection:
    connection = _connect(path, busy_s)
    connection.row_factory = sqlite3.Row
    connection.execute("pragma query_only = on")
    return connection


def _create(path: Path, layout: Layout, doing: str) -> None:
    """Make a new database under another name and link it into place: it is there whole or not at all.

    If another process was faster, its file stays.
    """
    descriptor, name = tempfile.mkstemp(prefix=f"{path.name}.new-", dir=path.parent)
    os.close(descriptor)
    new = Path(name)
    try:
        connection = _connect(new, BUSY_S)
        try:
            migrate(connection, new, layout, doing)
        finally:
            connection.close()
        with suppress(FileExistsError):
            os.link(new, path)
    finally:
        new.unlink()
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _connect(path: Path, busy_s: float) -> sqlite3.Connection:
    # `rw`: a file that has gone away since is an error, never a new and empty database.
    connection = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=busy_s, isolation_level=None)
    try:
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = full")
        # Only macOS knows it: there a plain fsync leaves the data in the disk's own memory.
        connection.execute("pragma fullfsync = on")
        connection.execute(f"pragma journal_size_limit = {WAL_LIMIT}")
    except BaseException:
        connection.close()
        raise
    return connection


def _check(connection: sqlite3.Connection, path: Path, doing: str) -> None:
    tables = [name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")]
    if path.stat().st_size > JOURNAL_CHECKED and "journal" in tables:
        tables.remove("journal")
    for table in tables:
        found = connection.execute(f"pragma quick_check('{table}')").fetchall()
        if found != [("ok",)]:
            raise damaged(path, doing, str(found[0][0]))


def _make_private(directory: Path) -> None:
    missing = [parent for parent in (directory, *directory.parents) if not parent.exists()]
    for parent in reversed(missing):
        parent.mkdir(mode=0o700, exist_ok=True)
    if stat.S_IMODE(directory.stat().st_mode) != 0o700:
        directory.chmod(0o700)
