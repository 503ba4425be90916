"""The one writer of a project: takes what was ordered and what happened, asks the engine, commits, then acts.

Everything that waits is drained at once and committed together. Nothing is acknowledged, and no effect is
begun, before its facts are on the disk.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from promptside_daemon.engine.decide import decide
from promptside_daemon.engine.effects import Effect, KeepRule
from promptside_daemon.engine.events import AnyEvent, DaemonStarted, StepFailed, TaskCreated
from promptside_daemon.engine.given import Given
from promptside_daemon.engine.slots import Want
from promptside_daemon.engine.step import born, step
from promptside_daemon.engine.task import Archived, Completed, Failed, Queued, Task, live_attempt
from promptside_daemon.engine.view import waiting_for
from promptside_daemon.store.project import ProjectStore, Results
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
AGAIN_SECONDS = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""After which pauses what happened is written again while the database can't be written to: nothing tells us
when a disk has room again. An order that comes meanwhile tries at once."""
DOCUMENT_SECONDS = 5.0
"""How long news and acknowledgements wait for the documents that belong to them: a file system that hangs must
not hold up the project."""

_decoder = msgspec.json.Decoder(Task)


class Acts(Protocol):
    """What carries effects out; the daemon's world."""

    def act(self, task: Task, effects: tuple[Effect, ...]) -> asyncio.Future[Any] | None:
        """Begin the effects of a committed step; never waits for them.

        The answer is done when the documents among them are written: who is told of a document can open it.
        """

    def let_go(self, task: int) -> None:
        """The task is put away, and none of its processes is left; nothing follows by itself any more."""


class _Order(Struct, kw_only=True):
    task: int
    decide: Callable[[Task], Awaitable[AnyEvent]]
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


class _Change(Struct, kw_only=True):
    """All that one drain makes of one task: written together, or not at all."""

    before: _Kept
    task: Task
    key: str = ""
    items: list[_Item] = []
    facts: list[Fact] = []
    effects: list[Effect] = []
    refused: list[tuple[_Item, PromptsideError]] = []
    """Orders that are not possible after these facts: told when the facts are so."""


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
        self._failures = 0
        self._again: asyncio.TimerHandle | None = None
        self._stopping = False

    async def start(self) -> None:
        """Load what is open, tell each task that a daemon took it over, and begin to work."""
        for row in await self.store.open_tasks():
            self._kept[row.id] = _read(row)
        at = self.clock()
        over = [_Observation(task=number, event=DaemonStarted(at=at)) for number in self._kept]
        await self._commit(await self._step_all(list(over)))
        self._runner = asyncio.create_task(self._run(), name="loop")

    async def stop(self) -> None:
        """Finish what was taken, take nothing more; effects that are under way are their owners' business."""
        self._stopping = True
        self._wake.set()
        if self._runner is not None:
            await self._runner
        if self._again is not None:
            self._again.cancel()

    # --- what comes in ----------------------------------------------------------------------------------

    async def order(self, task: int, command: StageCommand, given: Callable[[Task], Awaitable[Given]]) -> Ack:
        """Decide and commit one order; raises `Refused` when it is not possible.

        `given` is asked for the task as it is when the order's turn has come; it may take its time, in which
        nothing of this project is written.
        """

        async def decided(now: Task) -> AnyEvent:
            return decide(now, command, await given(now))

        answer: asyncio.Future[Ack] = asyncio.get_running_loop().create_future()
        self._put(_Order(task=task, decide=decided, answer=answer))
        return await asyncio.shield(answer)

    async def create(self, key: str, create: Callable[[int], TaskCreated]) -> Ack:
        """Make a task; the same key again answers with the task that it made."""
        if not key:
            raise refused("no-key", "A new task needs a key of the client's own.")
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
        """Any task with its seq, open or not; raises `Refused` where there is none.

        Read from the disk: who was told of a task by a row of it must not be answered from before that row.
        """
        kept = await self._find(number)
        return kept.task, kept.seq

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
                if not await self._commit(await self._step_all(items)):
                    break  # what happened is kept, and tried again when something wakes us
            if self._stopping:
                for item in self._items:
                    _fail(item, refused("stopping", "The daemon is stopping.", "Try again."))
                return

    async def _step_all(self, items: list[_Item]) -> list[_Change]:
        """What the items make of their tasks, nothing of which is so before it is written."""
        changes: dict[int, _Change] = {}
        for item in items:
            try:
                await self._step(item, changes)
            except PromptsideError as error:
                change = changes.get(item.task) if isinstance(item, _Order) else None
                if change is not None and change.facts:
                    change.refused.append((item, error))
                else:
                    _fail(item, error)
            except Exception as error:
                log.exception("a step failed")
                _fail(item, error)
                if isinstance(item, _Observation):
                    self._break(item.task, error, changes)
        for change in changes.values():
            if not change.facts:
                self._act(change)  # what a start finds to be done; there is nothing to be written first
        return [change for change in changes.values() if change.facts]

    async def _step(self, item: _Item, changes: dict[int, _Change]) -> None:
        match item:
            case _Creation():
                await self._create(item, changes)
            case _Order():
                change = await self._change(item.task, changes)
                _take(change, item, await item.decide(change.task))
            case _Observation(task=number, event=event):
                if number not in changes and number not in self._kept:
                    return  # of a task that is put away: nothing follows any more
                _take(await self._change(number, changes), item, event)

    async def _create(self, item: _Creation, changes: dict[int, _Change]) -> None:
        existing = await self.store.by_key(item.key)
        if existing is not None:
            _answer(item, Ack(seq=existing.seq, task=existing.id))
            return
        number = max(await self.store.next_task(), max(changes, default=0) + 1)
        event = item.create(number)
        task = born(event)
        change = _Change(before=_Kept(task=task, version=0, seq=0), task=task, key=item.key)
        _take(change, item, event)
        changes[number] = change

    async def _change(self, number: int, changes: dict[int, _Change]) -> _Change:
        """What this drain made of a task so far."""
        if number not in changes:
            kept = self._kept.get(number) or await self._find(number)
            changes[number] = _Change(before=kept, task=kept.task)
        return changes[number]

    async def _find(self, number: int) -> _Kept:
        row = await self.store.load(number)
        if row is None:
            raise refused("no-task", f"There is no task {number} in this project.", "promptside task list")
        return _read(row)

    def _break(self, number: int, error: Exception, changes: dict[int, _Change]) -> None:
        """A fault of ours fails the task it struck; the loop and the other tasks go on."""
        kept = self._kept.get(number)
        change = changes.get(number) or (_Change(before=kept, task=kept.task) if kept is not None else None)
        if change is None:
            return
        reason = f"A fault in Promptside: {type(error).__name__}: {error}. The log has the details."
        event = StepFailed(at=self.clock(), reason=reason)
        try:
            _take(change, _Observation(task=number, event=event), event)
        except Exception:
            log.exception("task %d can't even be failed", number)
            return
        changes[number] = change

    # --- committing -------------------------------------------------------------------------------------

    async def _commit(self, changes: list[_Change]) -> bool:
        """Write them as one; false if they could not be written, and what happened has to be told again."""
        if not changes:
            return True

        def settle(results: Results) -> Awaitable[None] | None:
            settled = [(c, r) for c, r in zip(changes, results, strict=True) if isinstance(r, Appended)]
            writing = [w for change, done in settled if (w := self._settle(change, done)) is not None]
            if writing:
                return self._tell_when_written(settled, writing)
            self._tell(settled)
            return None

        try:
            results = await self.store.append([_append(change) for change in changes], settle)
        except PromptsideError as error:
            self._hold(changes, error)
            return False
        except Exception as error:  # noqa: BLE001  it is logged with the task that it is about
            if len(changes) > 1:
                return all([await self._commit([change]) for change in changes])
            return await self._unwritable(changes[0], error)
        self._failures = 0
        for change, result in zip(changes, results, strict=True):
            if not isinstance(result, Appended):
                await self._missed(change, result)
        self.changed()
        return True

    def _settle(self, change: _Change, done: Appended) -> asyncio.Future[Any] | None:
        kept = _Kept(task=change.task, version=done.version, seq=done.seq)
        is_open = _is_open(kept.task)
        if is_open:
            self._kept[done.task] = kept
        else:
            self._kept.pop(done.task, None)
        writing = self._act(change)
        if self.acts is not None and not is_open:
            self.acts.let_go(done.task)
        return writing

    async def _tell_when_written(
        self, settled: Sequence[tuple[_Change, Appended]], writing: Sequence[asyncio.Future[Any]]
    ) -> None:
        _, late = await asyncio.wait(writing, timeout=DOCUMENT_SECONDS)
        if late:
            log.warning(
                "a document takes longer than %.0f s to be written; nobody waits for it", DOCUMENT_SECONDS
            )
        self._tell(settled)

    def _tell(self, settled: Sequence[tuple[_Change, Appended]]) -> None:
        for change, done in settled:
            for place, item in enumerate(reversed(change.items)):
                _answer(item, Ack(seq=done.seq - place, task=done.task))
            for item, error in change.refused:
                _fail(item, error)

    def _act(self, change: _Change) -> asyncio.Future[Any] | None:
        if self.acts is None or not change.effects:
            return None
        return self.acts.act(change.task, tuple(change.effects))

    async def _unwritable(self, change: _Change, error: Exception) -> bool:
        """A fault of ours in one task's rows: it fails, as if the fault had struck in its step."""
        log.error("task %d can't be written", change.task.id, exc_info=error)
        for item in (*change.items, *(item for item, _ in change.refused)):
            _fail(item, error)
        observed = any(isinstance(item, _Observation) for item in change.items)
        if not observed or isinstance(change.task.life, Failed):
            return True
        broken: dict[int, _Change] = {}
        self._break(change.task.id, error, broken)
        return await self._commit(list(broken.values()))

    async def _missed(self, change: _Change, result: Appended | Existing | Conflict) -> None:
        """Another process was faster: look again, and decide again."""
        items = [*change.items, *(item for item, _ in change.refused)]
        if isinstance(result, Existing):
            first, *items = items
            _answer(first, Ack(seq=result.seq, task=result.task))
        row = await self.store.load(result.task)
        if row is not None and result.task in self._kept:
            self._kept[result.task] = _read(row)
        again: list[_Item] = []
        for item in items:
            item.tries += 1
            if item.tries > CONFLICT_TRIES and not isinstance(item, _Observation):
                _fail(item, refused("conflict", "Another program keeps changing this task."))
            else:
                again.append(item)
        self._items[:0] = again

    def _hold(self, changes: list[_Change], error: PromptsideError) -> None:
        """Refuse the orders; what happened stays in its order, and is written when that is possible again."""
        if not self._failures:
            log.error("nothing was committed: %s", error)
        items = [item for change in changes for item in change.items]
        for item in (*items, *(item for change in changes for item, _ in change.refused)):
            _fail(item, error)
        self._items[:0] = [item for item in items if isinstance(item, _Observation)]
        pause = AGAIN_SECONDS[min(self._failures, len(AGAIN_SECONDS) - 1)]
        self._failures += 1
        if self._again is not None:
            self._again.cancel()
        self._again = asyncio.get_running_loop().call_later(pause, self._wake.set)


def _take(change: _Change, item: _Item, event: AnyEvent) -> None:
    """Step once, and note what follows."""
    task, effects = step(change.task, event)
    if isinstance(item, _Observation) and task is change.task:
        # Nothing new: a line that was told before a restart, a wake for what was settled meanwhile. It is
        # no fact for the journal, or followers would hear of it twice.
        if effects:
            change.effects += effects
        return
    fact = Fact(at=event.at, kind=str(event.__struct_config__.tag), body=msgspec.json.encode(event))
    change.task = task
    change.facts.append(fact)
    change.items.append(item)
    change.effects += effects


def _append(change: _Change) -> Append:
    before, task = change.before, change.task
    known = {a.id: a for run in before.task.stages for a in run.attempts} if before.version else {}
    return Append(
        task=task.id,
        expected_version=before.version,
        key=change.key,
        events=tuple(change.facts),
        summary=_summary(task, change.facts[-1].at),
        body=msgspec.json.encode(task),
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
            if known.get(a.id) is not a and known.get(a.id) != a
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
            for e in change.effects
            if isinstance(e, KeepRule)
        ),
    )


def _read(row: TaskRow) -> _Kept:
    try:
        task = _decoder.decode(row.body)
    except msgspec.DecodeError as error:
        raise refused(
            "damaged",
            f"Task {row.id} can't be read from the project's database: {error}.",
            "Put a backup of the database in its place.",
        ) from error
    return _Kept(task=task, version=row.version, seq=row.seq)


def _summary(task: Task, at: float) -> Summary:
    return Summary(
        state=str(task.life.__struct_config__.tag),
        waiting=int(waiting_for(task) is not None),
        running=int(_unfinished(task)),
        title=task.title,
        priority=task.priority,
        work_type=task.work_type,
        created=task.created,
        changed=at,
    )


def _is_open(task: Task) -> bool:
    """Whether events may still follow: it is not put away, or its last process is still ending."""
    return not isinstance(task.life, Completed | Failed | Archived) or _unfinished(task)


def _unfinished(task: Task) -> bool:
    """Whether something is under way in the world whose end will be told."""
    return live_attempt(task) is not None or task.undoing is not None


def _answer(item: _Item, ack: Ack) -> None:
    if not isinstance(item, _Observation) and not item.answer.done():
        item.answer.set_result(ack)


def _fail(item: _Item, error: Exception) -> None:
    if not isinstance(item, _Observation) and not item.answer.done():
        item.answer.set_exception(error)
