"""A person with a home, a project and a daemon of their own, who types `promptside`; nothing of it is left behind.

Every process that comes of it carries this home in its environment: by that it is found again.
"""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self
from unittest import mock

import msgspec
from msgspec import Struct
from rig.scratch import scratch

from promptside_protocol import connect
from promptside_protocol.blocking import request
from promptside_protocol.errors import PromptsideError
from promptside_protocol.queries import GetTask

DEADLINE_SECONDS = 60.0
LEAVING_SECONDS = 60.0
"""The keeper's graces, and some more for a busy machine."""


class Ran(Struct, frozen=True, kw_only=True):
    """What a command said, and how it ended."""

    words: tuple[str, ...]
    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The document that it printed."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """The documents that it printed, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]

    def __str__(self) -> str:
        return f"promptside {' '.join(self.words)}: {self.code}\n{self.out}{self.err}"


class Running:
    """A command that runs beside the test; a context manager that ends it."""

    def __init__(self, words: tuple[str, ...], process: subprocess.Popen[bytes]) -> None:
        self.words = words
        self.process = process
        self._held = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def line(self) -> Any:
        """The next document that it prints; None at its end."""
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        while b"\n" not in self._held:
            came = select.select([descriptor], [], [], DEADLINE_SECONDS)[0]
            assert came, f"promptside {' '.join(self.words)} says nothing more"
            chunk = os.read(descriptor, 1 << 16)
            if not chunk:
                return None
            self._held += chunk
        line, _, self._held = self._held.partition(b"\n")
        return json.loads(line)

    def until(self, condition: Callable[[Any], object]) -> Any:
        """The first document that fulfils the condition."""
        while (document := self.line()) is not None:
            if condition(document):
                return document
        raise AssertionError(f"promptside {' '.join(self.words)} ended before that: {self.end()}")

    def end(self) -> int:
        """Wait for its end; its exit code."""
        return self.process.wait(DEADLINE_SECONDS)


class User:
    """Made and removed by the fixture `user`."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.home = base / "home"
        self.data = base / "ps"
        self.project = base / "a project"
        self.home.mkdir()
        self.project.mkdir()
        self.environment = {
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PROMPTSIDE_HOME": str(self.data),
            "TERM": "dumb",
            "TMPDIR": str(base),
        }
        (self.home / ".gitconfig").write_text(
            "[user]\n\tname = A Person\n\temail = person@example.invalid\n[init]\n\tdefaultBranch = main\n"
        )

    # --- typing --------------------------------------------------------------------------------------------

    def promptside(
        self,
        *words: str,
        code: int | None = 0,
        stdin: str = "",
        cwd: Path | None = None,
        more: Mapping[str, str] | None = None,
    ) -> Ran:
        """Run a command to its end; `code` is the exit code that it must have, None for any."""
        done = subprocess.run(
            [sys.executable, "-m", "promptside_cli", *words],
            cwd=cwd or self.project,
            env={**self.environment, **(more or {})},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
            check=False,
        )
        ran = Ran(words=words, code=done.returncode, out=done.stdout, err=done.stderr)
        assert code is None or ran.code == code, f"expected {code}, but {ran}{self.log_tail()}"
        return ran

    def start(self, *words: str) -> Running:
        """Run a command beside the test."""
        process = subprocess.Popen(
            [sys.executable, "-m", "promptside_cli", *words],
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        return Running(words, process)

    def git(self, *words: str) -> str:
        """Run git in the project; what it printed."""
        return subprocess.run(
            ["git", *words],
            cwd=self.project,
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    def commit_all(self) -> None:
        """Make the project a repository with everything that is in it committed."""
        self.git("init", "--quiet")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=Begin")

    # --- looking -------------------------------------------------------------------------------------------

    def task(self, number: int = 1) -> Any:
        """The task as `task show --json` has it."""
        return self.promptside("task", "show", str(number), "--json").data

    def stage(self, name: str, number: int = 1) -> Any:
        """One stage of the task."""
        return next(stage for stage in self.task(number)["stages"] if stage["id"] == name)

    def look(self, number: int = 1) -> Any:
        """The task as the daemon has it, asked without starting a program."""
        with mock.patch.dict(os.environ, self.environment, clear=True):
            query = GetTask(project=str(self.project.resolve()), task=number)
            return msgspec.json.decode(
                msgspec.json.encode(request(connect.hello("terminal"), query, start=False))
            )

    def until(self, condition: Callable[[Any], object], number: int = 1) -> Any:
        """The task when it fulfils the condition; looked at whenever `watch` says that something happened."""
        with self.start("watch", str(number), "--json") as watch:
            while not condition(view := self._seen(number)):
                assert watch.line() is not None, f"the task rests, and this never came: {json.dumps(view)}"
        return view

    def _seen(self, number: int) -> Any:
        try:
            return self.look(number)
        except PromptsideError:  # the daemon is gone; a command starts it again
            return self.task(number)

    def waits(self, kind: str, number: int = 1) -> Any:
        """What the task waits for, when it waits for this."""
        view = self.until(lambda task: (task["waiting_for"] or {}).get("kind") == kind, number)
        return view["waiting_for"]

    def transcript(self, stage: str, attempt: int = 1) -> bytes:
        """The transcript of an attempt, as the agent wrote it."""
        attempts = self.stage(stage)["attempts"]
        return Path(next(a for a in attempts if a["n"] == attempt)["transcript"]).read_bytes()

    def log_tail(self) -> str:
        """The last of what the daemon has logged, for the message of a failed test."""
        try:
            return "\n".join(["", *(self.data / "log" / "daemon.log").read_text().splitlines()[-40:]])
        except OSError:
            return ""

    # --- processes -----------------------------------------------------------------------------------------

    def daemon(self) -> int:
        """The daemon's process number."""
        number: int = self.promptside("daemon", "status", "--json").data["pid"]
        return number

    def processes(self) -> dict[int, str]:
        """Every living process of this person, with what it was started as.

        Where none is seen it is looked twice: one that ends while we look may have handed over to a child that began
        after the list was made.
        """
        return self._living() or self._living()

    def _living(self) -> dict[int, str]:
        mark, place = f"HOME={self.home}".encode(), str(self.base)
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                # A keeper has no environment of its own; it is known by its directory.
                if place in command or mark in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = command
            except OSError:
                continue  # it ended while we looked, or is somebody else's
        return found

    def keepers(self) -> list[int]:
        """The keepers among them."""
        return [
            pid for pid, command in self.processes().items() if "-I -S" in command and "keeper" in command
        ]

    def agents(self) -> dict[int, str]:
        """Every living process that was started for an attempt, the agent's own children among them."""
        found = {}
        for pid, command in self.processes().items():
            try:
                variables = (Path("/proc") / str(pid) / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(variable.startswith(b"PROMPTSIDE_ATTEMPT=") for variable in variables):
                found[pid] = command
        return found

    def kill(self, *pids: int) -> None:
        """Kill some of this person's processes at once, and wait until they are gone."""
        ours = self.processes()
        handles = []
        for pid in pids:
            assert pid in ours, f"{pid} is not ours"
            handles.append(os.pidfd_open(pid))
        try:
            for handle in handles:
                with contextlib.suppress(ProcessLookupError):  # it died of the others' death
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
            for handle in handles:
                assert select.select([handle], [], [], DEADLINE_SECONDS)[0], f"one of {pids} does not end"
        finally:
            for handle in handles:
                os.close(handle)

    def leave(self) -> None:
        """Abandon what is open, stop the daemon, and make sure that no process is left."""
        if self.processes():
            listed = self.promptside("task", "list", "--all-projects", "--json", code=None)
            for task in listed.data if listed.code == 0 else []:
                if task["state"] in ("taken", "paused"):
                    where = ("--project", task["project"])
                    self.promptside("task", "abandon", str(task["id"]), *where, code=None)
        due = time.monotonic() + LEAVING_SECONDS
        while self.processes() and time.monotonic() < due:
            # Again and again: one that somebody's last breath has started may not be seen, or not listen, yet.
            self.promptside("daemon", "stop", code=None)
            _wait_for_none(self.processes, seconds=1)
        self.wait_for_no_process()

    def wait_for_no_process(self) -> None:
        """Return when no process of this person is left; fail, and end them, if some stay."""
        left = _wait_for_none(self.processes)
        self.kill(*self.processes())
        assert not left, f"these processes were left behind: {left}{self.log_tail()}"


def new_user() -> Iterator[User]:
    """A person for one test, in a directory short enough for a socket."""
    base = scratch("side-")
    user = User(base)
    try:
        yield user
        user.leave()
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _wait_for_none(
    processes: Callable[[], dict[int, str]], seconds: float = LEAVING_SECONDS
) -> dict[int, str]:
    """Wait until none is left; those that are when the time is over."""
    due = time.monotonic() + seconds
    while (left := processes()) and time.monotonic() < due:
        handles = []
        for pid in left:
            try:
                handles.append(os.pidfd_open(pid))
            except ProcessLookupError:
                continue
        select.select(handles[:1], [], [], max(due - time.monotonic(), 0))
        for handle in handles:
            os.close(handle)
    return left
