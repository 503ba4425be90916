"""Checkpoints as copies of files by their hash, for a project that git cannot help with.

A content is stored once. What is too large, or too much, is known by size and time only: a change of it
is seen, but cannot be undone.
"""

# ruff: noqa: PTH103, PTH115, PTH118, PTH120, PTH211
# Paths are bytes here: pathlib has none, and names need not be text.

from __future__ import annotations

import contextlib
import difflib
import hashlib
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from . import git
from .tree import (
    LINK,
    Difference,
    Entry,
    Skipped,
    blocks,
    entry_at,
    file_mode,
    hash_of,
    is_kept,
    name,
    open_plain,
    write_once,
)

LARGEST = 16 << 20
"""Bytes of one file."""
MOST = 1 << 30
"""Bytes of all files of one checkpoint."""
LEFT_OUT = frozenset({
    b".git", b".hg", b".svn", b"node_modules", b".venv", b"venv", b"__pycache__", b".tox", b".nox",
    b".mypy_cache", b".pytest_cache", b".ruff_cache",
})  # fmt: skip
"""Folders of dependencies and caches: they can be made again, and there is no .gitignore to go by."""

_TRIES = 8
_LIKE = "0" * 64  # SHA-256
_LONGEST = 5_000  # lines; beyond, comparing in Python takes seconds


class CopyFailed(Exception):
    """A file kept changing while it was copied, or the copies cannot be written or read."""


def take(project: Path, keep: Path, task: str | None) -> tuple[str, list[Skipped]]:
    """Copies what is not there yet. With a task it is kept until the task is forgotten; without, an hour."""
    store = keep / "copies"
    skipped: list[Skipped] = []
    with _said(f"{project} could not be copied"):
        entries = dict(_walk(os.fsencode(project), store / "content", skipped))
        content = msgspec.msgpack.encode(sorted(entries.items()))
        tree = hashlib.sha256(content).hexdigest()
        _add(store / "trees" / tree, content)
        if task is not None:
            _add(store / "tasks" / task / tree, b"")
    return tree, skipped


def differences(keep: Path, before: str, after: str) -> list[Difference]:
    with _said("a checkpoint could not be read"):
        old, new = _entries(keep, before), _entries(keep, after)
        found = []
        for path in sorted(old.keys() | new.keys()):
            one, other = old.get(path), new.get(path)
            if one != other:
                added, removed = _count(_lines(keep, one), _lines(keep, other))
                found.append(Difference(path=path, before=one, after=other, added=added, removed=removed))
        return found


def diff(keep: Path, before: str, after: str, paths: list[bytes] | None) -> bytes:
    wanted = None if paths is None else set(paths)
    changed = differences(keep, before, after)
    with _said("a checkpoint could not be read"):
        return b"".join(_diff_one(keep, item) for item in changed if wanted is None or item.path in wanted)


def content(keep: Path, tree: str, path: bytes, most: int) -> tuple[Entry | None, int, bytes | None]:
    """What stands at a path of the tree, its size, and its bytes; None where those are too many, or not kept."""
    with _said("a checkpoint could not be read"):
        entry = _entries(keep, tree).get(path)
        if entry is None:
            return None, 0, b""
        if not is_kept(entry):
            return entry, int(entry.oid.partition(":")[0] or 0), None
        stored = _content(keep / "copies" / "content", entry.oid)
        size = stored.stat().st_size
        return entry, size, stored.read_bytes() if size <= most else None


def stage(keep: Path, tree: str, paths: Iterable[bytes], into: Path) -> None:
    """Writes files of the tree below a folder of ours."""
    with _said("a checkpoint could not be read"):
        entries = _entries(keep, tree)
        for path in paths:
            entry = entries[path]
            if not is_kept(entry):
                continue
            target = os.path.join(os.fsencode(into), path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            source = _content(keep / "copies" / "content", entry.oid)
            if entry.mode == LINK:
                os.symlink(source.read_bytes(), target)
            else:
                shutil.copyfile(source, target)


def forget(keep: Path, tasks: Iterable[str]) -> None:
    """Drops the tasks, and what no checkpoint needs any more. What is younger than an hour may belong to
    one that is being taken."""
    store = keep / "copies"
    for task in tasks:
        shutil.rmtree(store / "tasks" / task, ignore_errors=True)
    before = time.time() - 3600
    needed = {path.name for path in store.glob("tasks/*/*")}
    with _said("old copies could not be removed"):
        for path in store.glob("trees/*"):
            if path.name not in needed and path.stat().st_mtime < before:
                path.unlink()
        trees = [path.name for path in store.glob("trees/*") if "." not in path.name]
        used = {entry.oid for tree in trees for entry in _entries(keep, tree).values()}
        for path in store.glob("content/*/*"):
            if path.parent.name + path.name not in used and path.stat().st_mtime < before:
                path.unlink()


def _walk(project: bytes, content: Path, skipped: list[Skipped]) -> Iterator[tuple[bytes, Entry]]:
    never = tuple(os.fsencode(ours).rstrip(b"/") for ours in git.NOT_COMMITTED)
    left_out: set[bytes] = set()
    total = 0
    folders = [b""]
    while folders:
        folder = folders.pop()
        try:
            found = sorted(os.scandir(os.path.join(project, folder)), key=lambda item: item.name)
        except FileNotFoundError:
            continue
        except PermissionError:
            skipped.append(Skipped(path=name(folder), why="unreadable"))
            continue
        for item in found:
            path = os.path.join(folder, item.name)
            if path in never:
                continue
            if item.is_dir(follow_symlinks=False):
                if item.name in LEFT_OUT:
                    left_out.add(item.name)
                else:
                    folders.append(path)
                continue
            try:
                status = os.lstat(item.path)
            except FileNotFoundError:
                continue
            mode = status.st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
                skipped.append(Skipped(path=name(path), why="special"))
            elif status.st_size > LARGEST or total + status.st_size > MOST:
                skipped.append(Skipped(path=name(path), why="large"))
                yield path, Entry(file_mode(status), f"{status.st_size}:{status.st_mtime_ns}")
            else:
                try:
                    entry = _keep(item.path, content)
                except PermissionError:
                    skipped.append(Skipped(path=name(path), why="unreadable"))
                    continue
                if entry is not None:
                    total += status.st_size
                    yield path, entry
    skipped += [Skipped(path=name(folder), why="left out") for folder in sorted(left_out)]


def _keep(path: bytes, content: Path) -> Entry | None:
    for _ in range(_TRIES):
        entry = entry_at(None, path, like=_LIKE)
        if entry is None or not entry.oid:
            return None
        stored = _content(content, entry.oid)
        try:
            os.utime(stored)  # young again: it is not removed before the list that names it is written
        except FileNotFoundError:
            if _copy(path, entry, stored) != entry.oid:
                continue
        return entry
    raise CopyFailed(f"{name(path)} kept changing while it was copied")


def _copy(path: bytes, entry: Entry, stored: Path) -> str | None:
    """Gives the hash of what was copied; under another than the expected one nothing is stored."""
    stored.parent.mkdir(parents=True, exist_ok=True)
    if entry.mode == LINK:
        target = os.readlink(path)
        _add(stored, target)
        return hash_of(_LIKE, len(target), [target])
    beside = stored.with_name(f"{stored.name}.{secrets.token_hex(8)}")
    try:
        with open_plain(path) as source, beside.open("wb") as target_file:
            size = os.fstat(source.fileno()).st_size
            oid = hash_of(_LIKE, size, _tee(source, target_file))
        if oid == entry.oid:
            beside.replace(stored)
    except FileNotFoundError:
        return None
    finally:
        beside.unlink(missing_ok=True)
    return oid


def _tee(source: BinaryIO, target: BinaryIO) -> Iterator[bytes]:
    for block in blocks(source):
        target.write(block)
        yield block


def _add(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_once(path, content)
    os.utime(path)


def _entries(keep: Path, tree: str) -> dict[bytes, Entry]:
    listed = msgspec.msgpack.decode(
        (keep / "copies" / "trees" / tree).read_bytes(), type=list[tuple[bytes, Entry]]
    )
    return dict(listed)


def _content(content: Path, oid: str) -> Path:
    return content / oid[:2] / oid[2:]


def _bytes_of(keep: Path, entry: Entry | None) -> bytes | None:
    """None for what was not kept."""
    if entry is None:
        return b""
    return _content(keep / "copies" / "content", entry.oid).read_bytes() if is_kept(entry) else None


def _lines(keep: Path, entry: Entry | None) -> list[bytes] | None:
    content = _bytes_of(keep, entry)
    if content is None or b"\0" in content[:8000]:  # where git looks, too
        return None
    lines = [line for line in re.split(rb"(?<=\n)", content) if line]  # at \n alone, as git does
    return lines if len(lines) <= _LONGEST else None


def _count(old: list[bytes] | None, new: list[bytes] | None) -> tuple[int | None, int | None]:
    if old is None or new is None:
        return None, None
    added = removed = 0
    for tag, start, end, new_start, new_end in difflib.SequenceMatcher(None, old, new).get_opcodes():
        if tag != "equal":
            removed += end - start
            added += new_end - new_start
    return added, removed


def _diff_one(keep: Path, item: Difference) -> bytes:
    old_name, new_name = _quoted(b"a/" + item.path), _quoted(b"b/" + item.path)
    head = b"diff --git %s %s\n" % (old_name, new_name)
    match item.before, item.after:
        case None, Entry(mode=mode):
            head += b"new file mode %o\n" % mode
            old_name = b"/dev/null"
        case Entry(mode=mode), None:
            head += b"deleted file mode %o\n" % mode
            new_name = b"/dev/null"
        case Entry(mode=old_mode), Entry(mode=new_mode) if old_mode != new_mode:
            head += b"old mode %o\nnew mode %o\n" % (old_mode, new_mode)
    # Without this line readers of diffs take what follows a binary file as part of it.
    head += b"index %s..%s\n" % (_short(item.before), _short(item.after))
    old, new = _lines(keep, item.before), _lines(keep, item.after)
    if old is None or new is None:
        # git's words, also for a long text: tools that read diffs know no others.
        return head + b"Binary files %s and %s differ\n" % (old_name, new_name)
    lines = difflib.diff_bytes(difflib.unified_diff, old, new, old_name, new_name)
    return head + b"".join(
        line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in lines
    )


def _short(entry: Entry | None) -> bytes:
    return entry.oid[:10].encode() if entry is not None and is_kept(entry) else b"0" * 10


def _quoted(path: bytes) -> bytes:
    """As git writes a name that would break the line or the encoding."""
    if not any(byte < 0x20 or byte >= 0x7F or byte in b'"\\' for byte in path):
        return path
    short = {0x09: b"\\t", 0x0A: b"\\n", 0x0D: b"\\r", 0x22: b'\\"', 0x5C: b"\\\\"}
    escaped = (
        short.get(byte) or (b"\\%03o" % byte if byte < 0x20 or byte >= 0x7F else bytes([byte]))
        for byte in path
    )
    return b'"' + b"".join(escaped) + b'"'


@contextlib.contextmanager
def _said(what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, msgspec.MsgspecError) as error:
        raise CopyFailed(f"{what}: {error}") from error
