"""What clients follow: tasks from a cursor on, and what an attempt writes from a byte on.

Reading is pulling: each flow reads past its own cursor when its client has read what came before. There is no
queue to overflow and no seam between history and what is live.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from typing import TYPE_CHECKING, Any

import msgspec

from promptside_daemon.engine.task import Attempt, Task
from promptside_daemon.transcript import Transcript
from promptside_daemon.world.follow import Watch as Watched
from promptside_protocol.errors import refused
from promptside_protocol.notices import (
    ActivityChanged,
    CaughtUp,
    EventHappened,
    Notice,
    OutputCame,
    ProjectGone,
    TaskChanged,
)
from promptside_protocol.queries import FollowOutput, Watch
from promptside_protocol.views import Activity

if TYPE_CHECKING:
    from promptside_daemon.daemon import Daemon
    from promptside_daemon.project import Project

PAGE = 100
FRAME_SECONDS = 0.035
"""How long output gathers after some was told: nobody reads faster. A little more than a frame of an editor, so that
what comes is passed on at once; the first word after a silence waits for nothing."""


async def watch(daemon: Daemon, query: Watch, flow: int) -> AsyncGenerator[Notice, None]:
    """Each task that changed past a cursor, whole, once; then what changes (CW-16)."""
    only = daemon.project(query.project).row.path if query.project else ""
    cursors = dict(query.cursors)
    told: set[str] = set()
    seen: dict[str, tuple[Activity, ...]] = {}
    while True:
        # What will wake us is taken before anything is read: what happens while we tell is not missed.
        opened = daemon.opened
        projects = [p for path, p in daemon.projects.items() if only in ("", path)]
        if only and not projects:
            raise refused("no-project", f"{only} is no project of Promptside any more.")
        moves = [p.activities.moved for p in projects] if query.activity else []
        moved = False
        for path in _gone(daemon, {p for p in {*cursors, *told} if only in ("", p)}, cursors):
            cursors.pop(path, None)
            told.discard(path)
            seen.pop(path, None)
            yield ProjectGone(flow=flow, project=path)
        for project in projects:
            path = project.row.path
            behind = False
            async for notice in _changes(project, query, cursors, flow):
                behind = True
                yield notice
            if not behind and path not in told:
                told.add(path)
                yield CaughtUp(flow=flow, project=path, seq=cursors.get(path, 0))
            moved = moved or behind
            if query.activity and seen.get(path) != (now := project.activities.current()):
                seen[path] = now
                for activity in now:
                    yield ActivityChanged(flow=flow, activity=activity)
        if not moved:
            past = [p.store.wait_past(cursors.get(p.row.path, 0)) for p in projects]
            await _either(opened.wait(), *past, *(one.wait() for one in moves))


def _gone(daemon: Daemon, known: set[str], cursors: dict[str, int]) -> list[str]:
    """Projects that were told of and are no more; one that was made anew at the same place is another."""
    there = daemon.projects
    return [
        path
        for path in sorted(known)
        if path not in daemon.broken and (path not in there or there[path].store.head < cursors.get(path, 0))
    ]


async def _changes(
    project: Project, query: Watch, cursors: dict[str, int], flow: int
) -> AsyncGenerator[Notice, None]:
    path = project.row.path
    cursor = cursors.get(path, 0)
    if project.store.head <= cursor:
        return
    head = project.store.head
    if query.events:
        for fact in await project.store.facts_since(cursor, PAGE):
            yield EventHappened(
                flow=flow,
                project=path,
                seq=fact.seq,
                at=fact.at,
                task=fact.task,
                kind=fact.kind,
                body=msgspec.json.decode(fact.body),
            )
            cursors[path] = fact.seq
        return
    rows = await project.store.changed_since(cursor, PAGE)
    for row in rows:
        yield TaskChanged(flow=flow, project=path, seq=row.seq, task=project.view(row))
        cursors[path] = row.seq
    if not rows:
        cursors[path] = head  # facts of the project itself, which change no task
        yield CaughtUp(flow=flow, project=path, seq=head)


async def follow_output(daemon: Daemon, query: FollowOutput, flow: int) -> AsyncGenerator[Notice, None]:
    """What one attempt writes, from a byte on, until it has ended."""
    project = daemon.project(query.project)
    number = await project.number(query.task)
    stage, attempt = await find_attempt(project, number, query.stage, query.attempt)
    transcript = await asyncio.to_thread(Transcript.of, project, attempt, query.cursor)
    woken = asyncio.Event()
    directory = project.world.attempts / attempt.id
    watching: Watched | None = None
    clock = asyncio.get_running_loop().time
    told = clock() - FRAME_SECONDS
    try:
        while True:
            if watching is None and directory.is_dir():
                watching = daemon.follower.watch(directory, woken.set)
            # In this order: what comes while we read wakes us, and an end is only believed before a reading
            # that finds nothing.
            woken.clear()
            head = project.store.head
            ended = _is_over(project, number, attempt.id)
            entries = await asyncio.to_thread(transcript.read)
            last = ended and not entries
            if last:
                entries = await asyncio.to_thread(transcript.close)
            if entries or last:
                told = clock()
                yield OutputCame(
                    flow=flow,
                    task=number,
                    stage=stage,
                    attempt=attempt.n,
                    cursor=transcript.cursor,
                    entries=entries,
                    ended=last,
                )
            if last:
                return
            if not entries:
                await _either(woken.wait(), project.store.wait_past(head))
                await asyncio.sleep(told + FRAME_SECONDS - clock())
    finally:
        if watching is not None:
            watching.close()


async def _either(*waits: Coroutine[Any, Any, object]) -> None:
    """Wait until one of them is through."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def find_attempt(project: Project, number: int, stage: str, n: int) -> tuple[str, Attempt]:
    """An attempt by stage and number; empty and 0 take the newest."""
    task, _ = await project.loop.load(number)
    runs = [r for r in task.stages if r.attempts and stage in ("", r.id)]
    if stage and task.pipeline.index(stage) < 0:
        raise refused("no-stage", f"There is no stage {stage} in {task.pipeline.name}.")
    found = [(r.id, a) for r in runs for a in r.attempts if n in (0, a.n)]
    if not found:
        raise refused("no-attempt", "There is no such attempt yet.", f"promptside run {number}")
    return max(found, key=lambda one: one[1].queued)


def _is_over(project: Project, number: int, attempt: str) -> bool:
    task: Task | None = project.loop.task(number)
    if task is None:
        return True
    return not any(a.id == attempt and a.live is not None for r in task.stages for a in r.attempts)
