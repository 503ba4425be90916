"""One project in the daemon: its store, loop and world, and the orders that need more than the engine.

What an order depends on outside the task (a document, settings, files) is read here, before it is decided.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import time
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from promptside_daemon import seen, trust
from promptside_daemon import settings as settings_files
from promptside_daemon.buffers import Buffers
from promptside_daemon.engine import gate
from promptside_daemon.engine.events import TaskCreated
from promptside_daemon.engine.gate import Sheet, Untold
from promptside_daemon.engine.given import Given, Terminal
from promptside_daemon.engine.history import last_of_attempt, versions
from promptside_daemon.engine.pipeline import Limits, Pipeline
from promptside_daemon.engine.reply import reply_to
from promptside_daemon.engine.standing import after_approval
from promptside_daemon.engine.task import (
    Attempt,
    Failure,
    FormState,
    Passed,
    Person,
    Queued,
    RetryDue,
    Task,
    live_attempt,
)
from promptside_daemon.engine.view import Places, view
from promptside_daemon.loop import DOCUMENT_SECONDS, Loop
from promptside_daemon.pipelines import find
from promptside_daemon.rpc.who import Who
from promptside_daemon.settings import Settings
from promptside_daemon.store.project import ProjectStore
from promptside_daemon.store.registry import ProjectRow
from promptside_daemon.store.rows import JournalRow, TaskRow
from promptside_daemon.trust import Trusted
from promptside_daemon.world import rehearsal
from promptside_daemon.world import terminal as terminals
from promptside_daemon.world.activity import Activities
from promptside_daemon.world.documents import find_form, write_json
from promptside_daemon.world.follow import Follower
from promptside_daemon.world.project import World
from promptside_protocol import forms, paths, queries
from promptside_protocol.commands import (
    Ack,
    Allow,
    Answer,
    Approve,
    Deny,
    EditDraft,
    GiveBack,
    GoBack,
    NewTask,
    Redo,
    Resume,
    Retry,
    Run,
    SendAnswers,
    Skip,
    StageCommand,
    StartCommand,
    TakeBack,
    TakeOver,
    UndoFiles,
)
from promptside_protocol.errors import PromptsideError, refused
from promptside_protocol.queries import DocumentView, Seen
from promptside_protocol.views import TaskView, TrustView

log = logging.getLogger(__name__)

TITLE_LIMIT = 500
DESCRIPTION_LIMIT = 8 * 1024 * 1024
ENVIRONMENT = "environment-{}.json"
_STARTS = (
    Run | Approve | TakeBack | Redo | Retry | Skip | GoBack | Resume | Answer | SendAnswers | Allow | Deny
)
"""Orders after which an agent may start."""
_LIMITED = Run | Redo | Retry | Resume
"""Orders that bring the limits which hold now."""
_decoder = msgspec.json.Decoder(Task)


class Project:
    """A registered directory, opened."""

    def __init__(self, row: ProjectRow, store: ProjectStore, follower: Follower, buffers: Buffers) -> None:
        self.row = row
        self.root = Path(row.path)
        self.store = store
        self.directory = paths.project_dir(row.id)
        self.loop = Loop(store)
        self._buffers = buffers
        self.activities = Activities(row.path)
        self.activities.place = self._place
        self.world = World(
            root=self.root,
            directory=self.directory,
            loop=self.loop,
            follower=follower,
            settings=self.settings,
            trusted=lambda: self.trust().state in ("trusted", "none_needed"),
            environment=self.environment,
            activities=self.activities,
            unsaved=buffers.by_file,
        )
        self.loop.acts = self.world
        self.places = Places(str(self.world.attempts))
        self._environments: dict[int, dict[str, str]] = {}
        self._last_environment: dict[str, str] = {}
        self._ordering: list[int] = []

    @classmethod
    async def open(cls, row: ProjectRow, follower: Follower, buffers: Buffers) -> Project:
        """Open its database; a fault in it concerns this project only."""
        directory = paths.project_dir(row.id)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        store = await ProjectStore.open(directory / "project.db")
        return cls(row, store, follower, buffers)

    async def start(self, changed: Callable[[], None]) -> None:
        """Take over what is open."""

        def committed() -> None:
            self._forget_environments()
            changed()

        self.loop.changed = committed
        await self.refresh_rules()
        await self.loop.start()
        with contextlib.suppress(
            TimeoutError
        ):  # what a crash left unwritten is there before clients are told
            await asyncio.wait_for(self.world.writer.idle(), DOCUMENT_SECONDS)
        self._environments = await asyncio.to_thread(self._read_environments)
        self._forget_environments()
        for task in self.loop.open_tasks():
            self.world.watch(task)

    async def close(self) -> None:
        """Finish what was taken; agents at work go on."""
        await self.loop.stop()
        await self.world.close()
        await self.store.close()

    # --- what holds here ------------------------------------------------------------------------------------

    def settings(self) -> Settings:
        """The settings in force now."""
        return self._settings().settings

    def _settings(self) -> settings_files.Read:
        return settings_files.load(self.root, trusted=self.trust().state == "trusted")

    def trust(self) -> TrustView:
        """Whether what this project brings of its own is what the person trusted."""
        return trust.state(trust.inventory(self.root), self.trusted())

    def trusted(self) -> Trusted | None:
        """What the person trusted."""
        if not self.row.trusted_hash:
            return None
        with contextlib.suppress(msgspec.DecodeError):
            return msgspec.json.decode(self.row.trusted_hash, type=Trusted)
        return None

    async def refresh_rules(self) -> None:
        """Bring the rules given for good to where permissions are judged."""
        self.world.rules = tuple(rule.rule for rule in await self.store.rules())

    # --- environments (DA-10) -----------------------------------------------------------------------------

    def environment(self, task: int) -> dict[str, str]:
        """Of the client that gave the newest order to go on with the task, else the project's last."""
        usual = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG", "USER", "SHELL")}
        return self._environments.get(task) or self._last_environment or usual

    async def _remember(self, task: int, environment: Mapping[str, str]) -> None:
        """Kept in a file that only the owner reads, for as long as something may start by itself."""
        self._last_environment = dict(environment) or self._last_environment
        if environment and self._environments.get(task) != environment:
            self._environments[task] = dict(environment)
            file = self.directory / ENVIRONMENT.format(task)
            await asyncio.to_thread(write_json, file, dict(environment))

    def _forget_environments(self) -> None:
        """Remove what no attempt will need: the next order brings its own."""
        for number in list(self._environments):
            task = self.loop.task(number)
            if number not in self._ordering and (task is None or not _goes_on(task)):
                del self._environments[number]
                (self.directory / ENVIRONMENT.format(number)).unlink(missing_ok=True)

    def _read_environments(self) -> dict[int, dict[str, str]]:
        """What the daemon before this one kept."""
        found: dict[int, dict[str, str]] = {}
        for file in self.directory.glob(ENVIRONMENT.format("*")):
            number = file.stem.rpartition("-")[2]
            with contextlib.suppress(OSError, msgspec.DecodeError, ValueError):
                found[int(number)] = msgspec.json.decode(file.read_bytes(), type=dict[str, str])
        return found

    def _place(self, task: int, attempt: str) -> tuple[str, int]:
        known = self.loop.task(task)
        if known is not None:
            for run in known.stages:
                for one in run.attempts:
                    if one.id == attempt:
                        return run.id, one.n
        return "", 0

    # --- views ----------------------------------------------------------------------------------------------

    def view(self, row: TaskRow) -> TaskView:
        """A stored task as clients see it."""
        return view(_decoder.decode(row.body), row.seq, self.places)

    async def number(self, wanted: int) -> int:
        """0 is `@`: the only open task, else the one that changed last."""
        if wanted:
            return wanted
        opened = await self.store.open_tasks()
        if len(opened) == 1:
            return opened[0].id
        newest = await self.store.tasks(limit=1)
        if not newest:
            raise refused("no-task", "There is no task here yet.", "promptside task new “…”")
        return newest[0].id

    # --- orders ---------------------------------------------------------------------------------------------

    async def order(self, command: StageCommand, who: Who) -> Ack:
        """One order for one task."""
        number = await self.number(command.task)
        conflicts: tuple[str, ...] = ()
        limits = Limits()
        if isinstance(command, UndoFiles):
            conflicts = await self._conflicts(number, command)
        if isinstance(command, _LIMITED):
            limits = (await asyncio.to_thread(self.settings)).limits
        if isinstance(command, Approve):
            await self._notice_changes(number)
        terminal = await self._terminal(number, command, who)
        by = _person(who)

        async def given(task: Task) -> Given:
            if isinstance(command, EditDraft) and command.answers:
                await self._not_overtaken(task, command, by)
            sheet = await asyncio.to_thread(self._sheet, task, command)
            untold = Untold()
            if isinstance(command, Redo):
                untold = await asyncio.to_thread(self._untold, task, command.feedback)
            if isinstance(command, Approve | SendAnswers):
                sheet = await self._since(task, sheet, command.shown)
            return Given(
                at=time.time(),
                by=by,
                limits=limits,
                sheet=sheet,
                untold=untold,
                conflicts=conflicts,
                unsaved=self._buffers.under(self.root) if isinstance(command, StartCommand) else (),
                terminal=terminal,
                clock=time.strftime("%H:%M") if isinstance(command, TakeOver) else _clock(task),
            )

        before = self._environments.get(number, {})
        self._ordering.append(number)
        try:
            if isinstance(command, _STARTS):
                await self._remember(number, who.environment)
            ack = await self.loop.order(number, command, given)
        except PromptsideError:
            if isinstance(command, _STARTS):
                await self._remember(number, before)
            raise
        finally:
            self._ordering.remove(number)
            self._forget_environments()
        if isinstance(command, Redo) and (task := self.loop.task(number)) is not None:
            await self.world.take_notes(task, command.feedback)
        if isinstance(command, Approve):
            after, _ = await self.loop.load(number)
            ack = msgspec.structs.replace(ack, said=f"Approved. {after_approval(after)}")
        return ack

    async def _terminal(self, number: int, command: StageCommand, who: Who) -> Terminal:
        """What is kept before a person goes on in a terminal, and found when they are back (ED-14)."""
        task = self.loop.task(number)
        if task is None:
            return Terminal()
        if isinstance(command, TakeOver):
            return await terminals.before(self.world, task, who.pid if command.holds else 0)
        if isinstance(command, GiveBack):
            return await terminals.after(self.world, task, who.pid, who.environment)
        return Terminal()

    async def in_terminal(self, number: int, who: Who) -> queries.Terminal:
        """What a person who took a task over runs in their terminal."""
        task, _ = await self.loop.load(number)
        if task.taken_over is None:
            raise refused("not-taken-over", f"Nobody works on “{task.title}” in a terminal.")
        session = task.taken_over.session
        found = await asyncio.to_thread(self.world.launcher.in_terminal, session, who.environment)
        if isinstance(found, Failure):
            raise refused("no-claude", found.sentence, found.hint)
        return found

    async def create(self, command: NewTask, who: Who) -> Ack:
        """A new task, with the pipeline as it is now."""
        title = " ".join(command.title.split())
        if not title:
            raise refused("no-title", "A task needs a title.", "promptside task new “Add a login”")
        if len(command.description) > DESCRIPTION_LIMIT:
            raise refused("too-large", f"The description is longer than {DESCRIPTION_LIMIT >> 20} MB.")
        settings, agent, pipeline = await asyncio.to_thread(self._made_of, command)
        at, by = time.time(), _person(who)

        def creation(number: int) -> TaskCreated:
            return TaskCreated(
                at=at,
                by=by,
                id=number,
                project=self.row.path,
                slug=slug(title),
                title=title[:TITLE_LIMIT],
                description=command.description,
                kind=command.kind,
                work_type=command.work_type,
                priority=command.priority,
                criteria=command.criteria,
                files=command.files,
                agent=agent,
                pipeline=pipeline,
                limits=settings.limits,
                draft=command.draft,
            )

        self._last_environment = dict(who.environment) or self._last_environment
        return await self.loop.create(command.key, creation)

    def _made_of(self, command: NewTask) -> tuple[Settings, str, Pipeline]:
        """What the files say that a new task begins with."""
        read = self._settings()
        settings, own = read.settings, read.of_project
        agent: str = settings.agent.default
        pipeline = settings.pipeline.default
        if "agent.default" not in own:
            agent = command.usual_agent or agent
        if "pipeline.default" not in own:
            pipeline = command.usual_pipeline or pipeline
        return settings, _agent(command.agent or agent), self._pipeline(command.pipeline or pipeline)

    def _pipeline(self, wanted: str) -> Pipeline:
        trusted = self.trust().state in ("trusted", "none_needed")
        loaded = find.find(wanted, self.root if trusted else None)
        if loaded.pipeline is not None and (loaded.origin != "project" or trusted):
            return loaded.pipeline
        if not trusted and (loaded.origin == "project" or find.find(wanted, self.root).pipeline is not None):
            raise refused("untrusted", self.trust().sentence, "promptside trust --show")
        fault = loaded.faults[0]
        place = f"{fault.file}:{fault.line}: " if fault.file else ""
        raise refused("pipeline", f"{place}{fault.message}", fault.hint or "promptside pipeline check")

    def _sheet(self, task: Task, command: StageCommand) -> Sheet | None:
        """The form document that an order is about, as it is at this moment."""
        documents = self.world.documents
        match command:
            case Approve(answers=answers, stage=stage):
                form = self._gate_form(task, stage)
                return documents.sheet(task, form, answers) if form is not None else None
            case SendAnswers(answers=answers) if task.questions is not None:
                return documents.sheet(task, task.questions, answers)
            case Answer() if task.questions is not None:
                return documents.sheet(task, task.questions, self._answered(task, command))
            case EditDraft(document=document, answers=answers, text=text):
                form = find_form(task, document)
                if form is None:
                    return None
                if 0 <= command.version < form.version and text is not None:
                    raise refused(
                        "changed-elsewhere",
                        "The document was changed elsewhere after you opened it. Look again.",
                        f"promptside open {task.id}",
                    )
                return documents.sheet(task, form, answers, text)
            case _:
                return None

    async def _not_overtaken(self, task: Task, command: EditDraft, by: Person) -> None:
        """Refuse answers to what somebody else has answered otherwise since the version they are based on (M10)."""
        form = find_form(task, command.document)
        if form is None or command.version in (-1, form.version):
            return
        rows = await self.store.facts_of(task.id)
        said = await asyncio.to_thread(seen.overtaken, rows, form, command, by)
        if said:
            raise refused("changed-elsewhere", f"{said} Look again.", f"promptside open {task.id}")

    def _gate_form(self, task: Task, stage: str) -> FormState | None:
        run = gate.waiting(task, stage)
        return run.form if run is not None else None

    def _untold(self, task: Task, words: str) -> Untold:
        """What the person wrote to the agent into the document that waits (UX 2.2)."""
        form = task.run.form if task.run is not None else None
        return self.world.documents.without_notes(task, form, words) if form is not None else Untold()

    async def _since(self, task: Task, sheet: Sheet | None, shown: str) -> Sheet | None:
        """For an order that shows an older draft: what others did since, and what differs (M10)."""
        form = find_form(task, sheet.document) if sheet is not None else None
        if sheet is None or form is None or shown in ("", sheet.shown, sheet.before):
            return sheet
        rows = await self.store.facts_of(task.id)
        return await asyncio.to_thread(self._compared, task, form, sheet, shown, rows)

    def _compared(
        self, task: Task, form: FormState, sheet: Sheet, shown: str, rows: list[JournalRow]
    ) -> Sheet:
        since = seen.version_with(rows, form.document, shown)
        if not since:
            words = sheet.difference or seen.answers_in_words(form)
            return msgspec.structs.replace(sheet, difference=words)
        before = self.world.documents.draft(task, since[0].form)
        now = self.world.documents.draft(task, form)
        return msgspec.structs.replace(
            sheet,
            since=tuple(change.sentence for change in seen.changes(since)),
            difference=sheet.difference or forms.difference(form.definition, now, before),
        )

    async def seen(self, task: Task, document: str, shown: str) -> Seen | None:
        """The version of a form that a client saw, if it is known, and what came after it."""
        rows = await self.store.facts_of(task.id)
        return await asyncio.to_thread(lambda: seen.seen(seen.version_with(rows, document, shown)))

    async def document(self, task: Task, stage: str, attempt: Attempt) -> DocumentView:
        """What an attempt left as its document."""
        rows = await self.store.facts_of(task.id)
        return await asyncio.to_thread(self._left, task, stage, attempt, rows)

    async def original(self, task: Task, form: FormState, text: str) -> str:
        """What an agent handed over as a text that a person has changed since; empty if nobody has."""
        if form.version == 0 and forms.shown(form.definition, text) == form.shown:
            return ""
        rows = await self.store.facts_of(task.id)
        return await asyncio.to_thread(self._handed_over, task, form, text, rows)

    def _handed_over(self, task: Task, form: FormState, text: str, rows: list[JournalRow]) -> str:
        found = versions(seen.events_of(rows), form.document)
        first = next((v.form for v in found if v.form.attempt == form.attempt), form)
        original = self.world.documents.draft(task, first)
        same = forms.shown(form.definition, original) == forms.shown(form.definition, text)
        return "" if same else original

    def _left(self, task: Task, stage: str, attempt: Attempt, rows: list[JournalRow]) -> DocumentView:
        found = last_of_attempt(seen.events_of(rows), stage, attempt.n)
        if found is None:
            name = task.pipeline.stages[task.pipeline.index(stage)].name
            raise refused("no-document", f"Attempt {attempt.n} of {name} left no document.")
        return DocumentView(
            stage=stage,
            attempt=attempt.n,
            document=found.form.document,
            kind=str(found.form.definition.__struct_config__.tag),
            text=self.world.documents.left(task, found.form, attempt.id),
            approved=found.approved,
        )

    def _answered(self, task: Task, command: Answer) -> dict[str, Any]:
        """The answer of the terminal as the document has it; refused answers are for the engine to refuse."""
        asked = next((d for d in task.decisions if d.id == command.decision), None)
        if asked is None or asked.kind == "permission":
            return {}
        try:
            return {asked.id: reply_to(asked, command)[0]}
        except PromptsideError:
            return {}

    async def _conflicts(self, number: int, command: UndoFiles) -> tuple[str, ...]:
        task, _ = await self.loop.load(number)
        index = min(task.current, len(task.stages) - 1)
        stage = command.stage or task.stages[index].id
        index = task.pipeline.index(stage)
        if index < 0:
            return ()
        attempts = task.stages[index].attempts
        n = command.attempt or (attempts[-1].n if attempts else 0)
        return await self.world.conflicts(task, stage, n, command.paths)

    async def _notice_changes(self, number: int) -> None:
        """Approved documents that changed are noticed before anything is approved on top of them."""
        task = self.loop.task(number)
        if task is not None:
            await self.world.notice(task)


def _person(who: Who) -> Person:
    return Person(user=who.user, client=who.client, process=who.pid)


def _goes_on(task: Task) -> bool:
    """Whether an attempt runs, or starts without another order."""
    waits = task.run is not None and isinstance(task.run.status, Queued | RetryDue)
    return waits or live_attempt(task) is not None


def _agent(wanted: str) -> str:
    """An agent that there is; a rehearsal may name its directory."""
    name, _, place = wanted.partition(":")
    if name in ("rehearsal", "rehearsal-fast"):
        if place and not rehearsal.place(place).is_dir():
            raise refused("no-rehearsal", f"There is no rehearsal {place}.", "Shipped: standard")
        return wanted
    if wanted == "claude":
        return wanted
    if wanted == "promptside":
        raise refused("no-agent", "Promptside's own agent comes with a later version.", "--agent claude")
    raise refused("no-agent", f"There is no agent {wanted}.", "claude, rehearsal or rehearsal:DIRECTORY")


def slug(title: str) -> str:
    """A title as part of a file name: ASCII, lower case, at most 40 characters, never empty."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    words = re.findall(r"[a-z0-9]+", plain)
    text = ""
    for word in words:
        if len(text) + len(word) + 1 > 40:
            break
        text = f"{text}-{word}" if text else word
    return text or "task"


def _clock(task: Task) -> str:
    """When the newest approval was given, in local time, for refusals (M6)."""
    times = [r.status.at for r in task.stages if isinstance(r.status, Passed)]
    return time.strftime("%H:%M", time.localtime(max(times))) if times else ""
