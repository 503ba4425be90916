"""The one writer of a project: takes what was ordered and what happened, asks the engine, commits, then acts.

Everything that waits is drained at once and committed together. Nothing is acknowledged, and no effect is
begun, before its facts are on the disk.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec
from msgspec import Struct

from promptside_daemon.engine.decide import Given, decide
from promptside_daemon.engine.effects import Effect, KeepRule
from promptside_daemon.engine.events import AnyEvent, DaemonStarted, StepFailed, TaskCreated
from promptside_daemon.engine.slots import Want
from promptside_daemon.engine.step import born, step
from promptside_daemon.engine.task import Archived, Completed, Failed, Queued, Task, live_attempt
from promptside_daemon.engine.view import waiting_for
from promptside_daemon.store.project import ProjectStore
from promptside_daemon.store.rows import (
    Append,
    Appended,
    AttemptRow,
    Conflict,
    Existing,
    Fact,
    NewRule,
    Summary,
    TaskRow,
)
from promptside_protocol.commands import Ack, StageCommand
from promptside_protocol.errors import PromptsideError, refused

log = logging.getLogger(__name__)

CONFLICT_TRIES = 5
"""How often an order is decided again because another process wrote to the same task."""

_decoder = msgspec.json.Decoder(Task)


class Acts(Protocol):
    """What carries effects out; the daemon's world."""

    def act(self, task: Task, effects: tuple[Effect, ...]) -> None:
        """Begin the effects of a committed step; never waits for them."""


class _Order(Struct, kw_only=True):
    task: int
    decide: Callable[[Task], AnyEvent]
    answer: asyncio.Future[Ack]
    tries: int = 0


class _Creation(Struct, kw_only=True):
    key: str
    create: Callable[[int], TaskCreated]
    answer: asyncio.Future[Ack]
    tries: int = 0


class _Observation(Struct, kw_only=True):
    task: int
    event: AnyEvent
    tries: int = 0


_Item = _Order | _Creation | _Observation


class _Kept(Struct, kw_only=True):
    """A task as it is on the disk."""

    task: Task
    version: int
    seq: int


class _Stepped(Struct, kw_only=True):
    item: _Item
    kept: _Kept
    effects: tuple[Effect, ...]
    append: Append


class Loop:
    """One project's tasks: every change of any of them goes through here."""

    def __init__(self, store: ProjectStore, *, clock: Callable[[], float] = time.time) -> None:
        self.store = store
        self.clock = clock
        self.acts: Acts | None = None
        self.changed: Callable[[], None] = lambda: None
        """Told after each commit; the daemon looks for wants then."""
        self._items: list[_Item] = []
        self._wake = asyncio.Event()
        self._kept: dict[int, _Kept] = {}
        self._runner: asyncio.Task[None] | None = None
        self._stopping = False

    async def start(self) -> None:
        """Load what is open, tell each task that a daemon took it over, and begin to work."""
        for row in await self.store.open_tasks():
            self._keep(row)
        for number in list(self._kept):
            self.observe(number, DaemonStarted(at=self.clock()))
        self._runner = asyncio.create_task(self._run(), name="loop")

    async def stop(self) -> None:
        """Finish what was taken, take nothing more; effects that are under way are their owners' business."""
        self._stopping = True
        self._wake.set()
        if self._runner is not None:
            await self._runner

    # --- what comes in ----------------------------------------------------------------------------------

    async def order(self, task: int, command: StageCommand, given: Callable[[Task], Given]) -> Ack:
        """Decide and commit one order; raises `Refused` when it is not possible."""
        await self._load(task)
        answer: asyncio.Future[Ack] = asyncio.get_running_loop().create_future()
        item = _Order(task=task, decide=lambda t: decide(t, command, given(t)), answer=answer)
        self._put(item)
        return await asyncio.shield(answer)

    async def create(self, key: str, create: Callable[[int], TaskCreated]) -> Ack:
        """Make a task; the same key again answers with the task that it made."""
        answer: asyncio.Future[Ack] = asyncio.get_running_loop().create_future()
        self._put(_Creation(key=key, create=create, answer=answer))
        return await asyncio.shield(answer)

    def observe(self, task: int, event: AnyEvent) -> None:
        """Something happened; it is taken in order, and never refused."""
        self._put(_Observation(task=task, event=event))

    # --- what is so -------------------------------------------------------------------------------------

    def task(self, number: int) -> Task | None:
        """An open task as it is on the disk."""
        kept = self._kept.get(number)
        return kept.task if kept is not None else None

    def open_tasks(self) -> Iterable[Task]:
        """All open tasks, as they are on the disk."""
        return [kept.task for kept in self._kept.values()]

    async def load(self, number: int) -> tuple[Task, int]:
        """Any task with its seq, open or not; raises `Refused` where there is none."""
        await self._load(number)
        kept = self._kept.get(number)
        if kept is not None:
            return kept.task, kept.seq
        row = await self.store.load(number)
        if row is None:
            raise refused("no-task", f"There is no task {number} in this project.", "promptside task list")
        return _decoder.decode(row.body), row.seq

    def wants(self, project: str) -> list[Want]:
        """The stages that want to start an attempt."""
        return [
            Want(
                project=project,
                task=kept.task.id,
                stage=run.id,
                since=run.status.since,
                priority=kept.task.priority,
            )
            for kept in self._kept.values()
            if (run := kept.task.run) is not None
            and isinstance(run.status, Queued)
            and live_attempt(kept.task) is None
        ]

    def live(self) -> list[str]:
        """The ids of all attempts that may have a process."""
        return [a.id for kept in self._kept.values() if (a := live_attempt(kept.task)) is not None]

    def due(self) -> float | None:
        """When the next task wants to be woken."""
        return min((k.task.wake_at for k in self._kept.values() if k.task.wake_at is not None), default=None)

    # --- the loop ---------------------------------------------------------------------------------------

    def _put(self, item: _Item) -> None:
        if self._stopping and not isinstance(item, _Observation):
            item.answer.set_exception(refused("stopping", "The daemon is stopping.", "Try again."))
            return
        self._items.append(item)
        self._wake.set()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._items:
                items, self._items = self._items, []
                await self._commit(items)
            if self._stopping:
                return

    async def _commit(self, items: list[_Item]) -> None:
        working = {number: kept for number, kept in self._kept.items()}  # noqa: C416  a copy that says its type
        stepped: list[_Stepped] = []
        for item in items:
            try:
                done = await self._step(item, working)
            except PromptsideError as error:
                _fail(item, error)
            except Exception as error:
                log.exception("a step failed")
                _fail(item, error)
                done = self._broken(item, error, working)
                if done is not None:
                    stepped.append(done)
            else:
                if done is not None:
                    working[done.append.task] = done.kept
                    stepped.append(done)
        if not stepped:
            return
        try:
            results = await self.store.append([s.append for s in stepped])
        except PromptsideError as error:
            log.error("nothing was committed: %s", error)  # noqa: TRY400  the sentence is the whole story
            for one in stepped:
                _fail(one.item, error)
                if isinstance(one.item, _Observation):
                    asyncio.get_running_loop().call_later(1.0, self._put, one.item)
            return
        for one, result in zip(stepped, results, strict=True):
            await self._settle(one, result)
        self.changed()

    async def _step(self, item: _Item, working: dict[int, _Kept]) -> _Stepped | None:
        match item:
            case _Creation():
                return await self._create(item, working)
            case _Order():
                kept = working.get(item.task)
                if kept is None:
                    raise refused("no-task", f"There is no task {item.task} in this project.")
                event = item.decide(kept.task)
            case _Observation():
                kept = working.get(item.task)
                if kept is None:
                    return None  # of a task that is put away: nothing follows any more
                event = item.event
        task, effects = step(kept.task, event)
        if isinstance(item, _Observation) and task is kept.task and not _worth_keeping(event):
            if effects:
                self._act(task, effects)
            return None
        return _stepped(item, kept, task, effects, event)

    async def _create(self, item: _Creation, working: dict[int, _Kept]) -> _Stepped | None:
        existing = await self.store.by_key(item.key)
        if existing is not None:
            _answer(item, Ack(seq=existing.seq, task=existing.id))
            return None
        number = max(await self.store.next_task(), max(working, default=0) + 1)
        event = item.create(number)
        task, effects = step(born(event), event)
        kept = _Kept(task=task, version=0, seq=0)
        return _stepped(item, kept, task, effects, event, key=item.key)

    async def _settle(self, one: _Stepped, result: Appended | Existing | Conflict) -> None:
        match result:
            case Appended(task=number, version=version, seq=seq):
                kept = _Kept(task=one.kept.task, version=version, seq=seq)
                if _is_open(kept.task):
                    self._kept[number] = kept
                else:
                    self._kept.pop(number, None)
                _answer(one.item, Ack(seq=seq, task=number))
                self._act(kept.task, one.effects)
            case Existing(task=number, seq=seq):
                _answer(one.item, Ack(seq=seq, task=number))
            case Conflict(task=number):
                row = await self.store.load(number)
                if row is not None:
                    self._keep(row)
                one.item.tries += 1
                if one.item.tries > CONFLICT_TRIES:
                    _fail(one.item, refused("conflict", "Another program keeps changing this task."))
                else:
                    self._put(one.item)

    def _broken(self, item: _Item, error: Exception, working: dict[int, _Kept]) -> _Stepped | None:
        """A fault of ours fails the task it struck; the loop and the other tasks go on."""
        if isinstance(item, _Creation) or isinstance(getattr(item, "event", None), StepFailed):
            return None
        kept = working.get(item.task)
        if kept is None or isinstance(item, _Order):
            return None  # an order that could not be decided changes nothing
        event = StepFailed(
            at=self.clock(), reason=f"A fault in Promptside: {error}. The log has the details."
        )
        task, effects = step(kept.task, event)
        done = _stepped(_Observation(task=item.task, event=event), kept, task, effects, event)
        working[item.task] = done.kept
        return done

    def _act(self, task: Task, effects: tuple[Effect, ...]) -> None:
        if self.acts is not None and effects:
            self.acts.act(task, tuple(e for e in effects if not isinstance(e, KeepRule)))

    async def _load(self, number: int) -> None:
        """Bring a task that is put away back into memory for one order."""
        if number in self._kept:
            return
        row = await self.store.load(number)
        if row is None:
            raise refused("no-task", f"There is no task {number} in this project.", "promptside task list")
        if number not in self._kept:
            self._keep(row)

    def _keep(self, row: TaskRow) -> None:
        self._kept[row.id] = _Kept(task=_decoder.decode(row.body), version=row.version, seq=row.seq)


def _stepped(
    item: _Item, kept: _Kept, task: Task, effects: tuple[Effect, ...], event: AnyEvent, key: str = ""
) -> _Stepped:
    body = msgspec.json.encode(task)
    kind = str(event.__struct_config__.tag)
    before = {a.id: a for run in kept.task.stages for a in run.attempts} if kept.version else {}
    append = Append(
        task=task.id,
        expected_version=kept.version,
        key=key,
        events=(Fact(at=event.at, kind=kind, body=msgspec.json.encode(event)),),
        summary=_summary(task, event.at),
        body=body,
        attempts=tuple(
            AttemptRow(
                id=a.id,
                task=task.id,
                stage=run.id,
                n=a.n,
                status=a.status,
                started=a.started,
                ended=a.ended,
                input_tokens=a.usage.input_tokens if a.usage else None,
                output_tokens=a.usage.output_tokens if a.usage else None,
                cost_usd=a.usage.cost_usd if a.usage else None,
                duration_s=a.ended - a.started if a.ended and a.started else None,
            )
            for run in task.stages
            for a in run.attempts
            if before.get(a.id) is not a and before.get(a.id) != a
        ),
        rules_added=tuple(
            NewRule(
                rule=e.rule,
                task=task.id,
                stage=e.stage,
                decision=e.decision,
                by=e.by,
                client=e.client,
                at=e.at,
            )
            for e in effects
            if isinstance(e, KeepRule)
        ),
    )
    return _Stepped(
        item=item,
        kept=_Kept(task=task, version=kept.version + 1, seq=kept.seq),
        effects=effects,
        append=append,
    )


def _summary(task: Task, at: float) -> Summary:
    return Summary(
        state=str(task.life.__struct_config__.tag),
        waiting=int(waiting_for(task) is not None),
        running=int(live_attempt(task) is not None),
        title=task.title,
        priority=task.priority,
        work_type=task.work_type,
        created=task.created,
        changed=at,
    )


def _is_open(task: Task) -> bool:
    """Whether events may still follow: it is not put away, or its last process is still ending."""
    done = isinstance(task.life, Completed | Failed | Archived)
    return not done or live_attempt(task) is not None


def _worth_keeping(event: AnyEvent) -> bool:
    """Whether an event that changes nothing is a fact for the journal all the same."""
    return not isinstance(event, DaemonStarted)


def _answer(item: _Item, ack: Ack) -> None:
    if not isinstance(item, _Observation) and not item.answer.done():
        item.answer.set_result(ack)


def _fail(item: _Item, error: Exception) -> None:
    if not isinstance(item, _Observation) and not item.answer.done():
        item.answer.set_exception(error)
