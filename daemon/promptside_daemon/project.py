"""One project in the daemon: its store, loop and world, and the orders that need more than the engine.

What an order depends on outside the task (a document, settings, files) is read here, before it is decided.
"""

from __future__ import annotations

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

from promptside_daemon import settings as settings_files
from promptside_daemon import trust
from promptside_daemon.engine.decide import Given
from promptside_daemon.engine.events import TaskCreated
from promptside_daemon.engine.gate import Sheet
from promptside_daemon.engine.pipeline import Pipeline
from promptside_daemon.engine.task import FormState, Passed, Person, Task
from promptside_daemon.engine.view import Places, view
from promptside_daemon.loop import Loop
from promptside_daemon.pipelines import find
from promptside_daemon.rpc.who import Who
from promptside_daemon.settings import Settings
from promptside_daemon.store.project import ProjectStore
from promptside_daemon.store.registry import ProjectRow
from promptside_daemon.store.rows import TaskRow
from promptside_daemon.trust import Trusted
from promptside_daemon.world import rehearsal
from promptside_daemon.world.activity import Activities
from promptside_daemon.world.documents import find_form, write_json
from promptside_daemon.world.follow import Follower
from promptside_daemon.world.project import World
from promptside_protocol import paths
from promptside_protocol.commands import (
    Ack,
    Answer,
    Approve,
    EditDraft,
    NewTask,
    SendAnswers,
    StageCommand,
    UndoFiles,
)
from promptside_protocol.errors import PromptsideError, refused
from promptside_protocol.views import TaskView, TrustView

log = logging.getLogger(__name__)

TITLE_LIMIT = 500
DESCRIPTION_LIMIT = 8 * 1024 * 1024
_decoder = msgspec.json.Decoder(Task)


class Project:
    """A registered directory, opened."""

    def __init__(self, row: ProjectRow, store: ProjectStore, follower: Follower) -> None:
        self.row = row
        self.root = Path(row.path)
        self.store = store
        self.directory = paths.project_dir(row.id)
        self.loop = Loop(store)
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
        )
        self.loop.acts = self.world
        self.places = Places(str(self.world.attempts))
        self._environments: dict[int, dict[str, str]] = {}

    @classmethod
    async def open(cls, row: ProjectRow, follower: Follower) -> Project:
        """Open its database; a fault in it concerns this project only."""
        directory = paths.project_dir(row.id)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        store = await ProjectStore.open(directory / "project.db")
        return cls(row, store, follower)

    async def start(self, changed: Callable[[], None]) -> None:
        """Take over what is open."""
        self.loop.changed = changed
        await self.refresh_rules()
        await self.loop.start()
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
        trusted = self.trust().state == "trusted"
        return settings_files.load(self.root, trusted=trusted).settings

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

    def environment(self, task: int) -> dict[str, str]:
        """Of the client that gave the newest order for the task, else the project's last (DA-10)."""
        if task in self._environments:
            return self._environments[task]
        for name in (f"environment-{task}.json", "environment.json"):
            with contextlib.suppress(OSError, msgspec.DecodeError):
                return msgspec.json.decode((self.directory / name).read_bytes(), type=dict[str, str])
        return {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG", "USER", "SHELL")}

    def _remember(self, task: int, environment: Mapping[str, str]) -> None:
        """Kept beside the attempts in files that only the owner reads, never in a database."""
        if not environment or self._environments.get(task) == dict(environment):
            return
        self._environments[task] = dict(environment)
        write_json(self.directory / f"environment-{task}.json", dict(environment))
        write_json(self.directory / "environment.json", dict(environment))

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
        self._remember(number, who.environment)
        conflicts: tuple[str, ...] = ()
        if isinstance(command, UndoFiles):
            conflicts = await self._conflicts(number, command)
        by = Person(user=who.user, client=who.client)

        def given(task: Task) -> Given:
            return Given(
                at=time.time(),
                by=by,
                limits=self.settings().limits,
                sheet=self._sheet(task, command),
                conflicts=conflicts,
                clock=_clock(task),
            )

        if isinstance(command, Approve):
            await self._notice_changes(number)
        ack = await self.loop.order(number, command, given)
        await self.refresh_rules()
        return ack

    async def create(self, command: NewTask, who: Who) -> Ack:
        """A new task, with the pipeline as it is now."""
        title = " ".join(command.title.split())
        if not title:
            raise refused("no-title", "A task needs a title.", "promptside task new “Add a login”")
        if len(command.description) > DESCRIPTION_LIMIT:
            raise refused("too-large", f"The description is longer than {DESCRIPTION_LIMIT >> 20} MB.")
        settings = self.settings()
        agent = _agent(command.agent or settings.agent.default)
        pipeline = self._pipeline(command.pipeline)
        at, by = time.time(), Person(user=who.user, client=who.client)

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

        ack = await self.loop.create(command.key, creation)
        self._remember(ack.task, who.environment)
        return ack

    def _pipeline(self, name: str) -> Pipeline:
        trusted = self.trust().state in ("trusted", "none_needed")
        wanted = name or self.settings().pipeline.default
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

    def _gate_form(self, task: Task, stage: str) -> FormState | None:
        if stage:
            index = task.pipeline.index(stage)
            return task.stages[index].form if index >= 0 else None
        voided = next((r for r in task.stages if isinstance(r.status, Passed) and r.status.void), None)
        current = task.run
        if current is not None and current.form is not None:
            return current.form
        return voided.form if voided is not None else None

    def _answered(self, task: Task, command: Answer) -> dict[str, Any]:
        """The answer of the terminal as the document has it; refused answers are for the engine to refuse."""
        from promptside_daemon.engine.reply import reply_to  # noqa: PLC0415  # the engine's own words

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
            for event in self.world.changed_artifacts(task):
                self.loop.observe(number, event)


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
