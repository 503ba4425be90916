"""A conversation in a person's own terminal: what is kept before it, what is found after it (ED-14)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

from promptside_daemon.engine.given import Terminal
from promptside_daemon.engine.task import TakenOver, Task, find_stage, live_attempt
from promptside_daemon.world import checkpoint, processes
from promptside_daemon.world.checkpoint import CheckpointFailed
from promptside_daemon.world.documents import write_json
from promptside_daemon.world.processes import Process
from promptside_daemon.world.project import World
from promptside_daemon.world.runner import read_checkpoint
from promptside_protocol.views import Change

log = logging.getLogger(__name__)

BEFORE = "terminal.json"
"""In an attempt's directory: the tree before a person went on with it. Where an agent was at work, its end kept it."""


async def before(world: World, task: Task, pid: int) -> Terminal:
    """Keep the tree before a person takes the current stage over; `pid` is the process that holds the terminal."""
    if task.taken_over is None:
        await _keep(world, task)
    process = processes.find(pid) if pid else None
    return Terminal(pid=process.pid, pid_started=process.started) if process is not None else Terminal()


async def after(world: World, task: Task, pid: int, environment: Mapping[str, str]) -> Terminal:
    """What changed meanwhile, and what was said; or the process that still holds the terminal and isn't this one."""
    taken = task.taken_over
    if taken is None:
        return Terminal()
    if taken.pid not in (0, pid) and processes.alive(Process(pid=taken.pid, started=taken.pid_started)):
        return Terminal(pid=taken.pid)
    return Terminal(
        changes=await _changes(world, task, taken),
        transcript=await asyncio.to_thread(transcript, environment, taken.session),
    )


def transcript(environment: Mapping[str, str], session: str) -> str:
    """Where the CLI of this environment keeps a conversation; empty if it has none of that name."""
    try:
        name = f"{UUID(session)}.jsonl"
    except ValueError:
        return ""
    home = environment.get("CLAUDE_CONFIG_DIR") or f"{environment.get('HOME', '')}/.claude"
    found = [path for path in Path(home, "projects").glob(f"*/{name}") if path.is_file()]
    return str(max(found, key=lambda path: path.stat().st_mtime)) if found else ""


async def _keep(world: World, task: Task) -> None:
    directory = world.attempts / task.run.last.id if task.run is not None and task.run.last else None
    if directory is None or not directory.is_dir():
        return
    try:
        (directory / BEFORE).unlink(missing_ok=True)
        if live_attempt(task) is None:
            kept = await checkpoint.take(world.root, world.keep, f"task-{task.id}")
            await asyncio.to_thread(write_json, directory / BEFORE, kept)
    except (CheckpointFailed, OSError) as error:
        log.warning("the files could not be kept before the terminal: %s", error)


async def _changes(world: World, task: Task, taken: TakenOver) -> tuple[Change, ...]:
    found = find_stage(task, taken.stage)
    attempt = next((a for a in found[1].attempts if a.n == taken.attempt), None) if found else None
    if attempt is None:
        return ()
    directory = world.attempts / attempt.id
    kept = read_checkpoint(directory / BEFORE) or read_checkpoint(directory / "after.json")
    if kept is None:
        return ()
    try:
        changed = await checkpoint.changed(world.root, world.keep, kept)
    except (CheckpointFailed, OSError) as error:
        log.warning("what changed in the terminal could not be found out: %s", error)
        return ()
    return tuple(
        Change(path=c.path, kind=c.kind, added=c.added_lines, removed=c.removed_lines) for c in changed
    )
