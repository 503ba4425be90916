"""What finished tasks left is removed by age and by size; facts stay, and nothing of an open task goes (DA-9)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from promptside_daemon.settings import load
from promptside_daemon.world import checkpoint
from promptside_protocol.errors import PromptsideError
from promptside_protocol.views import Garbage

if TYPE_CHECKING:
    from promptside_daemon.daemon import Daemon
    from promptside_daemon.project import Project

log = logging.getLogger(__name__)

DAY_S = 86_400.0


async def keep_tidy(daemon: Daemon) -> None:
    """Remove what may go, at the start and then once a day, for as long as the daemon lives."""
    while True:
        try:
            await collect(daemon)
        except (PromptsideError, OSError) as error:
            log.warning("retention could not do its work: %s", error)
        await asyncio.sleep(DAY_S)


async def garbage(daemon: Daemon) -> Garbage:
    """What can go, of all projects."""
    gone: list[str] = []
    size = 0
    for project in list(daemon.projects.values()):
        for attempt in await _removable(project):
            gone.append(attempt)
            size += await asyncio.to_thread(_size, project.world.attempts / attempt)
    return Garbage(attempts=tuple(gone), bytes=size)


async def collect(daemon: Daemon) -> None:
    """Remove it: the directory first, then the note of it, so that it works on a full disk and after a crash."""
    for project in list(daemon.projects.values()):
        chosen = await _removable(project)
        for attempt in chosen:
            directory = project.world.attempts / attempt
            await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)
        if chosen:
            await project.store.mark_removed(chosen)
            await _prune(project, chosen)


async def _prune(project: Project, removed: list[str]) -> None:
    """Forget the checkpoints of tasks none of whose attempts is left."""
    tasks = {int(attempt.partition("-")[0].removeprefix("t")) for attempt in removed}
    gone = [task for task in tasks if all(one.removed for one in await project.store.attempts(task))]
    try:
        await checkpoint.prune(project.root, project.world.keep, [f"task-{task}" for task in gone])
    except checkpoint.CheckpointFailed as error:
        log.warning("checkpoints of %s could not be removed: %s", project.root, error)


async def _removable(project: Project) -> list[str]:
    """Attempts of finished tasks that are too old, or that are too much together, the oldest first."""
    limits = load(project.root).settings.retention
    chosen: list[str] = []
    if limits.days > 0:
        before = time.time() - limits.days * DAY_S
        chosen = [row.id for row in await project.store.removable(before)]
    if limits.size_mb > 0:
        sizes = {
            row.id: await asyncio.to_thread(_size, project.world.attempts / row.id)
            for row in await project.store.removable()
        }
        total = sum(sizes.values())
        for attempt, size in sizes.items():
            if total <= limits.size_mb << 20:
                break
            if attempt not in chosen:
                chosen.append(attempt)
            total -= size
    return chosen


def _size(directory: Path) -> int:
    total = 0
    for file in directory.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # somebody collects at the same time
            total += file.lstat().st_size
    return total
