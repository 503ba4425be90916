"""Going where something is: to what waits, to a task's document; and the daemon's own state."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from msgspec import Struct

from promptside_protocol.errors import refused
from promptside_protocol.pages.doctor import doctor_page
from promptside_protocol.pages.page import Look, text_of
from promptside_protocol.queries import DoctorQuery, Status
from promptside_protocol.views import DaemonView, TaskView
from promptside_server import readonly
from promptside_server.documents import path_of, uri_of
from promptside_server.features.commands import offer, typed
from promptside_server.server import Server
from promptside_server.target import fill


class OpenTask(Struct, frozen=True, kw_only=True):
    """Open Task"""

    project: str
    task: int


def register(server: Server) -> None:
    """Commands of the editor's own; none of them changes anything."""

    async def following(given: dict[str, Any]) -> readonly.Shown:
        if not server.mirror.waiting():
            await server.caught_up()
        return await _open(server, _next(server, given))

    async def open_task(given: dict[str, Any]) -> readonly.Shown:
        wish: OpenTask = typed("openTask", await fill(server, OpenTask, given), OpenTask)
        task = server.mirror.task(wish.project, wish.task)
        if task is None:
            raise refused("no-task", f"There is no task {wish.task} in {wish.project}.")
        return await _open(server, task)

    async def doctor(given: dict[str, Any]) -> readonly.Shown:
        query: DoctorQuery = typed("doctor", {**given, "type": "doctor"}, DoctorQuery)
        found = await server.link.call(query)
        path = readonly.place(query.project or "doctor", "doctor.txt")
        drawn = doctor_page(found, Look(now=time.time(), unicode=True))
        readonly.write(path, "".join(f"{text_of(line)}\n" for line in drawn.lines))
        return await readonly.show(server, readonly.uri_of(path))

    async def daemon_start(_: dict[str, Any]) -> DaemonView:
        return await server.link.call(Status())

    for name, perform in (
        ("next", following),
        ("openTask", open_task),
        ("doctor", doctor),
        ("daemonStart", daemon_start),
    ):
        offer(server, name, perform)


def _next(server: Server, given: dict[str, Any]) -> TaskView:
    """What waits nearest to a document: with its task, with its project, with this window's, with others (ED-16).

    Of what is equally near, what has waited longest. From the very document that waits, what waits behind it. A page
    that is no file is said by its project and task.
    """
    waiting = server.waiting()
    if not waiting:
        raise refused("nothing-waits", "Nothing waits for you.")
    path = path_of(str(given.get("uri") or server.protocol.active))
    place = path.resolve() if path is not None else None
    here = server.mirror.owner(place) if place is not None else None
    project = server.mirror.project_of(place) if place is not None else None
    if isinstance(given.get("project"), str):
        project = given["project"]
        here = server.mirror.task(project, given["task"]) if isinstance(given.get("task"), int) else here
    for number, task in enumerate(waiting):
        if here is not None and (task.project, task.id) == (here.project, here.id):
            if place == Path(task.project, _document(task)).resolve():
                return waiting[(number + 1) % len(waiting)]
            return task
    return next((task for task in waiting if task.project == project), waiting[0])


def _document(task: TaskView) -> str:
    """The document that a task waits with, else the task's own."""
    document = task.waiting_for.document if task.waiting_for is not None else None
    return document or f"{task.directory}/task.md"


async def _open(server: Server, task: TaskView) -> readonly.Shown:
    """Show what one opens of a task."""
    return await readonly.show(server, server.seen_as(uri_of(task.project, _document(task))))
