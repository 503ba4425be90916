"""A new task by document: a form in `.promptside/drafts`, which an action turns into a task (UX 2.10, 5)."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from lsprotocol import types

from promptside_protocol import forms
from promptside_protocol.commands import NewTask, Run
from promptside_protocol.errors import PromptsideError, refused
from promptside_protocol.forms import Field, FieldsAnswers, FieldsDefinition
from promptside_protocol.queries import Pipelines
from promptside_server.board import SOURCE, board
from promptside_server.documents import path_of, uri_of
from promptside_server.features.actions import KIND, OPTIONS, Action, drawn
from promptside_server.features.commands import offer
from promptside_server.features.diagnostics import SEVERITY
from promptside_server.features.notes import show
from promptside_server.offered import Act
from promptside_server.server import Server
from promptside_server.shared import give, on
from promptside_server.target import project as default_project

DRAFTS = ".promptside/drafts"
OWNER = "draft"
DEFAULT = "as the settings say"


def register(server: Server) -> None:
    """The commands that begin a draft and that make a task of it; actions, lenses and diagnostics in it."""
    keys: dict[str, str] = {}
    """By draft: what makes a retry the same task."""
    names: dict[str, tuple[str, ...]] = {}

    async def begin_one(given: dict[str, Any]) -> str:
        return await begin(server, str(given.get("project") or ""))

    async def create(given: dict[str, Any]) -> int:
        uri = str(given.get("uri") or server.protocol.active)
        project, text = _project(uri), _text(server, uri)
        if project is None or text is None:
            raise refused("no-draft", "This is no draft of a task.", "Begin one with New Task….")
        definition = definition_of(uri, await pipelines(project))
        parsed = forms.parse(definition, text)
        broken = [p for p in parsed.problems if p.severity == "error"]
        if broken:
            raise refused("form-grammar", f"Line {broken[0].line} can't be read: {broken[0].text}")
        lacking = forms.lacks(definition, parsed.answers)
        if lacking:
            raise refused("gate-lacks", " ".join(lack.text for lack in lacking))
        assert isinstance(parsed.answers, FieldsAnswers), "a draft is a form of fields"
        values = forms.field_values(definition, parsed.answers)
        ack = await server.link.call(order(project, keys.setdefault(uri, uuid.uuid4().hex), values))
        del keys[uri]
        file = path_of(uri)
        if file is not None:
            file.unlink(missing_ok=True)
        if given.get("run"):
            await server.link.call(Run(project=project, task=ack.task))
        return ack.task

    async def pipelines(project: str) -> tuple[str, ...]:
        if project not in names:
            listed = await server.link.call(Pipelines(project=project))
            names[project] = tuple(p.name for p in listed.pipelines)
        return names[project]

    async def publish(params: Any) -> None:
        uri = params.text_document.uri
        project, text = _project(uri), server.document(uri)
        if project is None or text is None:
            return
        try:
            definition = definition_of(uri, await pipelines(project))
        except PromptsideError:
            return  # said elsewhere: the daemon is away
        found = []
        lines = text.split("\n")
        for problem in forms.parse(definition, text).problems:
            if problem.code != "gate-notes":
                line = min(problem.line, len(lines)) - 1
                width = server.workspace.position_codec.client_num_units(lines[line])
                place = types.Range(start=types.Position(line, 0), end=types.Position(line, width))
                found.append(
                    types.Diagnostic(
                        range=place,
                        severity=SEVERITY[problem.severity],
                        code=problem.code,
                        source=SOURCE,
                        message=problem.text.replace("approve", "create"),
                    )
                )
        board(server).put(uri, OWNER, found)

    def closed(params: types.DidCloseTextDocumentParams) -> None:
        board(server).put(params.text_document.uri, OWNER, [])

    async def acts(uri: str) -> list[Act]:
        project, text = _project(uri), server.document(uri)
        if project is None or text is None:
            return []
        definition = definition_of(uri, await pipelines(project))
        parsed = forms.parse(definition, text)
        lacking = [p.text for p in parsed.problems if p.severity == "error"]
        lacking += [lack.text for lack in forms.lacks(definition, parsed.answers)]
        blocked = " ".join(lacking) or None
        return [
            Act(title=title, command="promptside.createTask", args={"uri": uri, "run": run}, blocked=blocked)
            for title, run in (("Create task", False), ("Create and run", True))
        ]

    async def actions(params: types.CodeActionParams) -> list[Action]:
        found = [drawn(server, act, KIND) for act in await acts(params.text_document.uri)]
        return [action for action in found if action is not None]

    async def lenses(params: types.CodeLensParams) -> list[types.CodeLens]:
        at = types.Range(start=types.Position(0, 0), end=types.Position(0, 0))
        return [
            types.CodeLens(
                range=at, command=types.Command(title=act.title, command=act.command, arguments=[act.args])
            )
            for act in await acts(params.text_document.uri)
            if act.blocked is None
        ]

    offer(server, "draftTask", begin_one)
    offer(server, "createTask", create)
    on(server, types.TEXT_DOCUMENT_DID_OPEN, publish)
    on(server, types.TEXT_DOCUMENT_DID_CHANGE, publish)
    on(server, types.TEXT_DOCUMENT_DID_CLOSE, closed)
    give(server, types.TEXT_DOCUMENT_CODE_ACTION, actions, OPTIONS)
    give(server, types.TEXT_DOCUMENT_CODE_LENS, lenses)


async def begin(server: Server, project: str = "") -> str:
    """Write an empty draft, have it opened where the editor can, and answer with its uri."""
    root = project or await default_project(server)
    listed = await server.link.call(Pipelines(project=root))
    folder = Path(root) / DRAFTS
    folder.mkdir(parents=True, exist_ok=True)
    number = 1
    while (folder / f"task-{number}.md").exists():
        number += 1
    uri = uri_of(root, f"{DRAFTS}/task-{number}.md")
    definition = definition_of(uri, tuple(p.name for p in listed.pipelines))
    (folder / f"task-{number}.md").write_text(forms.render(definition), "utf-8")
    await show(server, uri, 4)
    return uri


def definition_of(uri: str, pipelines: tuple[str, ...]) -> FieldsDefinition:
    """The form of a draft; which one is read off its name."""
    file = path_of(uri)
    digits = "".join(letter for letter in (file.stem if file is not None else "") if letter.isdigit())
    return FieldsDefinition(
        task=int(digits or 0),
        stage="draft",
        attempt=1,
        title="New task",
        fields=(
            Field(key="title", label="Title", widget="line", required=True),
            Field(key="description", label="Description", required=True),
            Field(key="acceptance_criteria", label="Acceptance criteria", widget="bullets"),
            Field(key="affected_files", label="Affected files", widget="bullets"),
            Field(key="priority", label="Priority", widget="line", value="50"),
            Field(
                key="pipeline", label="Pipeline", widget="enum", choices=(DEFAULT, *pipelines), value=DEFAULT
            ),
            Field(key="agent", label="Agent", widget="line"),
        ),
    )


def order(project: str, key: str, values: dict[str, Any]) -> NewTask:
    """The task that a draft describes."""
    priority = str(values["priority"] or "50")
    if not priority.isdigit():
        raise refused("priority", f"Priority is a number; “{priority}” is none.")
    chosen = values["pipeline"] or DEFAULT
    return NewTask(
        project=project,
        key=key,
        title=values["title"],
        description=values["description"] or "",
        pipeline="" if chosen == DEFAULT else chosen,
        priority=int(priority),
        criteria=tuple(values["acceptance_criteria"] or ()),
        files=tuple(values["affected_files"] or ()),
        agent=values["agent"] or "",
    )


def _project(uri: str) -> str | None:
    file = path_of(uri)
    inside = file is not None and file.parent.as_posix().endswith(f"/{DRAFTS}")
    return str(file.parents[2]) if file is not None and inside else None


def _text(server: Server, uri: str) -> str | None:
    text = server.document(uri)
    if text is None:
        file = path_of(uri)
        try:
            text = file.read_text("utf-8") if file is not None else None
        except OSError:
            return None
    return text
