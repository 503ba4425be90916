"""A new task by document: a form in `.promptside/drafts`, which an action turns into a task (UX 2.10, 5)."""

from __future__ import annotations

import re
import uuid
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
from lsprotocol import types

from promptside_protocol import forms
from promptside_protocol.commands import NewTask, Run
from promptside_protocol.errors import PromptsideError, refused
from promptside_protocol.forms import Field, FieldsAnswers, FieldsDefinition
from promptside_protocol.forms.form import kind_of
from promptside_protocol.forms.grammar import TICK, Page
from promptside_protocol.pages.plain import cut, one_line
from promptside_protocol.queries import Pipelines
from promptside_server.board import SOURCE, board
from promptside_server.context import Context, Place, context
from promptside_server.documents import documents, path_of, uri_of
from promptside_server.features.actions import ITEM_KIND, KIND, OPTIONS, Action, drawn, literals
from promptside_server.features.commands import offer
from promptside_server.features.diagnostics import SEVERITY
from promptside_server.features.notes import show
from promptside_server.offered import Act
from promptside_server.readonly import Shown
from promptside_server.server import Server
from promptside_server.shared import give, on
from promptside_server.target import project as default_project

DRAFTS = ".promptside/drafts"
OWNER = "draft"
DEFAULT = "as the settings say"
AGENT = "rehearsal:standard plays a recording of another task: no model, no cost."
AGENTS = (DEFAULT, "claude", "rehearsal:standard")
REHEARSAL = re.compile(r"^[-*+] \[[ xX]\] (rehearsal(?:-fast)?:\S.*?)\s*$", re.MULTILINE)
"""A recording of the person's own, written in place of the one that is offered."""
TITLE = 80
LENS = 90
"""How long what is still missing may be above the first line."""


def register(server: Server) -> None:
    """The command that makes a task of a draft; actions, lenses and diagnostics in it."""
    known = drafts(server)

    async def create(given: dict[str, Any]) -> int:
        return await known.create(str(given.get("uri") or server.protocol.active), run=bool(given.get("run")))

    async def opened(params: types.DidOpenTextDocumentParams) -> None:
        await known.publish(params.text_document.uri, anew=True)

    async def changed(params: types.DidChangeTextDocumentParams) -> None:
        await known.publish(params.text_document.uri)

    async def saved(params: types.DidSaveTextDocumentParams) -> None:
        known.made.pop(
            params.text_document.uri, None
        )  # its file is there again: it is a draft of something new
        await known.publish(params.text_document.uri)

    def closed(params: types.DidCloseTextDocumentParams) -> None:
        known.made.pop(params.text_document.uri, None)
        board(server).put(params.text_document.uri, OWNER, [])

    def moved(up: bool, _: str) -> None:
        if up:
            for document in server.workspace.text_documents.values():
                server.do(known.publish(document.uri))

    async def actions(params: types.CodeActionParams) -> list[Action]:
        uri = params.text_document.uri
        found = [drawn(server, act, KIND) for act in await known.acts(uri)]
        chosen = await known.choices(uri, params.range.start.line) if literals(server) else []
        return [*chosen, *(action for action in found if action is not None)]

    async def lenses(params: types.CodeLensParams) -> list[types.CodeLens]:
        at = types.Range(start=types.Position(0, 0), end=types.Position(0, 0))
        acts = await known.acts(params.text_document.uri)
        found = [
            types.Command(title=act.title, command=act.command, arguments=[act.args])
            for act in acts
            if act.blocked is None
        ]
        # There is a line from the start: one that came with the last word would move what is being typed.
        lacks = [types.Command(title=cut(act.blocked, LENS), command="") for act in acts[:1] if act.blocked]
        return [types.CodeLens(range=at, command=command) for command in found or lacks]

    offer(server, "createTask", create)
    on(server, types.TEXT_DOCUMENT_DID_OPEN, opened)
    on(server, types.TEXT_DOCUMENT_DID_CHANGE, changed)
    on(server, types.TEXT_DOCUMENT_DID_SAVE, saved)
    on(server, types.TEXT_DOCUMENT_DID_CLOSE, closed)
    server.on_link.append(moved)
    give(server, types.TEXT_DOCUMENT_CODE_ACTION, actions, OPTIONS)
    give(server, types.TEXT_DOCUMENT_CODE_LENS, lenses)


async def begin(server: Server, given: dict[str, Any], place: Place) -> Shown:
    """Write a draft with what is known already, and have it opened where the editor can."""
    root = str(given.get("project") or await default_project(server, place.uri))
    names = await drafts(server).pipelines(root, anew=True)
    pipeline = str(given.get("pipeline") or "")
    if pipeline and pipeline not in names:
        raise refused(
            "no-pipeline",
            f"There is no pipeline {pipeline} that can be used here.",
            f"One of {', '.join(names)}.",
        )
    source = context(server, place, root)
    title = str(given.get("title") or "") or next(iter(place.diagnostics), "")
    description = "\n\n".join(
        p for p in (str(given.get("description") or ""), source.text if source.says else "") if p
    )
    uri = _reserved(root)
    definition = definition_of(
        uri,
        names,
        title=cut(one_line(title), TITLE, unicode=True),
        description=description,
        files=_files(given, source),
        pipeline=pipeline,
        agent=str(given.get("agent") or ""),
    )
    file = path_of(uri)
    assert file is not None, "a draft is a file"
    file.write_text(forms.render(definition), "utf-8")
    seen = server.seen_as(uri)
    return Shown(uri=seen, shown=await show(server, seen, 5))  # below “Title”, where the first word goes


class Drafts:
    """The drafts of one editor."""

    def __init__(self, server: Server) -> None:
        self.made: dict[str, tuple[str, int]] = {}
        """Drafts that became tasks, while their buffers are open: nothing is made of them twice."""
        self._server = server
        self._keys: dict[str, str] = {}
        """By draft: what makes a retry the same task."""
        self._names: dict[str, tuple[str, ...]] = {}

    async def create(self, uri: str, *, run: bool) -> int:
        """Make the task that a draft describes; its file goes away."""
        project, text = project_of(uri), _text(self._server, uri)
        if uri in self.made:
            return self.made[uri][1]
        if project is None or text is None:
            raise refused("no-draft", "This is no draft of a task.", "Begin one with New Task….")
        definition = definition_of(uri, await self.pipelines(project), text)
        parsed = forms.parse(definition, text)
        broken = [p for p in parsed.problems if p.severity == "error"]
        if broken:
            raise refused("form-grammar", f"Line {broken[0].line} can't be read: {broken[0].text}")
        lacking = forms.lacks(definition, parsed.answers)
        if lacking:
            raise refused("gate-lacks", forms.together(lack.text for lack in lacking))
        assert isinstance(parsed.answers, FieldsAnswers), "a draft is a form of fields"
        values = forms.field_values(definition, parsed.answers)
        ordered = order(project, self._keys.setdefault(uri, uuid.uuid4().hex), values)
        ordered = msgspec.structs.replace(ordered, **self._server.preferred.of_a_task())
        ack = await self._server.link.call(ordered)
        self._keys.pop(uri, None)
        if self._server.document(uri) is not None:
            self.made[uri] = (project, ack.task)
        file = path_of(uri)
        if file is not None:
            file.unlink(missing_ok=True)
        await self.publish(uri)
        if not self._server.editor.ours:
            self._server.say(types.MessageType.Info, f"“{one_line(ordered.title)}” is task {ack.task} now.")
        if run:
            ack = await self._server.link.call(Run(project=project, task=ack.task))
        await self._server.mirrored(project, ack)
        return ack.task

    async def pipelines(self, project: str, *, anew: bool = False) -> tuple[str, ...]:
        """The names that a draft may choose from."""
        if anew or project not in self._names:
            listed = await self._server.link.call(Pipelines(project=project))
            self._names[project] = tuple(p.name for p in listed.pipelines)
        return self._names[project]

    async def publish(self, uri: str, *, anew: bool = False) -> None:
        """Say what can't be read in a draft, and what became of it."""
        project, text = project_of(uri), self._server.document(uri)
        if project is None or text is None or not self._server.link.up:
            return
        if uri in self.made:
            board(self._server).put(
                uri, OWNER, [self._said(text, 1, "information", "draft", self._became(uri))]
            )
            return
        try:
            names = await self.pipelines(project, anew=anew)
        except PromptsideError:
            return  # said elsewhere: the daemon is away
        text = self._server.document(uri)  # it may be another by now
        if text is None:
            return
        definition = definition_of(uri, names, text)
        found = [
            self._said(text, p.line, p.severity, p.code, p.text.replace("approve", "create"))
            for p in forms.parse(definition, text).problems
            if p.code != "gate-notes" and not (p.code == "gate-lacks" and p.line == 1)  # the lens says it
        ]
        board(self._server).put(uri, OWNER, found)

    async def acts(self, uri: str) -> list[Act]:
        """What can be done with a draft."""
        project, text = project_of(uri), self._server.document(uri)
        if project is None or text is None:
            return []
        if uri in self.made:
            where = {"project": self.made[uri][0], "task": self.made[uri][1]}
            return [Act(title=f"Open task {where['task']}", command="promptside.openTask", args=where)]
        definition = definition_of(uri, await self.pipelines(project), text)
        parsed = forms.parse(definition, text)
        lacking = [p.text for p in parsed.problems if p.severity == "error"]
        lacking += [lack.text for lack in forms.lacks(definition, parsed.answers)]
        blocked = forms.together(lacking) or None
        return [
            Act(title=title, command="promptside.createTask", args={"uri": uri, "run": run}, blocked=blocked)
            for title, run in (("Create task", False), ("Create and run", True))
        ]

    async def choices(self, uri: str, line: int) -> list[types.CodeAction]:
        """At a choice of which one is taken: the action that takes it, and unticks the one before (UX 2.4)."""
        project, text = project_of(uri), self._server.document(uri)
        if project is None or text is None or uri in self.made:
            return []
        definition = definition_of(uri, await self.pipelines(project), text)
        field = _chosen_at(definition, text, line)
        answers = forms.parse(definition, text).answers
        assert isinstance(answers, FieldsAnswers), "a draft is a form of fields"
        if field is None:
            return []
        values = {**answers.values, field[0]: field[1]}
        target = forms.apply(definition, text, FieldsAnswers(values=values))
        if target == text:
            return []  # it is chosen
        edit = types.WorkspaceEdit(changes={uri: documents(self._server).edits(uri, target)})
        return [types.CodeAction(title=f"Choose {field[1]}", kind=ITEM_KIND, edit=edit)]

    def _became(self, uri: str) -> str:
        return f"This draft became task {self.made[uri][1]}. Close it; saving it begins another draft."

    def _said(self, text: str, line: int, severity: str, code: str, words: str) -> types.Diagnostic:
        lines = text.split("\n")
        at = max(0, min(line, len(lines)) - 1)
        width = self._server.workspace.position_codec.client_num_units(lines[at])
        place = types.Range(start=types.Position(at, 0), end=types.Position(at, width))
        return types.Diagnostic(
            range=place, severity=SEVERITY[severity], code=code, source=SOURCE, message=words
        )


def definition_of(
    uri: str,
    pipelines: tuple[str, ...],
    text: str = "",
    *,
    title: str = "",
    description: str = "",
    files: tuple[str, ...] = (),
    pipeline: str = "",
    agent: str = "",
) -> FieldsDefinition:
    """The form of a draft, as far as it is not the same for all: which one it is stands in its name, a recording of
    the person's own in its text. The values are what it begins with."""
    file = path_of(uri)
    digits = "".join(letter for letter in (file.stem if file is not None else "") if letter.isdigit())
    chosen = pipeline or DEFAULT
    choices = (DEFAULT, *pipelines)
    agents = tuple(dict.fromkeys((*AGENTS, *REHEARSAL.findall(text), *([agent] if agent else []))))
    return FieldsDefinition(
        task=int(digits or 0),
        stage="draft",
        attempt=1,
        title="New task",
        sentence="Say what is to be done. Fields marked (required) must not be empty. Then create the task.",
        fields=(
            Field(key="title", label="Title", widget="line", required=True, value=title or None),
            Field(key="description", label="Description", required=True, value=description or None),
            Field(key="acceptance_criteria", label="Acceptance criteria", widget="bullets"),
            Field(key="affected_files", label="Affected files", widget="bullets", value=list(files) or None),
            Field(key="priority", label="Priority", widget="line", value="50"),
            Field(key="pipeline", label="Pipeline", widget="enum", choices=choices, value=chosen),
            Field(
                key="agent", label="Agent", widget="enum", hint=AGENT, choices=agents, value=agent or DEFAULT
            ),
        ),
    )


def project_of(uri: str) -> str | None:
    """The project of a draft; None if the file is none."""
    file = path_of(uri)
    inside = file is not None and file.parent.as_posix().endswith(f"/{DRAFTS}")
    return str(file.parents[2]) if file is not None and inside else None


def _chosen_at(definition: FieldsDefinition, text: str, line: int) -> tuple[str, str] | None:
    """The field and the choice that a line would tick."""
    words = text.split("\n")[line].rstrip("\r") if line < text.count("\n") + 1 else ""
    tick = TICK.match(words)
    sections = kind_of(definition).read(definition, Page(text)).found
    for field in definition.fields:
        section = sections.get(field.key)
        if tick and field.widget == "enum" and section is not None and section.start < line < section.end:
            return next(((field.key, choice) for choice in field.choices if choice == tick[4]), None)
    return None


def order(project: str, key: str, values: dict[str, Any]) -> NewTask:
    """The task that a draft describes."""
    priority = str(values["priority"] or "50")
    if not (priority.isascii() and priority.isdigit()):
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
        agent="" if values["agent"] in (None, DEFAULT) else values["agent"],
    )


def _reserved(root: str) -> str:
    """The uri of a draft that nobody else begins, also in another editor at this moment."""
    folder = Path(root) / DRAFTS
    folder.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        try:
            (folder / f"task-{number}.md").touch(exist_ok=False)
        except FileExistsError:
            number += 1
        else:
            return uri_of(root, f"{DRAFTS}/task-{number}.md")


def _files(given: dict[str, Any], source: Context) -> tuple[str, ...]:
    named = given.get("files")
    files = [str(one) for one in named] if isinstance(named, list | tuple) else []
    return tuple(dict.fromkeys([*files, *([source.where] if source.where else [])]))


def _text(server: Server, uri: str) -> str | None:
    text = server.document(uri)
    if text is None:
        file = path_of(uri)
        try:
            text = file.read_text("utf-8") if file is not None else None
        except OSError:
            return None
    return text


_drafts: WeakKeyDictionary[Server, Drafts] = WeakKeyDictionary()


def drafts(server: Server) -> Drafts:
    """The drafts of this editor."""
    found = _drafts.get(server)
    if found is None:
        found = _drafts[server] = Drafts(server)
    return found
