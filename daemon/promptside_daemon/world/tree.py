"""Files as a checkpoint sees them: mode and hash by path, and the differences between two trees.

Paths are bytes below the project, as the system has them; `name` is how they are shown and sent.
"""

# ruff: noqa: PTH123
# Paths are bytes here: pathlib has none, and names need not be text.

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Literal

from msgspec import Struct

FILE = 0o100644
PROGRAM = 0o100755
LINK = 0o120000
REPOSITORY = 0o160000
"""A repository inside of the project: of it only the commit is known."""


class Entry(Struct, frozen=True, array_like=True):
    mode: int
    oid: str
    """The hash git would give the bytes (SHA-1 or SHA-256 by its length); of a link, its target's."""


class Difference(Struct, frozen=True, kw_only=True):
    path: bytes
    before: Entry | None
    after: Entry | None
    added: int | None = None
    """Lines; None for what is not text."""
    removed: int | None = None


class Skipped(Struct, frozen=True, kw_only=True):
    path: str
    why: Literal["large", "unreadable", "special", "empty repository", "left out"]


def name(path: bytes) -> str:
    """The path as valid text: bytes that are no UTF-8 become `\\xNN`."""
    return path.decode("utf-8", "backslashreplace")


def bytes_of(shown: str) -> tuple[bytes, ...]:
    """The paths that `name` may have shown so; two where a name may hold a backslash or a byte that is no text."""
    plain = os.fsencode(shown)
    escaped = re.sub(rb"\\x([0-9a-f]{2})", lambda found: bytes([int(found[1], 16)]), plain)
    return (plain,) if escaped == plain else (plain, escaped)


def is_kept(entry: Entry) -> bool:
    """Whether its content was kept; of a file that is too large only size and time are known."""
    return len(entry.oid) in (40, 64)


def entry_at(folder: int | None, filename: bytes, *, like: str) -> Entry | None:
    """What is there now, hashed as `like` was. What is no file and no link gets a mode of no entry.

    Raises OSError where it cannot be read.
    """
    try:
        found = os.lstat(filename, dir_fd=folder)
        if stat.S_ISLNK(found.st_mode):
            target = os.readlink(filename, dir_fd=folder)
            return Entry(LINK, hash_of(like, len(target), [target]))
        if not stat.S_ISREG(found.st_mode):
            return Entry(stat.S_IFMT(found.st_mode), "")
        file = open_plain(filename, folder)
    except FileNotFoundError:
        return None
    with file:
        found = os.fstat(file.fileno())
        return Entry(file_mode(found), hash_of(like, found.st_size, blocks(file)))


def open_plain(filename: bytes, folder: int | None = None) -> BinaryIO:
    """Opens for reading what was seen to be a file. If it is a link by now that is refused, and a FIFO
    is not waited for."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    return open(os.open(filename, flags, dir_fd=folder), "rb", buffering=0)


def blocks(file: BinaryIO) -> Iterator[bytes]:
    while block := file.read(1 << 20):
        yield block


def file_mode(found: os.stat_result) -> int:
    return PROGRAM if found.st_mode & stat.S_IXUSR else FILE


def hash_of(like: str, size: int, blocks: Iterable[bytes]) -> str:
    """The hash of so many bytes as git makes it, by the algorithm that `like` came from."""
    hashed = hashlib.sha1(usedforsecurity=False) if len(like) == 40 else hashlib.sha256()
    hashed.update(b"blob %d\0" % size)
    for block in blocks:
        hashed.update(block)
    return hashed.hexdigest()


def folder_at(root: int, parts: list[bytes], *, create: bool = False) -> int:
    """A descriptor of a folder below the root, reached without following a link. The caller closes it."""
    here = os.dup(root)
    for part in parts:
        try:
            if create:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=here)
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
        finally:
            os.close(here)
        here = below
    return here


def write_once(path: Path, content: bytes) -> None:
    """Leaves the file alone if it says this already; else replaces it whole."""
    with contextlib.suppress(FileNotFoundError):
        if path.read_bytes() == content:
            return
    beside = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    beside.write_bytes(content)
    beside.replace(path)
