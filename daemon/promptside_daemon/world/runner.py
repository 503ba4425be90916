"""One attempt, from the rendered prompt to the last process gone; what it finds comes back as events.

It can be begun anew at any point: whatever has happened is read off the attempt directory, never remembered.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import signal
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec

from promptside_daemon.engine.events import (
    AnyEvent,
    AttemptEnded,
    AttemptStarted,
    Condemned,
)
from promptside_daemon.engine.pipeline import Stage, limits_for
from promptside_daemon.engine.task import Attempt as AttemptState
from promptside_daemon.engine.task import Failure, Task, Usage, find_attempt
from promptside_daemon.world import checkpoint, processes
from promptside_daemon.world.answer import Answer
from promptside_daemon.world.attempt import (
    Attempt,
    Ended,
    Lost,
    NotStarted,
    StartFailedError,
)
from promptside_daemon.world.checkpoint import Checkpoint, CheckpointFailed
from promptside_daemon.world.claude.reader import Reader
from promptside_daemon.world.documents import Documents, write_json
from promptside_daemon.world.evidence import Evidence
from promptside_daemon.world.follow import Follower, LineReader
from promptside_daemon.world.launch import Launcher
from promptside_daemon.world.listener import Acted, Listener
from promptside_daemon.world.processes import Process
from promptside_daemon.world.secrets import keep_secrets_told, redactor_for
from promptside_daemon.world.stderr import tail
from promptside_protocol.views import Change, ProofView

log = logging.getLogger(__name__)

FREE_BYTES = 64 * 1024 * 1024
"""Less space than this and nothing is started: the CLI works on silently while its output is lost."""
LAST_BYTES = 8 * 1024 * 1024
"""Less space than this and what runs is ended, while its end can still be written down."""
LOOK_SECONDS = 30.0
"""How often to look for that: on a full disk nothing is written, so that nothing wakes us either."""
STOP_SECONDS = 45.0
"""How long a keeper may take to end its agent, all graces counted; then it is killed, and we do it ourselves."""


class Runner:
    """Starts, follows and ends one attempt; lives until `AttemptEnded` is told."""

    def __init__(
        self,
        *,
        current: Callable[[], Task | None],
        attempt: str,
        directory: Path,
        keep: Path,
        project: Path,
        follower: Follower,
        launcher: Launcher,
        documents: Documents,
        rules: Callable[[], tuple[str, ...]],
        tell: Callable[[AnyEvent], None],
        others: Callable[[], frozenset[str]],
        list_unsaved: Callable[[], Coroutine[Any, Any, None]],
        acted: Acted,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.id = attempt
        self.hand = Attempt(directory)
        self._current = current
        self._keep = keep
        self._project = project
        self._follower = follower
        self._launcher = launcher
        self._documents = documents
        self._rules = rules
        self._acted = acted
        self._tell = tell
        self._others = others
        self._list_unsaved = list_unsaved
        self._clock = clock
        self._woken = asyncio.Event()
        self._deliver = False
        self._close = False
        self._stop = ""
        self._stop_ordered = asyncio.Event()
        self._condemned = False
        self.listener: Listener | None = None
        self.evidence = Evidence(project)
        self.meanwhile: frozenset[str] = frozenset()
        """Paths that attempts in the same tree touched which have ended since this one began."""

    # --- orders: each is remembered, and carried out as soon as it can be ---------------------------------

    def deliver(self) -> None:
        """Send what is in the outbox."""
        self._deliver = True
        self._woken.set()

    def close(self) -> None:
        """No more messages."""
        self._close = True
        self._woken.set()

    def stop(self, reason: str) -> None:
        """End it; the first reason stands."""
        self._stop = self._stop or reason
        self._stop_ordered.set()
        self._woken.set()

    # --- its life -----------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Everything, from wherever it stands, to the end."""
        try:
            failure = await self._start()
        except Exception as error:
            log.exception("attempt %s could not be started", self.id)
            failure = Failure(kind="start", sentence=f"The agent could not be started: {error}.")
        if failure is None:
            failure = await self._follow()
        await self._finish(failure)

    async def give_up(self, error: Exception) -> None:
        """A fault of ours in following it: it can't be vouched for, and is ended with all it started."""
        reason = f"A fault in Promptside: {type(error).__name__}: {error}. The log has the details."
        failure = Failure(kind="fault", sentence=reason)
        try:
            await self._end(self.hand, "a fault in Promptside")
            await processes.end_marked(self.id)
            self.hand.remove_environment()
        finally:
            self._tell(AttemptEnded(at=self._clock(), attempt=self.id, failure=failure))

    async def _start(self) -> Failure | None:
        task, attempt, stage = self._stand()
        if not isinstance(await asyncio.to_thread(self.hand.state), NotStarted):
            if attempt.started is None:
                self._tell(self._started())
            return None
        if self._stop:
            return None
        if not self._project.is_dir():
            return Failure(
                kind="no_directory",
                sentence=f"The project's directory {self._project} is not there any more.",
                hint="Put it back and retry, or promptside project remove.",
            )
        self.hand.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        free = shutil.disk_usage(self.hand.directory).free
        if free < FREE_BYTES:
            return _disk_full(free)
        if not (self.hand.directory / "spec.json").exists():
            failure = await self._unless_stopped(self._prepare(task, attempt, stage))
            if self._stop:
                await self._end(Attempt(self.hand.directory / "preparation"), self._stop)
            if failure is not None or self._stop:
                return failure
        await self._list_unsaved()
        try:
            await asyncio.to_thread(self._launcher.greet, self.hand)
            await asyncio.to_thread(self.hand.start)
        except StartFailedError as error:
            return Failure(kind="start", sentence=f"The agent could not be started: {error}.", retryable=True)
        self._tell(self._started())
        return None

    async def _prepare(self, task: Task, attempt: AttemptState, stage: Stage) -> Failure | None:
        """Keep the tree, render the prompt, write the directory: all that a start needs."""
        scene = await self._launcher.set_up(task)
        try:
            before = await checkpoint.take(self._project, self._keep, f"task-{task.id}")
        except CheckpointFailed as error:
            return Failure(
                kind="checkpoint", sentence=f"The files could not be kept before the start: {error}."
            )
        await asyncio.to_thread(write_json, self.hand.directory / "before.json", before)
        return await self._launcher.prepare(self.hand, task, attempt, stage, scene)

    async def _unless_stopped(self, work: Coroutine[Any, Any, Failure | None]) -> Failure | None:
        """What the work comes to; it is given up when a stop is ordered."""
        doing = asyncio.ensure_future(work)
        stopped = asyncio.ensure_future(self._stop_ordered.wait())
        try:
            await asyncio.wait((doing, stopped), return_when=asyncio.FIRST_COMPLETED)
            return doing.result() if doing.done() else None
        finally:
            doing.cancel()
            stopped.cancel()
            await asyncio.gather(doing, stopped, return_exceptions=True)

    async def _follow(self) -> Failure | None:
        _, attempt, stage = self._stand()
        keeper = self.hand.keeper()
        if keeper is None:
            return None  # stopped before it began
        reader = Reader(wants_structured=self._launcher.schema(stage) is not None)
        redactor = redactor_for(self.hand.directory)
        listener = self.listener = Listener(
            attempt=attempt,
            stage=stage,
            root=self._project,
            current=self._current,
            reader=reader,
            evidence=self.evidence,
            driving=self._launcher.driving(self.hand),
            given_for_good=self._rules,
            stage_rules=await asyncio.to_thread(self._launcher.rules, stage),
            answer=Answer(self._documents, redactor, self._launcher.schema(stage)),
            redactor=redactor,
            hand=self.hand,
            tell=self._tell,
            acted=self._acted,
            clock=self._clock,
        )
        lines = LineReader(self.hand.transcript)
        await self._hear(listener, lines, keeper, stage)
        torn = lines.unfinished()
        if torn.strip():
            listener.torn(lines.offset + len(torn))
        code, signal_, words, overtime = self._exit()
        if overtime and not listener.done:
            self._condemn_overtime(stage)
        return listener.judge(code, signal_, words, stderr=tail(self.hand.stderr))

    async def _hear(self, listener: Listener, lines: LineReader, keeper: Process, stage: Stage) -> None:
        """Read, deliver and watch, until the keeper is dead and nothing is left to be read."""
        limits = limits_for(self._stand()[0].limits, stage)
        dead = asyncio.Event()

        def died() -> None:
            dead.set()
            self._woken.set()

        called_off = processes.on_death(keeper, died)
        loop = asyncio.get_running_loop()
        heard = loop.time()
        kill_at: float | None = None
        try:
            with self._follower.watch(self.hand.directory, self._woken.set):
                while True:
                    last_round = dead.is_set()
                    if await self._read(listener, lines):
                        heard = loop.time()
                        continue
                    if last_round:
                        return
                    self._look_around()
                    if await self._carry_out(listener, keeper):
                        kill_at = kill_at or loop.time() + STOP_SECONDS
                    now = loop.time()
                    if listener.busy:
                        heard = now
                    silent_at = heard + limits.silence_s if limits.silence_s > 0 else None
                    if silent_at is not None and now >= silent_at:
                        self._condemn_silence(stage, limits.silence_s)
                        heard, silent_at = now, None
                    if kill_at is not None and now >= kill_at:
                        log.error("the keeper of attempt %s does not obey and is killed", self.id)
                        processes.send_signal(keeper, signal.SIGKILL)
                        kill_at = now + STOP_SECONDS
                    next_look = min(t for t in (silent_at, kill_at, now + LOOK_SECONDS) if t is not None)
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._woken.wait(), next_look - now)
                    self._woken.clear()
        finally:
            called_off()

    async def _read(self, listener: Listener, lines: LineReader) -> bool:
        """Read one portion; true if there was any."""
        offset = lines.offset
        portion = lines.read()
        for line in portion:
            offset += len(line) + 1
            listener.hear(line, offset)
        if portion:
            await asyncio.sleep(0)  # a flood must not keep the loop from everybody else
        return bool(portion)

    async def _carry_out(self, listener: Listener, keeper: Process) -> bool:
        """What was ordered meanwhile, in an order that loses nothing: messages, end of input, stop.

        True if it was told to stop.
        """
        try:
            if self._deliver:
                self._deliver = False
                listener.deliver()
            if self._close:
                self._close = False
                self.hand.close()
        except OSError as error:
            self._condemn(
                "undelivered",
                f"A message could not be handed to the agent: {error.strerror}.",
                "Is the disk full? Make room, then retry.",
            )
        if not self._stop:
            return False
        reason, self._stop = self._stop, ""
        if not await asyncio.to_thread(self.hand.stop, reason):
            processes.send_signal(keeper, signal.SIGTERM)  # its directory is gone, and with it its control
        return True

    def _look_around(self) -> None:
        """Notice what nobody tells: the directory was removed, the disk is full."""
        try:
            free = shutil.disk_usage(self.hand.directory).free
        except OSError:
            self._condemn(
                "directory_gone",
                "The attempt's directory was removed while its agent was at work.",
                "Leave Promptside's data directory alone, then retry.",
            )
            return
        if free < LAST_BYTES:
            failure = _disk_full(free)
            self._condemn(failure.kind, failure.sentence, failure.hint)

    async def _finish(self, failure: Failure | None) -> None:
        found = find_attempt(task, self.id) if (task := self._current()) else None
        if task is None or found is None or found[2].live is None:
            return
        left = await processes.end_marked(self.id)
        if left:
            pids = ", ".join(str(p.pid) for p in left)
            log.error("processes %s of attempt %s could not be ended", pids, self.id)
        try:
            self.hand.remove_environment()
            await asyncio.to_thread(keep_secrets_told, self.hand.directory)
        except OSError as error:
            log.warning("attempt %s could not be tidied up: %s", self.id, error)
        stage = task.pipeline.stages[found[0]]
        after, changes, proof, note = await self._compare(task, stage)
        self._tell(
            AttemptEnded(
                at=self._clock(),
                attempt=self.id,
                failure=failure,
                usage=self._partial_usage(),
                after=after,
                changes=changes,
                proof=proof,
                note=note or (self.listener.note if self.listener else ""),
            )
        )

    async def _compare(
        self, task: Task, stage: Stage
    ) -> tuple[str, tuple[Change, ...], ProofView | None, str]:
        """What changed since the checkpoint, and for a read-only stage whether the agent can have done it."""
        before = self.before()
        if before is None:
            return "", (), None, ""
        try:
            after = await checkpoint.take(self._project, self._keep, f"task-{task.id}")
            await asyncio.to_thread(write_json, self.hand.directory / "after.json", after)
            found = await checkpoint.changed(self._project, self._keep, before, after)
        except (CheckpointFailed, OSError) as error:
            return "", (), None, f"What it changed could not be found out: {error}."
        changes = tuple(
            Change(path=c.path, kind=c.kind, added=c.added_lines, removed=c.removed_lines) for c in found
        )
        proof = None
        if stage.read_only:
            proof = self.evidence.judge((c.path for c in changes), self._others())
            changes = tuple(c for c in changes if c.path in proof.breach)
        return after.id, changes, proof, ""

    async def _end(self, hand: Attempt, reason: str) -> None:
        """Have a keeper end all it holds, and wait for that; one that doesn't obey is killed."""
        keeper = hand.keeper()
        if keeper is None:
            return
        await asyncio.to_thread(hand.stop, reason)
        try:
            await asyncio.wait_for(processes.death(keeper), STOP_SECONDS)
        except TimeoutError:
            log.warning("the keeper of %s does not obey and is killed", hand.directory)
            processes.send_signal(keeper, signal.SIGKILL)
            await processes.death(keeper)

    def before(self) -> Checkpoint | None:
        """The tree before the attempt started, if it got that far."""
        return read_checkpoint(self.hand.directory / "before.json")

    def _started(self) -> AttemptStarted:
        before = self.before()
        return AttemptStarted(at=self._clock(), attempt=self.id, checkpoint=before.id if before else "")

    def _stand(self) -> tuple[Task, AttemptState, Stage]:
        task = self._current()
        found = find_attempt(task, self.id) if task is not None else None
        if task is None or found is None:
            raise RuntimeError(f"attempt {self.id} belongs to no open task")
        return task, found[2], task.pipeline.stages[found[0]]

    def _condemn_silence(self, stage: Stage, seconds: float) -> None:
        sentence = f"{stage.name} was silent for {_time(seconds)} and was stopped, {WITH_ALL}."
        failure = Failure(kind="silence", sentence=sentence, retryable=True)
        self._tell(Condemned(at=self._clock(), attempt=self.id, failure=failure))

    def _condemn_overtime(self, stage: Stage) -> None:
        limit = limits_for(self._stand()[0].limits, stage).stage_s
        sentence = f"{stage.name} took longer than its {_time(limit)} and was stopped, {WITH_ALL}."
        failure = Failure(kind="time_limit", sentence=sentence, retryable=True)
        self._tell(Condemned(at=self._clock(), attempt=self.id, failure=failure))

    def _condemn(self, kind: str, sentence: str, hint: str) -> None:
        """Say once why it is to be ended."""
        if not self._condemned:
            self._condemned = True
            failure = Failure(kind=kind, sentence=sentence, hint=hint)
            self._tell(Condemned(at=self._clock(), attempt=self.id, failure=failure))

    def _exit(self) -> tuple[int | None, int | None, str, bool]:
        """Code, signal, the keeper's own words about the end, and whether a time limit brought it."""
        match self.hand.state():
            case Ended(exit=exit_):
                words = exit_.detail if exit_.reason != "exited" else ""
                return exit_.code, exit_.signal, words, exit_.reason == "limit"
            case Lost():
                return None, None, "the process that held the agent was killed", False
            case _:
                return None, None, "", False

    def _partial_usage(self) -> Usage | None:
        return self.listener.usage() if self.listener is not None else None


WITH_ALL = "with every process it had started"


def _disk_full(free: int) -> Failure:
    return Failure(
        kind="disk_full",
        sentence=f"Only {free >> 20} MB are free where transcripts are kept.",
        hint="Make room (promptside gc shows what can go), then retry.",
    )


def _time(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:g} s"
    return f"{round(seconds / 60)} min" if seconds < 7200 else f"{round(seconds / 3600)} h"


def read_checkpoint(path: Path) -> Checkpoint | None:
    """A checkpoint that was noted in an attempt directory."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Checkpoint)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
