"""What clients may ask, and where each answer comes from; asking changes nothing."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from promptside_daemon import doctor, retention, unsaved
from promptside_daemon.engine.task import FormState, Task
from promptside_daemon.engine.view import decision_view
from promptside_daemon.flows import find_attempt
from promptside_daemon.pipelines import find
from promptside_daemon.pipelines.load import Loaded
from promptside_daemon.project import Project
from promptside_daemon.rpc.who import Who
from promptside_daemon.store.registry import ProjectRow
from promptside_daemon.transcript import Transcript
from promptside_daemon.vocabulary import vocabulary
from promptside_daemon.world.checkpoint import CheckpointFailed, File
from promptside_daemon.world.documents import Documents, find_form
from promptside_protocol import PROTOCOL, __version__, forms, queries
from promptside_protocol.errors import Refusal, UnknownMethod, refused
from promptside_protocol.views import (
    Change,
    DaemonView,
    DecisionView,
    Doctor,
    FaultView,
    PipelineList,
    PipelineStageView,
    PipelineView,
    ProjectView,
    RuleView,
    TaskView,
    TrustView,
)

if TYPE_CHECKING:
    from promptside_daemon.daemon import Daemon

DIFF_BYTES = 8 * 1024 * 1024
"""Of a diff that is told; a frame holds a little more."""


class Answers:
    """Answers every query that opens no flow."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    async def to(self, query: queries.Query[Any], who: Who) -> object:
        """The answer; raises `Refused` where there is none."""
        match query:
            case queries.Projects():
                return await self._projects()
            case queries.FindProject(path=path):
                return await self._find_project(path)
            case queries.Tasks():
                return await self._tasks(query)
            case queries.GetTask(project=path, task=number):
                project = self._daemon.project(path)
                return await self._task(project, await project.number(number))
            case queries.GetForm():
                return await self._form(query)
            case queries.Hold(documents=documents):
                self._daemon.hold(who, documents)
                return queries.Nothing()
            case queries.Document():
                return await self._document(query)
            case queries.Decisions(project=path, task=number):
                return await self._decisions(self._daemon.project(path), number)
            case queries.Output():
                return await self._output(query)
            case queries.Diff():
                return await self._diff(query)
            case queries.FileAt():
                return await self._file_at(query)
            case queries.Rules(project=path):
                return await self._rules(self._daemon.project(path))
            case queries.Pipelines(project=path):
                return await asyncio.to_thread(_pipelines, Path(path) if path else None)
            case queries.GetPipeline(name=name, project=path):
                return await asyncio.to_thread(_pipeline, name, Path(path) if path else None)
            case queries.CheckPipeline(name=name, project=path):
                loaded = await asyncio.to_thread(find.find, name, Path(path) if path else None)
                return loaded.faults
            case queries.CheckText():
                return await asyncio.to_thread(unsaved.check, query)
            case queries.Vocabulary(project=path):
                return await asyncio.to_thread(vocabulary, Path(path) if path else None)
            case queries.CopyPipeline():
                return await asyncio.to_thread(_copy, query)
            case queries.GetTerminal(project=path, task=number):
                return await self._daemon.project(path).in_terminal(number, who)
            case queries.GetTrust(project=path):
                return await asyncio.to_thread(self._trust, path)
            case queries.DoctorQuery(project=path):
                return await self._doctor(path, who)
            case queries.GetGarbage():
                return await retention.garbage(self._daemon)
            case queries.Unsaved(files=files):
                self._daemon.unsaved(who, files)
                return queries.Nothing()
            case queries.Status():
                return self._status()
            case _:
                kind = type(query).__name__
                raise UnknownMethod(Refusal(code="unknown", message=f"The daemon does not know {kind}."))

    async def _projects(self) -> tuple[ProjectView, ...]:
        views = [await self._project(p) for p in self._daemon.projects.values()]
        views += [_unusable(*broken) for broken in self._daemon.broken.values()]
        return tuple(sorted(views, key=lambda v: (v.added, v.path)))

    async def _find_project(self, path: str) -> ProjectView | None:
        row = await self._daemon.registry.holding(str(Path(path).resolve()))
        if row is None:
            return None
        if row.path in self._daemon.broken:
            return _unusable(*self._daemon.broken[row.path])
        return await self._project(self._daemon.project(row.path))

    async def _project(self, project: Project) -> ProjectView:
        counts = await project.store.counts()
        row = project.row
        state = (await asyncio.to_thread(project.trust)).state
        return ProjectView(
            id=row.id,
            name=row.name,
            path=row.path,
            added=row.added,
            waiting=counts.waiting,
            running=counts.running,
            tasks=counts.tasks,
            trust=state,
        )

    async def _tasks(self, query: queries.Tasks) -> tuple[TaskView, ...]:
        chosen = [self._daemon.project(query.project)] if query.project else self._daemon.projects.values()
        found: list[TaskView] = []
        for project in chosen:
            rows = await project.store.tasks(
                state=query.state, work_type=query.work_type, limit=query.limit, offset=query.offset
            )
            found += [project.view(row) for row in rows]
        return tuple(found)

    async def _task(self, project: Project, number: int) -> TaskView:
        row = await project.store.load(number)
        if row is None:
            raise refused("no-task", f"There is no task {number} in this project.", "promptside task list")
        return project.view(row)

    async def _form(self, query: queries.GetForm) -> queries.Form:
        project = self._daemon.project(query.project)
        number = await project.number(query.task)
        task, _ = await project.loop.load(number)
        form = find_form(task, query.document)
        if form is None:
            raise refused("no-document", "No form waits in this task.", f"promptside task show {number}")
        found = await asyncio.to_thread(_form, project.world.documents, task, form)
        if isinstance(form.definition, forms.TextDefinition):
            original = await project.original(task, form, found.text)
            found = msgspec.structs.replace(found, original=original)
        if query.shown in ("", found.shown):
            return found
        seen = await project.seen(task, form.document, query.shown)
        return msgspec.structs.replace(found, seen=seen)

    async def _document(self, query: queries.Document) -> queries.DocumentView:
        project = self._daemon.project(query.project)
        number = await project.number(query.task)
        stage, attempt = await find_attempt(project, number, query.stage, query.attempt)
        task, _ = await project.loop.load(number)
        return await project.document(task, stage, attempt)

    async def _decisions(self, project: Project, number: int) -> tuple[DecisionView, ...]:
        task, _ = await project.loop.load(await project.number(number))
        return tuple(decision_view(d) for d in task.decisions)

    async def _output(self, query: queries.Output) -> queries.OutputPage:
        project = self._daemon.project(query.project)
        number = await project.number(query.task)
        stage, attempt = await find_attempt(project, number, query.stage, query.attempt)
        return await asyncio.to_thread(_page, project, query, stage, attempt)

    async def _diff(self, query: queries.Diff) -> queries.DiffView:
        project = self._daemon.project(query.project)
        number = await project.number(query.task)
        stage, attempt = await find_attempt(project, number, query.stage, query.attempt)
        task, _ = await project.loop.load(number)
        patch = await project.world.diff(task, stage, attempt.n)
        changes = await project.world.changed_now(task, stage, attempt.n)
        return queries.DiffView(
            stage=stage,
            attempt=attempt.n,
            changes=tuple(
                Change(path=c.path, kind=c.kind, added=c.added_lines, removed=c.removed_lines)
                for c in changes
            ),
            diff=_cut(patch).decode("utf-8", "replace"),
        )

    async def _file_at(self, query: queries.FileAt) -> queries.FileView:
        project = self._daemon.project(query.project)
        number = await project.number(query.task)
        stage, attempt = await find_attempt(project, number, query.stage, query.attempt)
        task, _ = await project.loop.load(number)
        try:
            found = await project.world.file_at(task, stage, attempt.n, query.path, query.side)
        except CheckpointFailed as error:
            raise refused("gone", f"{str(error)[:1].upper()}{str(error)[1:]}.") from error
        return _file_view(query, stage, attempt.n, found)

    async def _rules(self, project: Project) -> tuple[RuleView, ...]:
        return tuple(
            RuleView(id=r.id, rule=r.rule, task=r.task, stage=r.stage, by=r.by, client=r.client, at=r.at)
            for r in await project.store.rules()
        )

    def _trust(self, path: str) -> TrustView:
        return self._daemon.project(path).trust()

    async def _doctor(self, path: str, who: Who) -> Doctor:
        project = self._daemon.projects.get(str(Path(path).resolve())) if path else None
        broken = {path: refusal for path, (_, refusal) in self._daemon.broken.items()}
        return await doctor.examine(project, who.environment, broken)

    def _status(self) -> DaemonView:
        service = self._daemon.service
        return DaemonView(
            pid=os.getpid(),
            version=__version__,
            protocol=PROTOCOL,
            uptime_s=time.time() - service.started,
            attempts=tuple(a for p in self._daemon.projects.values() for a in p.loop.live()),
            clients=service.clients(),
            log=str(service.log_path),
        )


def _cut(patch: bytes) -> bytes:
    """A diff that a frame can hold, cut at a line; its own words say so."""
    if len(patch) <= DIFF_BYTES:
        return patch
    kept = patch[: patch.rindex(b"\n", 0, DIFF_BYTES) + 1]
    return kept + b"\\ %d more bytes: look with your own diff\n" % (len(patch) - len(kept))


def _file_view(query: queries.FileAt, stage: str, attempt: int, found: File) -> queries.FileView:
    kind: Literal["text", "binary", "absent", "large", "link", "repository"]
    text = ""
    match found.kind:
        case "file":
            try:
                text, kind = found.content.decode(), "text"
            except UnicodeDecodeError:
                kind = "binary"
            if b"\0" in found.content:
                text, kind = "", "binary"
        case "link":
            text, kind = found.content.decode("utf-8", "backslashreplace"), "link"
        case _:
            kind = found.kind
    return queries.FileView(
        stage=stage, attempt=attempt, path=query.path, side=query.side, kind=kind, text=text, bytes=found.size
    )


def _form(documents: Documents, task: Task, form: FormState) -> queries.Form:
    text = documents.draft(task, form)
    if isinstance(form.definition, forms.TextDefinition):
        text = documents.theirs(task, form) or text
    parsed = forms.parse(form.definition, text)
    lacking = forms.lacks(form.definition, parsed.answers)
    return queries.Form(
        document=form.document,
        version=form.version,
        text=text,
        shown=forms.shown(form.definition, text),
        satisfied=not lacking,
        lacks=tuple(lack.text for lack in lacking),
        problems=tuple(
            FaultView(
                file=form.document,
                line=p.line,
                column=1,
                message=p.text,
                severity="error" if p.severity == "error" else "warning",
            )
            for p in parsed.problems
            if p.severity in ("error", "warning")
        ),
        definition=msgspec.to_builtins(form.definition),
        answers=forms.to_plain(parsed.answers),
    )


def _unusable(row: ProjectRow, refusal: Refusal) -> ProjectView:
    return ProjectView(id=row.id, name=row.name, path=row.path, added=row.added, error=refusal.message)


def _page(project: Project, query: queries.Output, stage: str, attempt: Any) -> queries.OutputPage:
    transcript = Transcript.of(project, attempt, query.cursor)
    entries: list[Any] = []
    while len(entries) < max(query.limit, 1):
        more = transcript.read()
        if not more:
            break
        entries += more
    ended = attempt.live is None and len(entries) < max(query.limit, 1)
    if ended:
        entries += transcript.close()
    return queries.OutputPage(
        stage=stage, attempt=attempt.n, entries=tuple(entries), cursor=transcript.cursor, ended=ended
    )


def _pipelines(project: Path | None) -> PipelineList:
    found = find.list_all(project)
    return PipelineList(
        pipelines=tuple(v for loaded in found if (v := _view(loaded)) is not None),
        faults=tuple(fault for loaded in found for fault in loaded.faults),
    )


def _pipeline(name: str, project: Path | None) -> PipelineView:
    loaded = find.find(name, project)
    found = _view(loaded)
    if found is None:
        fault = loaded.faults[0]
        place = f"{fault.file}:{fault.line}: " if fault.file else ""
        raise refused("pipeline", f"{place}{fault.message}", fault.hint)
    return found


def _view(loaded: Loaded) -> PipelineView | None:
    pipeline = loaded.pipeline
    if pipeline is None:
        return None
    return PipelineView(
        name=pipeline.name,
        title=pipeline.title,
        version=pipeline.version,
        origin=pipeline.origin,
        path=str(loaded.file),
        stages=tuple(
            PipelineStageView(
                id=s.id,
                name=s.name,
                output=s.output,
                gate=msgspec.to_builtins(s.gate) if s.gate is not None else None,
                tools=s.tools,
                artifact=s.artifact or f"{i:02}-{s.id}.md",
                description=s.description,
                input=s.input,
                permission=s.permission,
                prompt=str(loaded.prompts.get(s.id, "")),
            )
            for i, s in enumerate(pipeline.stages, 1)
        ),
    )


def _copy(query: queries.CopyPipeline) -> queries.Path:
    if query.to not in ("project", "user"):
        raise refused("where", "A pipeline is copied to `project` or to `user`.")
    try:
        path = find.copy(
            query.name,
            "project" if query.to == "project" else "user",
            Path(query.project) if query.project else None,
            name=query.new_name,
        )
    except find.CopyError as error:
        raise refused("copy", str(error)) from error
    return queries.Path(path=str(path))
