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

from promptside_daemon.engine import effects
from promptside_daemon.engine.events import AnyEvent, ArtifactChanged, AttemptEnded, FilesRestored, Woke
from promptside_daemon.engine.task import Passed, Task
from promptside_daemon.loop import Loop
from promptside_daemon.settings import Settings
from promptside_daemon.world import checkpoint, git
from promptside_daemon.world.activity import Activities
from promptside_daemon.world.checkpoint import CheckpointFailed
from promptside_daemon.world.documents import Documents, find_form
from promptside_daemon.world.follow import Follower, Watch
from promptside_daemon.world.launch import Launcher
from promptside_daemon.world.runner import Runner, read_checkpoint
from promptside_daemon.world.taskfile import task_file
from promptside_protocol import forms
from promptside_protocol.errors import PromptsideError

log = logging.getLogger(__name__)

LATE_SECONDS = 60.0
"""A wake later than this was missed while no daemon ran (DA-12)."""


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
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.root = root
        self.attempts = directory / "attempts"
        self.keep = directory / "keep"
        self.documents = Documents(root, self.attempts)
        self.launcher = Launcher(
            root=root,
            documents=self.documents,
            settings=settings,
            trusted=trusted,
            environment=environment,
        )
        self.runners: dict[str, Runner] = {}
        self.rules: tuple[str, ...] = ()
        """Permissions given for good, as the store has them; refreshed by the daemon after each commit."""
        self._loop = loop
        self._follower = follower
        self._activities = activities
        self._clock = clock
        self._doing: set[asyncio.Task[None]] = set()
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._watches: dict[int, Watch] = {}
        self._excluded = False

    # --- effects ------------------------------------------------------------------------------------------

    def act(self, task: Task, wanted: tuple[effects.Effect, ...]) -> None:
        """Begin the effects of a committed step."""
        for effect in wanted:
            try:
                self._act(task, effect)
            except Exception:
                log.exception("an effect failed: %r", effect)

    def _act(self, task: Task, effect: effects.Effect) -> None:
        match effect:
            case effects.WantSlot() | effects.KeepRule():
                pass  # slots are the daemon's to give; a rule was written with its fact
            case effects.StartAttempt(attempt=attempt) | effects.FollowAttempt(attempt=attempt):
                self._runner(task, attempt)
            case effects.Deliver(attempt=attempt):
                self._runner(task, attempt).deliver()
            case effects.CloseInput(attempt=attempt):
                self._runner(task, attempt).close()
            case effects.StopAttempt(attempt=attempt, reason=reason):
                self._runner(task, attempt).stop(reason)
            case effects.WriteDocument(document=document, only_if_missing=only_if_missing):
                self._write(task, document, only_if_missing=only_if_missing)
            case effects.RestoreFiles():
                self._do(self._restore(task, effect))
            case effects.WakeAt(at=at):
                self._wake_at(task.id, at)
            case _:
                assert_never(effect)

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
                tell=lambda event: self._tell(number, event),
                others=lambda: self._touched_by_others(attempt),
                acted=lambda reading: self._activities.acted(number, attempt, reading),
                clock=self._clock,
            )
            self.runners[attempt] = runner
            self._do(self._run(runner, number))
        return self.runners[attempt]

    async def _run(self, runner: Runner, task: int) -> None:
        try:
            await self._exclude()
            await runner.run()
        except asyncio.CancelledError:
            raise  # the daemon ends; the attempt goes on
        except Exception as error:
            log.exception("attempt %s is lost sight of", runner.id)
            self._tell(task, runner.broken(error))
        finally:
            self._activities.forget(runner.id)

    def _tell(self, task: int, event: AnyEvent) -> None:
        if isinstance(event, AttemptEnded):
            self.runners.pop(event.attempt, None)
        self._loop.observe(task, event)

    def _touched_by_others(self, attempt: str) -> frozenset[str]:
        """Paths that other attempts in the same tree touched meanwhile."""
        paths: set[str] = set()
        for name, runner in self.runners.items():
            if name != attempt:
                paths |= runner.evidence.touched()
        return frozenset(paths)

    def _wake_at(self, task: int, at: float) -> None:
        old = self._timers.pop(task, None)
        if old is not None:
            old.cancel()
        loop = asyncio.get_running_loop()
        delay = max(at - self._clock(), 0.0)
        self._timers[task] = loop.call_later(delay, self._woke, task, at)

    def _woke(self, task: int, at: float) -> None:
        self._timers.pop(task, None)
        now = self._clock()
        if now < at:  # the wall clock was set back
            self._wake_at(task, at)
            return
        self._loop.observe(task, Woke(at=now, late=now - at > LATE_SECONDS))

    # --- documents ----------------------------------------------------------------------------------------

    def _write(self, task: Task, document: str, *, only_if_missing: bool) -> None:
        try:
            if document.endswith("/task.md"):
                self.documents.put(document, task_file(task))
            else:
                form = find_form(task, document)
                if form is not None:
                    self.documents.write(task, form, only_if_missing=only_if_missing)
        except (OSError, PromptsideError) as error:
            # The draft is in the database; the file is only its rendering, and comes with the next change.
            log.warning("%s could not be written: %s", document, error)
        self.watch(task)

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
        if task.id in self._watches or not directory.is_dir():
            return
        try:
            number = task.id
            self._watches[number] = self._follower.watch(directory, lambda: self._look(number))
        except OSError as error:
            log.warning("%s can't be watched: %s", directory, error)

    def _look(self, number: int) -> None:
        task = self._loop.task(number)
        if task is None:
            watch = self._watches.pop(number, None)
            if watch is not None:
                watch.close()
            return
        for event in self.changed_artifacts(task):
            self._loop.observe(number, event)

    def changed_artifacts(self, task: Task) -> list[ArtifactChanged]:
        """Approved texts whose file is no longer what was approved; one that is gone counts as unchanged (M13)."""
        found: list[ArtifactChanged] = []
        for run in task.stages:
            form = run.form
            if form is None or not isinstance(run.status, Passed) or run.status.by is None or run.status.void:
                continue
            if not isinstance(form.definition, forms.TextDefinition):
                continue  # the answers of a form are the draft's, whatever its file says
            try:
                there = self.documents.on_disk(form.document)
            except (OSError, PromptsideError):
                continue
            if there is None:
                continue
            shown = forms.shown(form.definition, there)
            if shown != form.shown:
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

    async def _restore(self, task: Task, wanted: effects.RestoreFiles) -> None:
        pair = self._pair(task, wanted.stage, wanted.attempt)
        if pair is None:
            return
        before, after = pair
        try:
            restored = await checkpoint.restore(
                self.root, self.keep, before, expected=after, paths=wanted.paths or None
            )
        except CheckpointFailed as error:
            log.error("files could not be put back: %s", error)  # noqa: TRY400  the sentence is the whole story
            return
        self._loop.observe(
            task.id,
            FilesRestored(
                at=self._clock(),
                stage=wanted.stage,
                attempt=wanted.attempt,
                paths=restored.done,
                left=tuple(one.path for one in restored.left),
            ),
        )

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

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        doing = asyncio.create_task(work)
        self._doing.add(doing)
        doing.add_done_callback(self._done)

    def _done(self, doing: asyncio.Task[None]) -> None:
        self._doing.discard(doing)
        if not doing.cancelled() and doing.exception() is not None:
            log.error("an effect failed", exc_info=doing.exception())

    async def close(self) -> None:
        """Let go of everything; agents at work go on."""
        for timer in self._timers.values():
            timer.cancel()
        for watch in self._watches.values():
            watch.close()
        for doing in list(self._doing):
            doing.cancel()
        await asyncio.gather(*self._doing, return_exceptions=True)
