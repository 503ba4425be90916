"""The daemon's hand on an attempt directory: the only way to a running agent.

Every order can be given twice and can be asked whether it happened, so that a daemon may die at any moment.
"""

import os
import select
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from promptside_daemon.world import keeper as keeper_program
from promptside_daemon.world.processes import Process, alive, reap, send_signal

# Far beyond what a start takes (about two bare Pythons), for a machine that swaps.
START_SECONDS = 30.0


class Limits(Struct, frozen=True, kw_only=True):
    # Awake time from the start of the agent; None is no limit.
    wall_seconds: float | None = None
    # Between end of input, SIGTERM and SIGKILL, each.
    grace_seconds: float = 5.0


class AttemptSpec(Struct, frozen=True, kw_only=True):
    """What is to be run. `id` marks every process of the attempt: no other one, of any project, has it."""

    id: str
    argv: tuple[str, ...]
    # An absolute path.
    cwd: str
    limits: Limits = Limits()
    # The line that asks the agent to leave off, for an agent that takes one.
    interrupt: str | None = None


class Exit(Struct, frozen=True, kw_only=True):
    """How an attempt ended. `detail` says why in a sentence, unless the agent ended by itself."""

    reason: Literal["exited", "stopped", "limit", "unstartable", "failed"]
    detail: str
    code: int | None
    signal: int | None
    # Seconds since the epoch.
    started: float
    ended: float
    # Of all processes of the attempt together, and of the largest of them.
    cpu_seconds: float
    max_rss_bytes: int
    # The number of the last message the agent got.
    forwarded: int
    # How many processes the agent left behind and were ended, and how many could not be.
    swept: int
    left: int


class NotStarted(Struct, frozen=True, kw_only=True, tag="not_started"):
    """No keeper has taken the directory."""


class Running(Struct, frozen=True, kw_only=True, tag="running"):
    keeper: Process


class Ended(Struct, frozen=True, kw_only=True, tag="ended"):
    exit: Exit


class Lost(Struct, frozen=True, kw_only=True, tag="lost"):
    """The keeper is gone without a word: killed, or the machine restarted. `end_marked` ends what it left."""


State = NotStarted | Running | Ended | Lost


class StartFailedError(Exception):
    """No keeper could be started; the sentence says why."""


class Attempt:
    """One attempt directory. It holds nothing in memory: two of these on one directory are as good as one."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.transcript = directory / "transcript.ndjson"
        self.stderr = directory / "stderr.log"
        self.environment = directory / "environment"
        self._inbox = directory / "inbox"

    def create(self, spec: AttemptSpec, environment: Mapping[str, str], prompt: str = "") -> None:
        """Write everything a start needs, safe on the disk; a directory already complete stays as it is."""
        # Written last: where it is, all the rest is.
        complete = self.directory / "spec.json"
        if complete.exists():
            return
        for directory in (self.directory, self._inbox):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        pairs = [os.fsencode(f"{name}={value}") for name, value in environment.items()]
        _write(self.environment, b"".join(pair + b"\0" for pair in pairs), sync=True)
        _write(self.directory / "prompt.md", prompt.encode(), sync=True)
        beside = self.directory / "spec.json.new"
        _write(beside, msgspec.json.encode(spec), sync=True)
        beside.rename(complete)
        descriptor = os.open(self.directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def start(self) -> None:
        """Start the keeper, unless there is or was one; raises StartFailedError.

        Waits until the keeper takes orders, for the start of two Pythons: call it in a thread. After a crash
        in the middle call it again: of two keepers for one directory the second leaves at once.
        """
        if self.keeper() is not None:
            return
        reader, writer = os.pipe()
        try:
            actions = [
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, writer, 1),
                (os.POSIX_SPAWN_DUP2, writer, 2),
            ]
            command = [sys.executable, "-I", "-S", _keeper_path(), str(self.directory)]
            # Only what loading the interpreter may need; the agent gets the environment in the file.
            loading = {name: value for name, value in os.environ.items() if name.startswith(("LD_", "DYLD_"))}
            pid = os.posix_spawn(sys.executable, command, loading, file_actions=actions)
        except OSError as error:
            os.close(reader)
            raise StartFailedError(f"no keeper could be started: {error}") from error
        finally:
            os.close(writer)
        with os.fdopen(reader, "rb", buffering=0) as answer:
            said = _read_to_end(answer.fileno())
        if said is None:
            os.kill(pid, signal.SIGKILL)
            said = f"it did not answer for {START_SECONDS:g} seconds"
        keeper = self.keeper()
        if keeper is None or keeper.pid != pid:
            os.waitpid(pid, 0)
        if keeper is None:
            raise StartFailedError(f"the keeper failed at its start: {said.strip()[-1000:]}")
        if said:
            with self.stderr.open("a") as stderr:
                stderr.write(said)

    def send(self, number: int, message: bytes) -> None:
        """Hand the agent a message, one line: once, in the order of the numbers, which are 1, 2, 3 …

        The same number again is the same message. After `close` or `stop` none is forwarded any more.
        """
        if not message or b"\n" in message or number < 1:
            raise ValueError(f"message {number} is not one line")
        name = f"{number:06d}"
        target = self._inbox / f"{name}.json"
        if not target.exists():
            beside = self._inbox / f".{name}.{os.getpid()}"
            try:
                _write(beside, message)
            except OSError:
                beside.unlink(missing_ok=True)
                raise
            beside.rename(target)
        self._tell(b"ring")

    def close(self) -> None:
        """End the agent's input, after every message sent before."""
        try:
            _write(self._inbox / "END", b"")
        except OSError:  # a full disk: then the keeper alone remembers
            if not self._tell(b"close"):
                raise
        self._tell(b"ring")

    def stop(self, reason: str) -> bool:
        """Tell the keeper to end the agent and all its processes; false if there is none."""
        if self._tell(b"stop " + " ".join(reason.split()).encode()[:400]):
            return True
        keeper = self.keeper()
        return keeper is not None and send_signal(keeper, signal.SIGTERM)

    def state(self) -> State:
        """How the attempt stands; it has ended when its keeper has (`on_death`), and not before."""
        keeper = self.keeper()
        if keeper is None:
            return NotStarted()
        if alive(keeper):
            return Running(keeper=keeper)
        reap(keeper)
        try:
            return Ended(exit=msgspec.json.decode((self.directory / "exit.json").read_bytes(), type=Exit))
        except (FileNotFoundError, msgspec.DecodeError):
            return Lost()

    def keeper(self) -> Process | None:
        """The keeper that took this directory, alive or dead."""
        try:
            return msgspec.json.decode((self.directory / "keeper.json").read_bytes(), type=Process)
        except FileNotFoundError:
            return None

    def forwarded(self) -> int:
        """The number of the last message that was handed to the agent whole."""
        try:
            return int((self._inbox / "done").read_bytes() or 0)
        except FileNotFoundError:
            return 0

    def remove_environment(self) -> None:
        """To be called when the attempt, and the checks that run with its environment, are over (DA-10)."""
        self.environment.unlink(missing_ok=True)

    def _tell(self, command: bytes) -> bool:
        """False if no keeper listens: not yet (then it looks at the inbox by itself), or no more."""
        try:
            control = os.open(self.directory / "control", os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return False
        try:
            # Shorter than what a pipe takes in one piece: commands of two daemons don't mix.
            os.write(control, command + b"\n")
        except (BlockingIOError, BrokenPipeError):
            return False
        finally:
            os.close(control)
        return True


def _keeper_path() -> str:
    """The keeper as bytecode, which the import above has brought up to date; it starts a quarter faster."""
    compiled = keeper_program.__spec__.cached
    source = keeper_program.__file__
    try:
        # Where bytecode may not be written (PYTHONDONTWRITEBYTECODE) an older one can be lying there.
        current = compiled is not None and Path(compiled).stat().st_mtime >= Path(source).stat().st_mtime
    except OSError:
        current = False
    return compiled if compiled is not None and current else source


def _read_to_end(descriptor: int) -> str | None:
    """What is said until the other end is closed; None if that takes too long."""
    said = b""
    while select.select([descriptor], [], [], START_SECONDS)[0]:
        chunk = os.read(descriptor, 65536)
        if not chunk:
            return said.decode(errors="replace")
        said += chunk
    return None


def _write(path: Path, content: bytes, *, sync: bool = False) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        if sync:
            file.flush()
            os.fsync(file.fileno())
