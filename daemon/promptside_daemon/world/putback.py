"""Puts files back as they were, and touches none that is not as it is expected to be.

Every step goes through descriptors of folders: a folder that became a link leads nowhere.
"""

# ruff: noqa: PTH115, PTH118, PTH123
# Paths are bytes here: pathlib has none, and names need not be text.

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Literal

from .tree import LINK, PROGRAM, REPOSITORY, Difference, Entry, entry_at, folder_at, is_kept

Reason = Literal["changed since", "ignored before", "repository", "not kept", "in the way", "failed"]


def put_back(
    project: Path, plan: Iterable[Difference], staged: Path, spared: AbstractSet[bytes]
) -> tuple[list[bytes], list[tuple[bytes, Reason]]]:
    """From `after` to `before`, with the contents found below `staged`. Gives what is done and what is left.

    Removals come first, so that a folder can become a file again, and a file a folder.
    """
    done: list[bytes] = []
    left: list[tuple[bytes, Reason]] = []
    root = os.open(project, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for item in sorted(plan, key=lambda item: (item.before is not None, item.path)):
            try:
                why = _put_back_one(root, item, os.fsencode(staged), spared)
            except OSError as error:
                blocked = error.errno in (errno.ENOTDIR, errno.ELOOP, errno.EISDIR, errno.ENOTEMPTY)
                why = "in the way" if blocked else "failed"
            if why is None:
                done.append(item.path)
            else:
                left.append((item.path, why))
    finally:
        os.close(root)
    return done, left


def _put_back_one(root: int, item: Difference, staged: bytes, spared: AbstractSet[bytes]) -> Reason | None:
    known = [entry for entry in (item.before, item.after) if entry is not None]
    if any(entry.mode == REPOSITORY for entry in known):
        return "repository"
    if item.before is not None and not is_kept(item.before):
        return "not kept"
    *parts, filename = item.path.split(b"/")
    now = _now(root, parts, filename, known[0].oid)
    if now == item.before:
        return None
    if now != item.after:
        return "in the way" if now is not None and stat.S_ISDIR(now.mode) else "changed since"
    if item.before is not None:
        folder = folder_at(root, parts, create=True)
        try:
            _write(folder, filename, os.path.join(staged, item.path), item.before)
        finally:
            os.close(folder)
        return None
    if item.path in spared:
        return "ignored before"
    _remove(root, parts, filename)
    return None


def _now(root: int, parts: list[bytes], filename: bytes, like: str) -> Entry | None:
    try:
        folder = folder_at(root, parts)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:  # a link stands where a folder was
            return None
        raise
    try:
        return entry_at(folder, filename, like=like)
    finally:
        os.close(folder)


def _remove(root: int, parts: list[bytes], filename: bytes) -> None:
    folder = folder_at(root, parts)
    try:
        os.unlink(filename, dir_fd=folder)
    finally:
        os.close(folder)
    # Folders that are empty now go too; checkpoints know no empty folder.
    while parts:
        *parts, last = parts
        folder = folder_at(root, parts)
        try:
            os.rmdir(last, dir_fd=folder)
        except OSError:
            return
        finally:
            os.close(folder)


def _write(folder: int, filename: bytes, source: bytes, entry: Entry) -> None:
    """Beside, then renamed over: whoever reads meanwhile sees the old bytes or the new ones."""
    beside = b".promptside-%s" % secrets.token_hex(8).encode()
    try:
        if entry.mode == LINK:
            os.symlink(os.readlink(source), beside, dir_fd=folder)
        else:
            _copy(folder, filename, beside, source, program=entry.mode == PROGRAM)
        os.replace(beside, filename, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=folder)
        raise


def _copy(folder: int, filename: bytes, beside: bytes, source: bytes, *, program: bool) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    target = os.open(beside, flags, 0o777 if program else 0o666, dir_fd=folder)
    with open(source, "rb") as reader, open(target, "wb") as writer:
        shutil.copyfileobj(reader, writer, 1 << 20)
        with contextlib.suppress(FileNotFoundError):
            found = os.lstat(filename, dir_fd=folder)
            if stat.S_ISREG(found.st_mode):  # only whether it may be run is kept; the rest stays as it is
                rights = stat.S_IMODE(found.st_mode) & 0o666
                os.fchmod(target, rights | (rights & 0o444) >> 2 if program else rights)
