"""`.promptside/DESK.md`: the list of tasks as a file, for editors that don't know us (UX 5).

Written here only, with the lines of every other tasks page; what stands in it decides nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import time
from pathlib import Path

from lsprotocol import types
from msgspec.structs import replace

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
DOCUMENT = re.compile(r"(?<=^ {6})(?:\S.*/\.promptside/)?tasks/.+$")
"""The line of a document, below its task: relative to this file, so that an editor's “open the file under the
cursor” finds it; of another project absolute."""
ELSEWHERE = "Waiting in other projects"
HEAD = (
    "# Tasks",
    "",
    "> Put the cursor on a task and ask for code actions. This file is written by Promptside.",
    "",
)


def register(server: Server) -> None:
    """Keep the file, and answer for actions and links in it."""
    due: dict[str, asyncio.TimerHandle] = {}

    def changed(*_: object) -> None:
        for project in server.mirror.projects():
            if server.mirror.tasks(project) or (Path(project) / DESK).exists():
                soon(project)

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
        chosen = range(params.range.start.line, params.range.end.line + 1)
        there = _tasks_in(server, project, text.split("\n"))
        tasks = {(task.project, task.id): task for at, task in there.items() if at in chosen}
        found = [a for task in tasks.values() for a in _actions(server, task, named=len(tasks) > 1)]
        new = Act(title="New task…", command="promptside.newTask", args={"project": project})
        return [*found, *([action] if (action := drawn(server, new, KIND)) is not None else [])]

    def links(params: types.DocumentLinkParams) -> list[types.DocumentLink]:
        project = _project(params.text_document.uri)
        text = server.document(params.text_document.uri)
        if project is None or text is None:
            return []
        found = []
        lines = text.split("\n")
        codec = server.workspace.position_codec
        for at, task in _tasks_in(server, project, lines).items():
            named = NUMBER.search(lines[at]) or DOCUMENT.search(lines[at])
            assert named is not None, "a line with a task names it"
            start, end = (codec.client_num_units(lines[at][:column]) for column in named.span())
            place = types.Range(start=types.Position(at, start), end=types.Position(at, end))
            target = server.seen_as(uri_of(task.project, _document(task)))
            found.append(types.DocumentLink(range=place, target=target))
        return found

    server.on_task.append(changed)
    server.on_gone.append(changed)
    server.on_folders.append(changed)
    on(server, types.TEXT_DOCUMENT_DID_OPEN, opened)
    give(server, types.TEXT_DOCUMENT_CODE_ACTION, actions, OPTIONS)
    give(server, types.TEXT_DOCUMENT_DOCUMENT_LINK, links)


def desk_text(server: Server, project: str) -> str:
    """The tasks page, and below it what waits in other projects, this window's first; with what waits its document."""
    look = Look(now=time.time(), unicode=True)
    lines = list(HEAD)
    for line in tasks_page(server.mirror.tasks(project), look).lines:
        lines.append(f"## {text_of(line)}" if line.ref.startswith("group/") else text_of(line))
        number = line.ref.removeprefix("task/")
        task = server.mirror.task(project, int(number)) if number.isdigit() else None
        if task is not None and task.waiting_for is not None:
            lines.append(f"      {_beside(task)}")
    if not server.mirror.tasks(project):
        lines = [*HEAD, "No task yet. The code action “New task…” begins one."]
    others = [task for task in server.waiting() if task.project != project]
    if others:
        lines.append(f"## {ELSEWHERE} ({len(others)})")
    for task in others:
        shown = [one for one in tasks_page([task], look).lines if one.ref.startswith("task/")]
        lines += [text_of(one) for one in shown]
        lines.append(f"      {task.project}/{_document(task)}")
    return "\n".join([*lines, ""])


def _tasks_in(server: Server, project: str, lines: list[str]) -> dict[int, TaskView]:
    """By line, the task that it is about: by its number, of another project by the document in the line below."""
    found: dict[int, TaskView] = {}
    elsewhere = False
    for at, line in enumerate(lines):
        elsewhere = elsewhere or line.startswith(f"## {ELSEWHERE}")
        number, document = NUMBER.search(line), DOCUMENT.search(line)
        task: TaskView | None = None
        if document is not None:
            task = server.mirror.owner((Path(project) / DESK).parent / document[0])
        elif number is not None and not line.startswith("#"):
            below = DOCUMENT.search(lines[at + 1]) if elsewhere and at + 1 < len(lines) else None
            if not elsewhere:
                task = server.mirror.task(project, int(number[1]))
            elif below is not None:
                task = server.mirror.owner(Path(below[0]))
        if task is not None:
            found[at] = task
    return found


def _actions(server: Server, task: TaskView, *, named: bool) -> list[Action]:
    reading = Reading(uri="", task=task, document=DESK, text="")
    where = {"project": task.project, "path": _document(task)}
    acts = [Act(title="Open its document", command="promptside.openFile", args=where)]
    acts += [act for act in document_acts(reading) if act.note_at is None and act.command]
    found = []
    for act in acts:
        number = f"#{task.id} " if named else ""
        sure = f"{number}{act.sure}" if act.sure else ""
        action = drawn(server, replace(act, title=f"{number}{act.title}", sure=sure, primary=False), KIND)
        if action is not None:
            found.append(action)
    return found


def _beside(task: TaskView) -> str:
    return Path(_document(task)).relative_to(Path(DESK).parent).as_posix()


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
    # Where nothing is part of the project's tree: an agent at work would seem to have made a file beside it.
    beside = file.with_name("tasks") / f".DESK.md.{os.getpid()}"
    beside.parent.mkdir(parents=True, exist_ok=True)
    beside.write_text(text, "utf-8")
    beside.replace(file)
