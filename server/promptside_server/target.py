"""Which task a command without arguments is for.

The one whose document the person is in; else the only one that waits; else the person is asked, where the editor
can ask; else the refusal says what to give.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from lsprotocol import types
from pygls.uris import to_fs_path

from promptside_protocol.errors import refused
from promptside_protocol.queries import FindProject
from promptside_protocol.views import TaskView

if TYPE_CHECKING:
    from promptside_server.server import Server

CHOICES = 6
"""More buttons than this are no question any more."""


async def fill(server: Server, kind: type[msgspec.Struct], given: dict[str, Any]) -> dict[str, Any]:
    """Add the project and the task that were not given."""
    fields = kind.__struct_fields__
    filled = dict(given)
    if "task" in fields:
        if filled.get("task") is None:
            task = await target(server, _text(filled.get("project")))
            filled["project"], filled["task"] = task.project, task.id
        elif not filled.get("project"):
            filled["project"] = _project_of(server, filled["task"]) or await project(server)
    elif "project" in fields and not filled.get("project"):
        filled["project"] = await project(server)
    return filled


async def target(server: Server, within: str = "") -> TaskView:
    """The task that a person means."""
    here = active(server)
    if here is not None and within in ("", here.project):
        return here
    waiting = _near(server, [t for t in server.mirror.waiting() if within in ("", t.project)])
    tasks = waiting or _near(server, [t for t in server.mirror.tasks(within) if t.state != "archived"])
    if len(tasks) == 1:
        return tasks[0]
    if not tasks:
        if not server.link.up:
            raise refused("stale", server.link.why, "Start it with Promptside: Start the Daemon.")
        raise refused("no-task", "There is no task here yet.", "Make one with New Task….")
    return await _asked(server, tasks)


def active(server: Server) -> TaskView | None:
    """The task whose document the person is in."""
    path = to_fs_path(server.protocol.active)
    return server.mirror.owner(Path(path)) if path else None


async def project(server: Server) -> str:
    """The project of the document that the person is in, else that of the first folder."""
    path = to_fs_path(server.protocol.active) if server.protocol.active else None
    place = Path(path).parent if path else next(iter(server.folders()), None)
    if place is None:
        raise refused("no-folder", "No folder is open.", "Open a folder first, or give the project.")
    known = await server.link.call(FindProject(path=str(place)))
    return known.path if known is not None else str(_top(place))


async def _asked(server: Server, tasks: list[TaskView]) -> TaskView:
    """The one of several that the person names."""
    several = refused(
        "which",
        f"{len(tasks)} tasks could be meant: {', '.join(_named(t) for t in tasks[:CHOICES])}.",
        'Open a document of the task, or give {"project": …, "task": …}.',
    )
    if not server.editor.ask or len(tasks) > CHOICES:
        raise several
    buttons = [types.MessageActionItem(title=_named(task)) for task in tasks]
    answer = await server.window_show_message_request_async(
        types.ShowMessageRequestParams(
            type=types.MessageType.Info, message="Which task do you mean?", actions=buttons
        )
    )
    chosen = [task for task in tasks if answer is not None and answer.title == _named(task)]
    if len(chosen) != 1:
        raise several
    return chosen[0]


def _near(server: Server, tasks: list[TaskView]) -> list[TaskView]:
    """Those of the open folders, if there are any of them."""
    return [task for task in tasks if server.has_open(task.project)] or tasks


def _project_of(server: Server, number: Any) -> str:
    """The only project that has a task of this number, of the open folders first."""
    found = server.mirror.numbered(number)
    if len(found) > 1:
        found = _near(server, found)
    return found[0].project if len(found) == 1 else ""


def _named(task: TaskView) -> str:
    return f"{task.id} {task.title}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _top(folder: Path) -> Path:
    """The git top level that a folder lies in, else the folder."""
    for place in (folder, *folder.parents):
        if (place / ".git").exists():
            return place
    return folder
