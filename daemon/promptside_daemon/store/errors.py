"""What can be wrong with a database, each with a sentence that says what was being done and what to do.

A fault belongs to one file: whoever meets it gives up on that file, and the other projects go on.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from promptside_protocol.errors import Refusal, Refused

NEARLY_FULL = 1 << 20
"""Bytes; SQLite calls a disk without room for its index file an I/O error, so the free space is looked at."""


class StoreFault(Refused):
    """A database can't do what was asked; nothing of what was asked is in it."""

    code: ClassVar[str]

    def __init__(self, path: Path, sentence: str, hint: str) -> None:
        super().__init__(Refusal(code=self.code, message=sentence, hint=hint))
        self.path = path


class StoreLocked(StoreFault):
    """Another process kept the database for itself longer than we wait."""

    code = "store-locked"


class StoreDamaged(StoreFault):
    """The file is not what was written into it."""

    code = "store-damaged"


class DiskFull(StoreFault):
    """No room for what should be written."""

    code = "disk-full"


class StoreTooNew(StoreFault):
    """A newer Promptside has changed the layout of the file."""

    code = "store-too-new"


class StoreUnusable(StoreFault):
    """The system doesn't let us read or write the file: its mode, its disk, or too few file descriptors."""

    code = "store-unusable"


class StoreClosed(StoreFault):
    """The daemon has let go of this database: it is ending, or the project was removed from the list."""

    code = "store-closed"


@contextmanager
def explained(path: Path, doing: str) -> Iterator[None]:
    """Turn what SQLite and the system say about `path` into a StoreFault; `doing` is a verb phrase.

    What is not the file's fault (a wrong statement, a broken constraint) is a bug and passes as it is.
    """
    try:
        yield
    except sqlite3.DatabaseError as error:
        fault = _of_sqlite(error, path, doing)
        if fault is None:
            raise
        raise fault from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full(path, doing) from error
        raise unusable(path, doing, str(error)) from error


def damaged(path: Path, doing: str, found: str) -> StoreDamaged:
    return StoreDamaged(
        path,
        f"Could not {doing}: the database {path} is damaged ({found}). The other projects are not concerned.",
        "Stop the daemon, move the file away together with those whose names end in -wal and -shm, and put a "
        f"backup in its place; `sqlite3 {path.name} .recover` may bring back what is still readable. Without "
        "a backup an empty database is made anew; transcripts and documents are kept.",
    )


def disk_full(path: Path, doing: str) -> DiskFull:
    return DiskFull(
        path,
        f"Could not {doing}: no space is left on the disk of {path}.",
        "Free some space (`promptside gc` shows what may go) and try again; everything acknowledged is safe.",
    )


def unusable(path: Path, doing: str, found: str) -> StoreUnusable:
    return StoreUnusable(
        path,
        f"Could not {doing}: the database {path} can't be used ({found}).",
        "Check owner and mode of the file and its directory, and that the disk is there and writable.",
    )


def too_new(path: Path, doing: str, found: int, known: int) -> StoreTooNew:
    return StoreTooNew(
        path,
        f"Could not {doing}: {path} was written by a newer Promptside (its layout is {found}, this one knows "
        f"{known}).",
        f"Update Promptside. To go back instead, put the copy made before the change, {path.name}.v{known}, "
        "in its place; what happened since is not in it.",
    )


def closed(path: Path, doing: str) -> StoreClosed:
    return StoreClosed(
        path,
        f"Could not {doing}: the database {path} has been closed.",
        "The daemon is ending, or the project was removed from the list; try again.",
    )


def _of_sqlite(error: sqlite3.DatabaseError, path: Path, doing: str) -> StoreFault | None:
    # The low byte is the kind; the bytes above it only say where in SQLite it was met.
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED | sqlite3.SQLITE_PROTOCOL:
            return StoreLocked(
                path,
                f"Could not {doing}: another process keeps the database {path} locked.",
                "End that process (a backup, a database browser, a second daemon) and try again.",
            )
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return damaged(path, doing, str(error))
        case sqlite3.SQLITE_FULL:
            return disk_full(path, doing)
        case sqlite3.SQLITE_IOERR if _nearly_full(path):
            return disk_full(path, doing)
        case (
            sqlite3.SQLITE_IOERR
            | sqlite3.SQLITE_CANTOPEN
            | sqlite3.SQLITE_READONLY
            | sqlite3.SQLITE_PERM
            | sqlite3.SQLITE_AUTH
            | sqlite3.SQLITE_NOLFS
            | sqlite3.SQLITE_NOMEM
        ):
            return unusable(path, doing, str(error))
        case _:
            return None


def _nearly_full(path: Path) -> bool:
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < NEARLY_FULL
