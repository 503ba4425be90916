"""`.promptside/DESK.md`: the list of tasks as a file, for editors that don't know us (UX 5).

Written here only, with the lines of every other tasks page; what stands in it decides nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from pathlib import Path

from lsprotocol import types

from promptside_protocol.pages.page import Look, text_of
from promptside_protocol.pages.tasks import tasks_page
from promptside_protocol.views import TaskView
from promptside_server.documents import Reading, path_of, uri_of
from promptside_server.features.actions import KIND, OPTIONS, Action, drawn
from promptside_server.offered import Act, document_acts
from promptside_server.server import Server
from promptside_server.shared import give, on

log = logging.getLogger(__name__)

DESK = ".promptside/DESK.md"
PAUSE_SECONDS = 0.2
"""Changes that come together are written once."""
NUMBER = re.compile(r"#(\d+)\b")
HEAD = (
    "# Tasks",
    "",
    "> Put the cursor on a task and ask for code actions. This file is written by Promptside.",
    "",
)


def register(server: Server) -> None:
    """Keep the file, and answer for actions and links in it."""
    due: dict[str, asyncio.TimerHandle] = {}

    def changed(task: TaskView) -> None:
        soon(task.project)

    def soon(project: str) -> None:
        if project not in due and server.has_open(project):
            loop = asyncio.get_running_loop()
            due[project] = loop.call_later(PAUSE_SECONDS, write, project)

    def write(project: str) -> None:
        due.pop(project, None)
        file = Path(project) / DESK
        if server.editor.ours and not file.exists() and server.document(uri_of(project, DESK)) is None:
            return
        with contextlib.suppress(OSError):
            _write(file, desk_text(server, project))

    def opened(params: types.DidOpenTextDocumentParams) -> None:
        project = _project(params.text_document.uri)
        if project is not None:
            soon(project)

    def actions(params: types.CodeActionParams) -> list[Action]:
        project = _project(params.text_document.uri)
        text = server.document(params.text_document.uri)
        if project is None or text is None:
            return []
        lines = text.split("\n")[params.range.start.line : params.range.end.line + 1]
        numbers = dict.fromkeys(int(number[1]) for line in lines if (number := NUMBER.search(line)))
        tasks = [task for number in numbers if (task := server.mirror.task(project, number)) is not None]
        found = [action for task in tasks for action in _actions(server, task, named=len(tasks) > 1)]
        new = Act(title="New task…", command="promptside.draftTask", args={"project": project})
        return [*found, *([action] if (action := drawn(server, new, KIND)) is not None else [])]

    def links(params: types.DocumentLinkParams) -> list[types.DocumentLink]:
        project = _project(params.text_document.uri)
        text = server.document(params.text_document.uri)
        if project is None or text is None:
            return []
        found = []
        for at, line in enumerate(text.split("\n")):
            number = NUMBER.search(line)
            task = server.mirror.task(project, int(number[1])) if number else None
            if number and task is not None:
                place = types.Range(
                    start=types.Position(at, number.start()), end=types.Position(at, number.end())
                )
                found.append(types.DocumentLink(range=place, target=uri_of(project, _document(task))))
        return found

    server.on_task.append(changed)
    on(server, types.TEXT_DOCUMENT_DID_OPEN, opened)
    give(server, types.TEXT_DOCUMENT_CODE_ACTION, actions, OPTIONS)
    give(server, types.TEXT_DOCUMENT_DOCUMENT_LINK, links)


def desk_text(server: Server, project: str) -> str:
    """The tasks page; below each task that waits, the path of its document."""
    page = tasks_page(server.mirror.tasks(project), Look(now=time.time(), unicode=True))
    lines = list(HEAD)
    for line in page.lines:
        lines.append(f"## {text_of(line)}" if line.ref.startswith("group/") else text_of(line))
        number = line.ref.removeprefix("task/")
        task = server.mirror.task(project, int(number)) if number.isdigit() else None
        if task is not None and task.waiting_for is not None:
            lines.append(f"      {_document(task)}")
    return "\n".join([*lines, ""])


def _actions(server: Server, task: TaskView, *, named: bool) -> list[Action]:
    reading = Reading(uri="", task=task, document=DESK, text="")
    where = {"project": task.project, "path": _document(task)}
    acts = [Act(title="Open its document", command="promptside.openFile", args=where)]
    acts += [act for act in document_acts(reading) if act.note_at is None and act.command]
    found = []
    for act in acts:
        title = f"#{task.id} {act.title}" if named else act.title
        action = drawn(
            server, Act(title=title, command=act.command, args=act.args, blocked=act.blocked), KIND
        )
        if action is not None:
            found.append(action)
    return found


def _document(task: TaskView) -> str:
    document = task.waiting_for.document if task.waiting_for is not None else None
    return document or f"{task.directory}/task.md"


def _project(uri: str) -> str | None:
    file = path_of(uri)
    return str(file.parents[1]) if file is not None and file.as_posix().endswith(f"/{DESK}") else None


def _write(file: Path, text: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        if file.read_text("utf-8") == text:
            return
    file.parent.mkdir(exist_ok=True)
    beside = file.with_name(".DESK.md.new")
    beside.write_text(text, "utf-8")
    beside.replace(file)
