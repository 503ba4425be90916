"""One project's effects made real; every finding comes back to the loop as an event.

It owns the runners of the live attempts. What it holds in memory can be lost at any moment without harm.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, assert_never

import msgspec

from promptside_daemon.engine import effects
from promptside_daemon.engine.events import ArtifactChanged, FilesRestored, UnsavedCleared, Woke
from promptside_daemon.engine.task import Passed, Task
from promptside_daemon.loop import Loop
from promptside_daemon.settings import Settings
from promptside_daemon.world import checkpoint, git
from promptside_daemon.world.activity import Activities
from promptside_daemon.world.checkpoint import CheckpointFailed
from promptside_daemon.world.documents import Documents
from promptside_daemon.world.follow import Follower, Watch
from promptside_daemon.world.launch import UNSAVED, Launcher
from promptside_daemon.world.runner import Runner, read_checkpoint
from promptside_daemon.world.writing import Writer
from promptside_protocol import forms
from promptside_protocol.errors import PromptsideError

log = logging.getLogger(__name__)

LATE_SECONDS = 60.0
"""A wake later than this was missed while no daemon ran (DA-12)."""
NAP_SECONDS = 60.0
"""How long a timer may rely on the loop's clock, which stands still while the machine sleeps; then the wall
clock is asked again."""


class World:
    """What a project's loop acts through."""

    def __init__(
        self,
        *,
        root: Path,
        directory: Path,
        loop: Loop,
        follower: Follower,
        settings: Callable[[], Settings],
        trusted: Callable[[], bool],
        environment: Callable[[int], Mapping[str, str]],
        activities: Activities,
        unsaved: Callable[[], Mapping[str, str]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.root = root
        self.attempts = directory / "attempts"
        self.keep = directory / "keep"
        self.documents = Documents(root, self.attempts)
        self.writer = Writer(self.documents, self._find, self.watch)
        self.launcher = Launcher(
            root=root,
            documents=self.documents,
            settings=settings,
            trusted=trusted,
            environment=environment,
        )
        self.runners: dict[str, Runner] = {}
        self.rules: tuple[str, ...] = ()
        """Permissions given for good; one that is given joins them before its agent is answered."""
        self._loop = loop
        self._follower = follower
        self._activities = activities
        self._unsaved = unsaved
        self._listing = asyncio.Lock()
        self._clock = clock
        self._doing: set[asyncio.Task[None]] = set()
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._watches: dict[int, Watch] = {}
        self._looks: set[int] = set()
        self._excluded = False

    # --- effects ------------------------------------------------------------------------------------------

    def act(self, task: Task, wanted: tuple[effects.Effect, ...]) -> asyncio.Future[Any] | None:
        """Begin the effects of a committed step; the answer is done when its documents are written."""
        writing: list[asyncio.Future[None]] = []
        for effect in wanted:
            try:
                if (document := self._act(task, effect)) is not None:
                    writing.append(document)
            except Exception:
                log.exception("an effect failed: %r", effect)
        return asyncio.gather(*writing) if writing else None

    def _act(self, task: Task, effect: effects.Effect) -> asyncio.Future[None] | None:
        match effect:
            case effects.WantSlot():
                pass  # slots are the daemon's to give
            case effects.KeepRule(rule=rule):
                self.rules = (*self.rules, rule)
            case effects.StartAttempt(attempt=attempt) | effects.FollowAttempt(attempt=attempt):
                self._runner(task, attempt)
            case effects.Deliver(attempt=attempt):
                self._runner(task, attempt).deliver()
            case effects.CloseInput(attempt=attempt):
                self._runner(task, attempt).close()
            case effects.StopAttempt(attempt=attempt, reason=reason):
                self._runner(task, attempt).stop(reason)
            case effects.WriteDocument(document=document, only_if_missing=only_if_missing):
                return self._write(task, document, only_if_missing=only_if_missing)
            case effects.RestoreFiles():
                self._do(self._restore(task, effect))
            case effects.WakeAt(at=at):
                self._wake_at(task.id, at)
            case _:
                assert_never(effect)
        return None

    def _runner(self, task: Task, attempt: str) -> Runner:
        if attempt not in self.runners:
            number = task.id
            runner = Runner(
                current=lambda: self._loop.task(number),
                attempt=attempt,
                directory=self.attempts / attempt,
                keep=self.keep,
                project=self.root,
                follower=self._follower,
                launcher=self.launcher,
                documents=self.documents,
                rules=lambda: self.rules,
                tell=lambda event: self._loop.observe(number, event),
                others=lambda: self._touched_by_others(attempt),
                list_unsaved=lambda: self._list_unsaved(attempt),
                acted=lambda reading, redactor: self._activities.acted(number, attempt, reading, redactor),
                clock=self._clock,
            )
            self.runners[attempt] = runner
            self._do(self._run(runner))
        return self.runners[attempt]

    async def _run(self, runner: Runner) -> None:
        try:
            await self._exclude()
            await runner.run()
        except asyncio.CancelledError:
            raise  # the daemon ends; the attempt goes on
        except Exception as error:
            log.exception("attempt %s is lost sight of", runner.id)
            await runner.give_up(error)
        finally:
            self._activities.forget(runner.id)
            if self.runners.get(runner.id) is runner:
                del self.runners[runner.id]
            touched = runner.evidence.touched()
            for other in self.runners.values():
                other.meanwhile |= touched

    def _touched_by_others(self, attempt: str) -> frozenset[str]:
        """Paths that other attempts in the same tree touched meanwhile, those included that have ended."""
        paths: set[str] = set()
        for name, runner in self.runners.items():
            paths |= runner.meanwhile if name == attempt else runner.evidence.touched()
        return frozenset(paths)

    # --- what editors hold unsaved ------------------------------------------------------------------------

    def unsaved_changed(self, cleared: Mapping[str, str]) -> None:
        """Editors hold other files now; `cleared` are those that none holds any more, with the words for it."""
        for attempt in self.runners:
            self._do(self._list_unsaved(attempt))
        for task in self._loop.open_tasks():
            for asked in task.open_decisions:
                if asked.held in cleared:
                    words = cleared[asked.held]
                    event = UnsavedCleared(at=self._clock(), decision=asked.id, words=words)
                    self._loop.observe(task.id, event)

    async def _list_unsaved(self, attempt: str) -> None:
        """Write down beside an attempt what it must ask about before it changes it."""
        async with self._listing:  # so that the newest list is the one that stays
            held = self._unsaved()
            try:
                await asyncio.to_thread(_list, self.attempts / attempt, held)
            except OSError as error:
                log.warning("attempt %s can't be told of unsaved files: %s", attempt, error)

    def _wake_at(self, task: int, at: float) -> None:
        old = self._timers.pop(task, None)
        if old is not None:
            old.cancel()
        loop = asyncio.get_running_loop()
        delay = min(max(at - self._clock(), 0.0), NAP_SECONDS)
        self._timers[task] = loop.call_later(delay, self._woke, task, at)

    def _woke(self, task: int, at: float) -> None:
        self._timers.pop(task, None)
        now = self._clock()
        if now < at:  # a long way to go, or the wall clock was set back
            self._wake_at(task, at)
            return
        self._loop.observe(task, Woke(at=now, late=now - at > LATE_SECONDS))

    # --- documents ----------------------------------------------------------------------------------------

    def _write(self, task: Task, document: str, *, only_if_missing: bool) -> asyncio.Future[None]:
        return self.writer.write(task, document, only_if_missing=only_if_missing)

    async def _find(self, number: int) -> Task:
        return (await self._loop.load(number))[0]

    async def take_notes(self, task: Task, words: str) -> None:
        """Remove from the task's own file the notes that went to the agent; an editor that holds it does it."""
        document = f"{task.directory}/task.md"
        if words and not self.writer.is_held(document):
            try:
                await asyncio.to_thread(self.documents.take_notes, document, words)
            except (OSError, PromptsideError) as error:
                log.warning("the notes in %s could not be removed: %s", document, error)

    async def _exclude(self) -> None:
        """Keep our own files out of the person's commits (DA-11)."""
        if self._excluded:
            return
        self._excluded = True
        repository = await git.find(self.root)
        if repository is not None:
            try:
                await git.keep_out(repository, self.root)
            except OSError as error:
                log.warning("the tasks' directory could not be kept out of git: %s", error)

    def watch(self, task: Task) -> None:
        """Notice when an approved document of this task changes (CW-23)."""
        directory = self.root / task.directory
        if task.id in self._watches or self._loop.task(task.id) is None or not directory.is_dir():
            return
        try:
            number = task.id
            self._watches[number] = self._follower.watch(directory, lambda: self._look(number))
        except OSError as error:
            log.warning("%s can't be watched: %s", directory, error)

    def _look(self, number: int) -> None:
        if number not in self._looks:
            self._looks.add(number)
            self._do(self._look_now(number))

    async def _look_now(self, number: int) -> None:
        self._looks.discard(number)  # what changes from here on is worth another look
        task = self._loop.task(number)
        if task is None or not (self.root / task.directory).is_dir():
            self._unwatch(number)
            return
        await self.notice(task)

    async def notice(self, task: Task) -> bool:
        """Tell what approved documents say something else now; whether there was any such."""
        changed = await asyncio.to_thread(self.changed_artifacts, task)
        for event in changed:
            self._loop.observe(task.id, event)
        return bool(changed)

    def _unwatch(self, number: int) -> None:
        watch = self._watches.pop(number, None)
        if watch is not None:
            watch.close()

    def let_go(self, task: int) -> None:
        """Nothing follows by itself any more."""
        timer = self._timers.pop(task, None)
        if timer is not None:
            timer.cancel()
        self._unwatch(task)

    def changed_artifacts(self, task: Task) -> list[ArtifactChanged]:
        """Approved texts whose file says something else than was approved, or says it again (CW-23).

        A file that is gone counts as unchanged (M13); one that we wrote is the draft, which may have been edited.
        """
        found: list[ArtifactChanged] = []
        for run in task.stages:
            form, status = run.form, run.status
            if form is None or not isinstance(status, Passed) or status.by is None:
                continue
            if not isinstance(form.definition, forms.TextDefinition):
                continue  # the answers of a form are the draft's, whatever its file says
            try:
                there = self.documents.theirs(task, form)
            except (OSError, PromptsideError) as error:
                log.warning("%s can't be compared with what was approved: %s", form.document, error)
                continue
            shown = form.shown if there is None else forms.shown(form.definition, there)
            if (shown != status.shown) != bool(status.void):
                found.append(ArtifactChanged(at=self._clock(), stage=run.id, shown=shown))
        return found

    # --- files ----------------------------------------------------------------------------------------------

    async def conflicts(
        self, task: Task, stage: str, attempt: int, paths: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Paths of an attempt's changes that somebody else has changed since."""
        pair = self._pair(task, stage, attempt)
        if pair is None:
            return ()
        before, after = pair
        try:
            mine = {c.path for c in await checkpoint.changed(self.root, self.keep, before, after)}
            since = {c.path for c in await checkpoint.changed(self.root, self.keep, after)}
        except CheckpointFailed as error:
            log.warning("changes could not be compared: %s", error)
            return ()
        return tuple(sorted(p for p in mine & since if not paths or p in paths))

    async def diff(self, task: Task, stage: str, attempt: int) -> bytes:
        """What an attempt changed, as a unified diff: against now while it runs, else against its end."""
        directory = self._directory(task, stage, attempt)
        before = read_checkpoint(directory / "before.json") if directory else None
        if directory is None or before is None:
            return b""
        after = read_checkpoint(directory / "after.json")
        return await checkpoint.diff(self.root, self.keep, before, after)

    async def changed_now(self, task: Task, stage: str, attempt: int) -> list[checkpoint.Change]:
        """The same as a list."""
        directory = self._directory(task, stage, attempt)
        before = read_checkpoint(directory / "before.json") if directory else None
        if directory is None or before is None:
            return []
        after = read_checkpoint(directory / "after.json")
        return await checkpoint.changed(self.root, self.keep, before, after)

    async def file_at(self, task: Task, stage: str, attempt: int, path: str, side: str) -> checkpoint.File:
        """A file of the project before an attempt or after it, while it runs as it is now."""
        directory = self._directory(task, stage, attempt)
        before = read_checkpoint(directory / "before.json") if directory else None
        if directory is None or before is None:
            raise CheckpointFailed(f"no files were kept for attempt {attempt} of {stage}")
        wanted = before if side == "before" else read_checkpoint(directory / "after.json")
        return await checkpoint.file_at(self.root, self.keep, wanted, path)

    async def _restore(self, task: Task, wanted: effects.RestoreFiles) -> None:
        """Put files back, and tell what came of it, in any case: the order was acknowledged."""
        pair = self._pair(task, wanted.stage, wanted.attempt)
        done: tuple[str, ...] = ()
        left = wanted.paths
        if pair is not None:
            before, after = pair
            try:
                restored = await checkpoint.restore(
                    self.root, self.keep, before, expected=after, paths=wanted.paths or None
                )
                done, left = restored.done, tuple(one.path for one in restored.left)
            except CheckpointFailed as error:
                log.error("files could not be put back: %s", error)  # noqa: TRY400  the sentence is the whole story
        event = FilesRestored(
            at=self._clock(), stage=wanted.stage, attempt=wanted.attempt, paths=done, left=left
        )
        self._loop.observe(task.id, event)

    def _pair(
        self, task: Task, stage: str, attempt: int
    ) -> tuple[checkpoint.Checkpoint, checkpoint.Checkpoint] | None:
        directory = self._directory(task, stage, attempt)
        if directory is None:
            return None
        before = read_checkpoint(directory / "before.json")
        after = read_checkpoint(directory / "after.json")
        return (before, after) if before is not None and after is not None else None

    def _directory(self, task: Task, stage: str, attempt: int) -> Path | None:
        index = task.pipeline.index(stage)
        if index < 0:
            return None
        found = next((a for a in task.stages[index].attempts if a.n == attempt), None)
        return self.attempts / found.id if found is not None else None

    # --- its end --------------------------------------------------------------------------------------------

    def _do(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        doing = asyncio.create_task(work)
        self._doing.add(doing)
        doing.add_done_callback(self._done)
        return doing

    def _done(self, doing: asyncio.Task[None]) -> None:
        self._doing.discard(doing)
        if not doing.cancelled() and doing.exception() is not None:
            log.error("an effect failed", exc_info=doing.exception())

    async def close(self) -> None:
        """Let go of everything; agents at work go on."""
        await self.writer.idle()
        for number in (*self._timers, *self._watches):
            self.let_go(number)
        for doing in list(self._doing):
            doing.cancel()
        await asyncio.gather(*self._doing, return_exceptions=True)


def _list(directory: Path, held: Mapping[str, str]) -> None:
    if directory.is_dir():
        beside = directory / f".{UNSAVED}"
        beside.write_bytes(msgspec.json.encode(held) if held else b"")
        beside.replace(directory / UNSAVED)
