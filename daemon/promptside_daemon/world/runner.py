"""One attempt, from the rendered prompt to the last process gone; what it finds comes back as events.

It can be begun anew at any point: whatever has happened is read off the attempt directory, never remembered.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import time
from collections.abc import Callable
from pathlib import Path

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
from promptside_daemon.world.claude.readings import Reading
from promptside_daemon.world.documents import Documents, write_json
from promptside_daemon.world.evidence import Evidence
from promptside_daemon.world.follow import Follower, LineReader
from promptside_daemon.world.launch import Launcher
from promptside_daemon.world.listener import Listener
from promptside_daemon.world.secrets import keep_secrets_told, redactor_for
from promptside_protocol.views import Change, ProofView

log = logging.getLogger(__name__)

FREE_BYTES = 64 * 1024 * 1024
"""Less space than this and nothing is started: the CLI works on silently while its output is lost."""
STDERR_TAIL = 16 * 1024


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
        acted: Callable[[Reading], None],
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
        self._clock = clock
        self._woken = asyncio.Event()
        self._deliver = False
        self._close = False
        self._stop = ""
        self.listener: Listener | None = None
        self.evidence = Evidence(project)

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

    async def _start(self) -> Failure | None:
        task, attempt, stage = self._stand()
        if not isinstance(await asyncio.to_thread(self.hand.state), NotStarted):
            if attempt.started is None:
                self._tell(self._started())
            return None
        if self._stop:
            return None
        self.hand.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        free = shutil.disk_usage(self.hand.directory).free
        if free < FREE_BYTES:
            return Failure(
                kind="disk_full",
                sentence=f"Only {free >> 20} MB are free where transcripts are kept.",
                hint="Make room, then retry.",
            )
        if not (self.hand.directory / "spec.json").exists():
            failure = await self._prepare(task, attempt, stage)
            if failure is not None:
                return failure
        self._launcher.greet(self.hand)
        try:
            await asyncio.to_thread(self.hand.start)
        except StartFailedError as error:
            return Failure(kind="start", sentence=f"The agent could not be started: {error}.", retryable=True)
        self._tell(self._started())
        return None

    async def _prepare(self, task: Task, attempt: AttemptState, stage: Stage) -> Failure | None:
        """Keep the tree, render the prompt, write the directory: all that a start needs."""
        try:
            before = await checkpoint.take(self._project, self._keep, f"task-{task.id}")
        except CheckpointFailed as error:
            return Failure(
                kind="checkpoint", sentence=f"The files could not be kept before the start: {error}."
            )
        write_json(self.hand.directory / "before.json", before)
        return await self._launcher.prepare(self.hand, task, attempt, stage)

    async def _follow(self) -> Failure | None:
        task, attempt, stage = self._stand()
        limits = limits_for(task.limits, stage)
        keeper = self.hand.keeper()
        if keeper is None:
            return None  # stopped before it began
        reader = Reader(wants_structured=self._launcher.schema(stage) is not None)
        redactor = redactor_for(self.hand.directory)
        self.listener = Listener(
            attempt=attempt,
            stage=stage,
            root=self._project,
            current=self._current,
            reader=reader,
            evidence=self.evidence,
            driving=self._launcher.driving(self.hand),
            given_for_good=self._rules,
            stage_rules=self._launcher.rules(stage),
            answer=Answer(self._documents, redactor, self._launcher.schema(stage)),
            redactor=redactor,
            hand=self.hand,
            tell=self._tell,
            acted=self._acted,
            clock=self._clock,
        )
        lines = LineReader(self.hand.transcript)
        dead = asyncio.Event()

        def died() -> None:
            dead.set()
            self._woken.set()

        called_off = processes.on_death(keeper, died)
        loop = asyncio.get_running_loop()
        heard = loop.time()
        try:
            with self._follower.watch(self.hand.directory, self._woken.set):
                while True:
                    last_round = dead.is_set()
                    if await self._read(lines):
                        heard = loop.time()
                        continue
                    if last_round:
                        break
                    await self._carry_out()
                    busy = reader.busy or self.listener.quiet
                    if busy:
                        heard = loop.time()
                    silence = limits.silence_s - (loop.time() - heard) if limits.silence_s > 0 else None
                    if silence is not None and silence <= 0:
                        self._condemn_silence(stage, limits.silence_s)
                        silence, heard = None, loop.time()
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._woken.wait(), silence)
                    self._woken.clear()
        finally:
            called_off()
        torn = lines.unfinished()
        if torn.strip():
            self.listener.torn(lines.offset + len(torn))
        return self.listener.judge(*self._exit(), stderr=self._stderr())

    async def _read(self, lines: LineReader) -> bool:
        """Read one portion; true if there was any."""
        if self.listener is None:
            return False
        offset = lines.offset
        portion = lines.read()
        for line in portion:
            offset += len(line) + 1
            self.listener.hear(line, offset)
        if portion:
            await asyncio.sleep(0)  # a flood must not keep the loop from everybody else
        return bool(portion)

    async def _carry_out(self) -> None:
        """What was ordered meanwhile, in an order that loses nothing: messages, end of input, stop."""
        if self._deliver and self.listener is not None:
            self._deliver = False
            self.listener.deliver()
        if self._close:
            self._close = False
            self.hand.close()
        if self._stop:
            reason, self._stop = self._stop, ""
            await asyncio.to_thread(self.hand.stop, reason)

    async def _finish(self, failure: Failure | None) -> None:
        found = find_attempt(task, self.id) if (task := self._current()) else None
        if task is None or found is None or found[2].live is None:
            return
        left = await processes.end_marked(self.id)
        if left:
            pids = ", ".join(str(p.pid) for p in left)
            log.error("processes %s of attempt %s could not be ended", pids, self.id)
        stage = task.pipeline.stages[found[0]]
        after, changes, proof, note = await self._compare(stage)
        self.hand.remove_environment()
        await asyncio.to_thread(keep_secrets_told, self.hand.directory)
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

    async def _compare(self, stage: Stage) -> tuple[str, tuple[Change, ...], ProofView | None, str]:
        """What changed since the checkpoint, and for a read-only stage whether the agent can have done it."""
        before = self.before()
        if before is None:
            return "", (), None, ""
        try:
            after = await checkpoint.take(self._project, self._keep, f"task-{self._stand()[0].id}")
            write_json(self.hand.directory / "after.json", after)
            found = await checkpoint.changed(self._project, self._keep, before, after)
        except CheckpointFailed as error:
            return "", (), None, f"What it changed could not be found out: {error}."
        changes = tuple(
            Change(path=c.path, kind=c.kind, added=c.added_lines, removed=c.removed_lines) for c in found
        )
        proof = None
        if stage.read_only:
            proof = self.evidence.judge((c.path for c in changes), self._others())
            changes = tuple(c for c in changes if c.path in proof.breach)
        return after.id, changes, proof, ""

    def broken(self, error: Exception) -> AttemptEnded:
        """A fault of ours in following it: the attempt can't be vouched for."""
        self.hand.stop("a fault in Promptside")
        failure = Failure(kind="fault", sentence=f"A fault in Promptside: {error}. The log has the details.")
        return AttemptEnded(at=self._clock(), attempt=self.id, failure=failure)

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
        minutes = max(round(seconds / 60), 1)
        self._tell(
            Condemned(
                at=self._clock(),
                attempt=self.id,
                failure=Failure(
                    kind="silence",
                    sentence=f"{stage.name} was silent for {minutes} min and was stopped, "
                    "with every process it had started.",
                    retryable=True,
                ),
            )
        )

    def _exit(self) -> tuple[int | None, int | None, str]:
        """Code, signal, and the keeper's own words about the end."""
        match self.hand.state():
            case Ended(exit=exit_):
                words = exit_.detail if exit_.reason != "exited" else ""
                return exit_.code, exit_.signal, words
            case Lost():
                return None, None, "the process that held the agent was killed"
            case _:
                return None, None, ""

    def _stderr(self) -> str:
        try:
            with self.hand.stderr.open("rb") as file:
                file.seek(0, 2)
                file.seek(max(file.tell() - STDERR_TAIL, 0))
                return file.read().decode(errors="replace")
        except FileNotFoundError:
            return ""

    def _partial_usage(self) -> Usage | None:
        return self.listener.usage() if self.listener is not None else None


def read_checkpoint(path: Path) -> Checkpoint | None:
    """A checkpoint that was noted in an attempt directory."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Checkpoint)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
