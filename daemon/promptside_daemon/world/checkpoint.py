"""Checkpoints (GA-12, ST-16): a project as it was, what changed since, and the way back.

Where git can, a checkpoint is a tree in the repository's own object store; elsewhere copies by hash. It
covers the project's directory: in a monorepo that one part, in a linked worktree that worktree. Our own
task documents are never part of one. Ignored files, empty folders, times and rights other than "may be
run" are not kept.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from msgspec import Struct

from . import keptcopies, keptgit
from .git import GitFailed
from .keptcopies import CopyFailed
from .keptgit import KeptGit
from .putback import Reason, put_back
from .tree import (
    LINK,
    REPOSITORY,
    Difference,
    Entry,
    Skipped,
    blocks,
    bytes_of,
    folder_at,
    name,
    open_plain,
)

LARGEST_SHOWN = 8 << 20
"""Bytes of a file that is shown as it was; a frame holds a little more."""


class Checkpoint(Struct, frozen=True, kw_only=True):
    id: str
    """Of the same kind, the same id means the same files."""
    kind: Literal["git", "hash"]
    rules: str = ""
    """Which ignore rules were in force; internal."""
    skipped: tuple[Skipped, ...] = ()
    """What is not in it, and would be expected to be."""


class Change(Struct, frozen=True, kw_only=True):
    path: str
    """Below the project; bytes that are no UTF-8 as `\\xNN`."""
    kind: Literal["added", "modified", "deleted", "type"]
    added_lines: int | None
    """None for what is not text, and for very long files where there is no git."""
    removed_lines: int | None


class Left(Struct, frozen=True, kw_only=True):
    path: str
    why: Reason


class Restored(Struct, frozen=True, kw_only=True):
    done: tuple[str, ...]
    left: tuple[Left, ...]
    """What was not touched, and why; a path with `changed since` is someone else's work."""


class File(Struct, frozen=True, kw_only=True):
    """One file as it was; bytes only where there are not too many of them."""

    kind: Literal["file", "absent", "large", "link", "repository"]
    content: bytes = b""
    size: int = 0


class CheckpointFailed(Exception):
    """The files could not be kept, compared or put back; the text says why."""


async def take(project: Path, keep: Path, task: str, *, env: Mapping[str, str] | None = None) -> Checkpoint:
    """Keeps the project as it is now, until `prune` is called for the task. Doing it twice is harmless.

    `keep` is a folder of ours for this project alone. Take it with no agent at work: files that vanish
    meanwhile make it try again, a few times.
    """
    if not re.fullmatch(r"[A-Za-z0-9_-]+", task):
        raise ValueError(f"{task!r} cannot be part of a ref")
    with _failures():
        await asyncio.to_thread(keep.mkdir, mode=0o700, parents=True, exist_ok=True)
        project = await asyncio.to_thread(project.resolve, strict=True)
        return await _take(project, keep, await keptgit.open_kept(project, keep, env), task)


async def changed(
    project: Path,
    keep: Path,
    before: Checkpoint,
    after: Checkpoint | None = None,
    *,
    env: Mapping[str, str] | None = None,
) -> list[Change]:
    """What differs between two checkpoints, or from one to the files as they are now."""
    with _failures():
        pair = await _pair(project, keep, before, after, env)
        return [_change(item) for item in await pair.differences()]


async def diff(
    project: Path,
    keep: Path,
    before: Checkpoint,
    after: Checkpoint | None = None,
    *,
    paths: Collection[str] | None = None,
    env: Mapping[str, str] | None = None,
) -> bytes:
    """The same as a unified diff, in whatever encodings the files have."""
    with _failures():
        pair = await _pair(project, keep, before, after, env)
        wanted = None
        if paths is not None:
            wanted = [item.path for item in await pair.differences() if name(item.path) in set(paths)]
        if pair.kept is not None:
            return await keptgit.diff(pair.kept, pair.before.id, pair.after.id, wanted)
        return await asyncio.to_thread(keptcopies.diff, keep, pair.before.id, pair.after.id, wanted)


async def file_at(
    project: Path, keep: Path, kept_as: Checkpoint | None, path: str, *, env: Mapping[str, str] | None = None
) -> File:
    """A file as a checkpoint has it, without a checkpoint as it is now; by the name that `changed` gives it."""
    with _failures():
        project = await asyncio.to_thread(project.resolve, strict=True)
        found = File(kind="absent")
        for one in bytes_of(path):
            if not {b"", b".", b".."}.isdisjoint(one.split(b"/")):
                continue  # no path that a checkpoint has
            if kept_as is None:
                found = await asyncio.to_thread(_file_now, project, one)
            else:
                found = await _file_then(project, keep, kept_as, one, env)
            if found.kind != "absent":
                break
        return found


async def restore(
    project: Path,
    keep: Path,
    checkpoint: Checkpoint,
    *,
    expected: Checkpoint,
    paths: Collection[str] | None = None,
    env: Mapping[str, str] | None = None,
) -> Restored:
    """Takes back what changed from the checkpoint to the expected state (the one at the attempt's end), or
    the given paths of that. Nothing else is touched, and no file that is not as expected any more.

    Files that the checkpoint's ignore rules ignore stay: an agent that un-ignored them did not make them.
    """
    with _failures():
        pair = await _pair(project, keep, checkpoint, expected, env)
        plan = await pair.differences()
        if paths is not None:
            plan = [item for item in plan if name(item.path) in set(paths)]
        room = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="tmp-", dir=keep))
        try:
            spared = await pair.stage(plan, room)
        except BaseException:
            await asyncio.to_thread(shutil.rmtree, room, ignore_errors=True)
            raise
        # From here on whoever waits may give up: the files are put back whole, or not yet.
        return await asyncio.to_thread(_finish, project, plan, room, spared)


async def prune(
    project: Path, keep: Path, tasks: Collection[str], *, env: Mapping[str, str] | None = None
) -> None:
    """Forgets the checkpoints of tasks that are removed."""
    with _failures():
        if not await asyncio.to_thread(keep.is_dir):
            return
        project = await asyncio.to_thread(project.resolve)
        if await asyncio.to_thread(project.is_dir) and (kept := await keptgit.open_kept(project, keep, env)):
            await keptgit.forget(kept, tasks)
        await asyncio.to_thread(keptcopies.forget, keep, tasks)
        await asyncio.to_thread(_sweep, keep)


async def _file_then(
    project: Path, keep: Path, then: Checkpoint, path: bytes, env: Mapping[str, str] | None
) -> File:
    if then.kind == "hash":
        entry, size, content = await asyncio.to_thread(keptcopies.content, keep, then.id, path, LARGEST_SHOWN)
    else:
        kept = await keptgit.open_kept(project, keep, env)
        if kept is None:
            raise CheckpointFailed(f"the checkpoint was kept by git, which cannot read {project} any more")
        entry = await keptgit.entry(kept, then.id, path)
        known = entry is not None and entry.mode != REPOSITORY
        size, content = await keptgit.content(kept, entry.oid, LARGEST_SHOWN) if entry and known else (0, b"")
    if entry is None:
        return File(kind="absent")
    if entry.mode == REPOSITORY:
        return File(kind="repository")
    if content is None:
        return File(kind="large", size=size)
    return File(kind="link" if entry.mode == LINK else "file", content=content, size=size)


def _file_now(project: Path, path: bytes) -> File:
    """Reached without following a link: what lies behind one is not part of the project."""
    *folders, filename = path.split(b"/")
    root = os.open(project, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        folder = folder_at(root, folders)
    except OSError:
        return File(kind="absent")
    finally:
        os.close(root)
    try:
        found = os.lstat(filename, dir_fd=folder)
        if stat.S_ISLNK(found.st_mode):
            target = os.readlink(filename, dir_fd=folder)
            return File(kind="link", content=target, size=len(target))
        if not stat.S_ISREG(found.st_mode):
            return File(kind="absent")
        if found.st_size > LARGEST_SHOWN:
            return File(kind="large", size=found.st_size)
        with open_plain(filename, folder) as file:
            content = b"".join(blocks(file))
        return File(kind="file", content=content, size=len(content))
    except FileNotFoundError:
        return File(kind="absent")
    finally:
        os.close(folder)


class _Pair(Struct, frozen=True, kw_only=True):
    """Two checkpoints of one kind, and what is needed to compare them."""

    keep: Path
    kept: KeptGit | None
    """None where they are copies."""
    before: Checkpoint
    after: Checkpoint

    async def differences(self) -> list[Difference]:
        if self.kept is not None:
            return await keptgit.differences(self.kept, self.before.id, self.after.id)
        return await asyncio.to_thread(keptcopies.differences, self.keep, self.before.id, self.after.id)

    async def stage(self, plan: list[Difference], room: Path) -> set[bytes]:
        """Lays the earlier contents out below `room/staged`; gives what must not be removed."""
        older = [item.path for item in plan if item.before is not None and item.before.mode != REPOSITORY]
        newer = [item.path for item in plan if item.before is None]
        if self.kept is None:
            await asyncio.to_thread(keptcopies.stage, self.keep, self.before.id, older, room / "staged")
            return set()
        await keptgit.stage(self.kept, self.before.id, older, room / "staged")
        if not newer:
            return set()
        return await keptgit.ignored(self.kept, self.before.id, self.before.rules, newer, room / "rules")


async def _pair(
    project: Path, keep: Path, before: Checkpoint, after: Checkpoint | None, env: Mapping[str, str] | None
) -> _Pair:
    if after is not None and after.kind != before.kind:
        raise CheckpointFailed("one was kept by git and the other as copies: they cannot be compared")
    project = await asyncio.to_thread(project.resolve, strict=True)
    kept = await keptgit.open_kept(project, keep, env) if before.kind == "git" else None
    if before.kind == "git" and kept is None:
        raise CheckpointFailed(f"the checkpoint was kept by git, which cannot read {project} any more")
    return _Pair(keep=keep, kept=kept, before=before, after=after or await _take(project, keep, kept, None))


async def _take(project: Path, keep: Path, kept: KeptGit | None, task: str | None) -> Checkpoint:
    if kept is not None:
        tree, skipped = await keptgit.take(kept, task)
        return Checkpoint(id=tree, kind="git", rules=kept.rules, skipped=tuple(skipped))
    tree, skipped = await asyncio.to_thread(keptcopies.take, project, keep, task)
    return Checkpoint(id=tree, kind="hash", skipped=tuple(skipped))


def _finish(project: Path, plan: list[Difference], room: Path, spared: set[bytes]) -> Restored:
    try:
        done, left = put_back(project, plan, room / "staged", spared)
    finally:
        shutil.rmtree(room, ignore_errors=True)
    return Restored(
        done=tuple(name(path) for path in done),
        left=tuple(Left(path=name(path), why=why) for path, why in left),
    )


def _sweep(keep: Path) -> None:
    """Folders that a killed daemon left; a day is longer than any work in one takes."""
    before = time.time() - 86_400
    for room in keep.glob("tmp-*"):
        if room.lstat().st_mtime < before:
            shutil.rmtree(room, ignore_errors=True)


def _change(item: Difference) -> Change:
    kind: Literal["added", "modified", "deleted", "type"]
    match item.before, item.after:
        case None, _:
            kind = "added"
        case _, None:
            kind = "deleted"
        case Entry(mode=old), Entry(mode=new):
            kind = "modified" if stat.S_IFMT(old) == stat.S_IFMT(new) else "type"
    return Change(path=name(item.path), kind=kind, added_lines=item.added, removed_lines=item.removed)


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except (GitFailed, CopyFailed, OSError) as error:
        raise CheckpointFailed(str(error)) from error
