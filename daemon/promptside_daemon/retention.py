"""What finished tasks left is removed by age and by size; facts stay, and nothing of an open task goes (DA-9)."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from promptside_daemon.settings import load
from promptside_protocol.views import Garbage

if TYPE_CHECKING:
    from promptside_daemon.daemon import Daemon

DAY_S = 86_400.0


async def collect(daemon: Daemon, *, dry_run: bool) -> Garbage:
    """Say what retention allows to remove, and unless `dry_run` remove it."""
    gone: list[str] = []
    size = 0
    for project in daemon.projects.values():
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
            for attempt in sizes:  # the oldest first
                if total <= limits.size_mb << 20:
                    break
                if attempt not in chosen:
                    chosen.append(attempt)
                total -= sizes[attempt]
        for attempt in chosen:
            directory = project.world.attempts / attempt
            size += await asyncio.to_thread(_size, directory)
            if not dry_run:
                await asyncio.to_thread(shutil.rmtree, directory, True)  # noqa: FBT003  ignore_errors: it may be gone
        if chosen and not dry_run:
            await project.store.mark_removed(chosen)
        gone += chosen
    return Garbage(attempts=tuple(gone), bytes=size, removed=not dry_run)


def _size(directory: Path) -> int:
    return sum(file.lstat().st_size for file in directory.rglob("*") if file.is_file())
