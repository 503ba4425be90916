"""Which task a command without arguments is for.

The one whose document the person is in; else, of the project that the person is in before others, the only one
that waits, or that the command is offered for; else the person is asked, where the editor can ask; else the
refusal names the choices.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from lsprotocol import types
from pygls.uris import to_fs_path

from promptside_protocol.errors import Refused, refused
from promptside_protocol.queries import FindProject
from promptside_protocol.views import TaskView

if TYPE_CHECKING:
    from promptside_server.server import Server

V = TypeVar("V")
CHOICES = 6
"""More buttons than this are no question any more."""

OWN = ".promptside"
"""The directory of a project that is ours."""


async def fill(
    server: Server, kind: type[msgspec.Struct], given: dict[str, Any], at: str = ""
) -> dict[str, Any]:
    """Add the project and the task that were not given; `at` is the document that the client says it is about."""
    fields = kind.__struct_fields__
    filled = dict(given)
    if "task" in fields:
        if filled.get("task") is None:
            tag = kind.__struct_config__.tag
            command = f"promptside.{tag}" if tag else ""
            task = await target(server, _text(filled.get("project")), command=command, at=at)
            filled["project"], filled["task"] = task.project, task.id
        elif not filled.get("project"):
            filled["project"] = _project_of(server, filled["task"]) or await project(server, at)
    elif "project" in fields and not filled.get("project"):
        filled["project"] = await project(server, at)
    return filled


async def target(server: Server, within: str = "", *, command: str = "", at: str = "") -> TaskView:
    """The task that a person means."""
    here = active(server, at)
    if here is not None and within in ("", here.project):
        return here
    if not server.mirror.tasks(within):
        await server.caught_up()
    tasks = [t for t in server.mirror.tasks(within) if t.state != "archived"]
    near = _nearest(server, tasks, at)
    waiting = [t for t in near if t.waiting_for is not None]
    offered = [t for t in near if any(o.command == command and o.blocked is None for o in t.offers)]
    both = [t for t in waiting if t in offered]
    found = both or offered or waiting or near
    if found:
        return found[0] if len(found) == 1 else await _asked(server, found)
    raise refused("no-task", "There is no task here yet.", "Make one with New Task….")


def active(server: Server, at: str = "") -> TaskView | None:
    """The task whose document the person is in."""
    path = to_fs_path(at or server.protocol.active)
    return server.mirror.owner(Path(path).resolve()) if path else None


async def project(server: Server, at: str = "") -> str:
    """The project of the document that the person is in, else that of the first folder.

    Of several around it the innermost counts, also one that is none yet: where `.promptside` or a git repository is.
    """
    place = _place(server, at) or next(iter(server.folders()), None)
    if place is None:
        raise refused("no-folder", "No folder is open.", "Open a folder first, or give the project.")
    known = await server.link.call(FindProject(path=str(place)))
    top = _top(place)
    if known is None:
        return str(top or place)
    if top is not None and top != Path(known.path) and top.is_relative_to(known.path):
        return str(top)
    return known.path


async def pick(server: Server, question: str, choices: Mapping[str, V], otherwise: Refused) -> V:
    """The one of several that the person names; where the editor can't ask, the refusal names them all."""
    if not server.editor.ask or not 0 < len(choices) <= CHOICES:
        raise otherwise
    buttons = [types.MessageActionItem(title=title) for title in choices]
    answer = await server.window_show_message_request_async(
        types.ShowMessageRequestParams(type=types.MessageType.Info, message=question, actions=buttons)
    )
    if answer is None or answer.title not in choices:
        raise otherwise
    return choices[answer.title]


async def _asked(server: Server, tasks: list[TaskView]) -> TaskView:
    named = [_named(task, tasks) for task in tasks]
    several = refused(
        "which",
        f"{len(tasks)} tasks could be meant: {', '.join(named[:CHOICES])}.",
        'Open a document of the task, or give {"project": …, "task": …}.',
    )
    return await pick(server, "Which task do you mean?", dict(zip(named, tasks, strict=True)), several)


def _nearest(server: Server, tasks: list[TaskView], at: str) -> list[TaskView]:
    """Tasks of the project that the person is in, as long as any is open there, else of the folders, else all."""
    place = _place(server, at)
    mine = server.mirror.project_of(place) if place is not None else None
    here = [task for task in tasks if task.project == mine]
    if any(task.state not in ("completed", "failed") for task in here):
        return here
    return [task for task in tasks if server.has_open(task.project)] or tasks


def _place(server: Server, at: str) -> Path | None:
    """The folder that the person is in, without links; None if that is nothing of this window's.

    What the client names counts wherever it is. What was before the person last may be a settings file of the
    editor's own: it counts in a folder that is open, in a project, and where no folder is open.
    """
    there = _folder_of(at or server.protocol.active)
    if at or there is None or server.mirror.project_of(there) is not None:
        return there
    folders = server.folders()
    return there if not folders or any(map(there.is_relative_to, folders)) else None


def _folder_of(uri: str) -> Path | None:
    """The folder that a file is in; what lies in `.promptside` is of the project around it."""
    path = to_fs_path(uri) if uri.startswith("file:") else None
    if not path:
        return None
    there = Path(path).resolve()
    ours = [above for above in (there, *there.parents) if above.name == OWN]
    if ours:
        return ours[-1].parent
    return there if there.is_dir() else there.parent


def _project_of(server: Server, number: Any) -> str:
    """The only project that has a task of this number, of the open folders first."""
    found = server.mirror.numbered(number)
    if len(found) > 1:
        found = [task for task in found if server.has_open(task.project)] or found
    return found[0].project if len(found) == 1 else ""


def _named(task: TaskView, among: list[TaskView]) -> str:
    """A task by number and title, and by its project where there are several."""
    several = len({one.project for one in among}) > 1
    return f"{task.id} {task.title}" + (f" ({Path(task.project).name})" if several else "")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _top(folder: Path) -> Path | None:
    """The nearest directory upwards that is, or was made to be, a project of its own."""
    for place in (folder, *folder.parents):
        if (place / ".git").exists() or (place / ".promptside").is_dir():
            return place
    return None
