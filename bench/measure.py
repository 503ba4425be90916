"""What the benchmarks share: a scratch person with a daemon, a server on pipes, medians, and one table.

A figure is a ratio to a floor that is measured in the same run, for the machines are shared.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

from msgspec import Struct


class Figure(Struct, frozen=True, kw_only=True):
    """One row: `value` and `floor` in the same unit, `goal` the ratio that is wanted at most."""

    id: str
    what: str
    value: float
    floor: float
    unit: str
    goal: float

    @property
    def ratio(self) -> float:
        return self.value / self.floor

    @property
    def good(self) -> bool:
        return self.ratio <= self.goal


def median(measure: Callable[[], float], times: int = 5) -> float:
    """The median of several measurements."""
    return statistics.median(measure() for _ in range(times))


def table(figures: list[Figure]) -> str:
    """The rows as text."""
    lines = [f"{'id':5} {'figure':>10} {'floor':>10} {'':3} {'ratio':>7} {'goal':>7}      what"]
    for f in figures:
        verdict = "ok  " if f.good else "MISS"
        lines.append(
            f"{f.id:5} {f.value:10.1f} {f.floor:10.1f} {f.unit:3} {f.ratio:7.2f} {f.goal:7.2f} {verdict} {f.what}"
        )
    return "\n".join(lines)


class Person:
    """A home, a repository and a daemon of their own, below one directory."""

    def __init__(self, base: Path) -> None:
        self.project = base / "project"
        self.project.mkdir()
        self.data = base / "ps"
        self.environment = {
            "HOME": str(base),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "PROMPTSIDE_HOME": str(self.data),
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        (self.project / "readme").write_text("A project.\n")
        who = ["-c", "user.name=Bench", "-c", "user.email=bench@example.invalid"]
        for words in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "Begin"]):
            subprocess.run(["git", *words], cwd=self.project, env=self.environment, check=True)

    def promptside(self, *words: str) -> str:
        """Run a command; what it prints."""
        return subprocess.run(
            [sys.executable, "-m", "promptside_cli", *words],
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        ).stdout


@contextlib.contextmanager
def person() -> Iterator[Person]:
    """Somebody of whom nothing stays."""
    base = Path(tempfile.mkdtemp(prefix="bench-")).resolve()
    made = Person(base)
    try:
        yield made
    finally:
        made.promptside("daemon", "stop")
        shutil.rmtree(base, ignore_errors=True)


class Pipe:
    """A language server on pipes, spoken to by blocking calls: a client that adds as little as it can."""

    def __init__(self, command: list[str], environment: dict[str, str], cwd: Path) -> None:
        self.process = subprocess.Popen(
            command, env=environment, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._last = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def tell(self, method: str, params: Any) -> None:
        self._write({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, method: str, params: Any, heard: Callable[[Any], None] | None = None) -> Any:
        """The answer to a request; what comes before it goes to `heard`."""
        self._last += 1
        self._write({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
        while True:
            message = self.read()
            if message.get("id") == self._last and "method" not in message:
                if "error" in message:
                    raise RuntimeError(message["error"]["message"])
                return message["result"]
            if heard is not None:
                heard(message)

    def initialize(self, project: Path, capabilities: dict[str, Any]) -> None:
        """The handshake."""
        self.ask("initialize", {"processId": None, "rootUri": project.as_uri(), "capabilities": capabilities})
        self.tell("initialized", {})

    def command(self, name: str, heard: Callable[[Any], None] | None = None, /, **arguments: Any) -> Any:
        params = {"command": f"promptside.{name}", "arguments": [arguments]}
        return self.ask("workspace/executeCommand", params, heard)

    def read(self) -> Any:
        """The next message."""
        assert self.process.stdout is not None
        length = 0
        while (line := self.process.stdout.readline()) != b"\r\n":
            if not line:
                raise EOFError("the server has ended")
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return json.loads(self.process.stdout.read(length))

    def cpu(self) -> float:
        """CPU seconds that the server has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _write(self, message: Any) -> None:
        assert self.process.stdin is not None
        body = json.dumps(message).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.process.stdin.flush()


def server(person: Person) -> Pipe:
    """The language server."""
    return Pipe([sys.executable, "-m", "promptside_server"], person.environment, person.project)


def clock(work: Callable[[], object]) -> float:
    """Seconds that it took."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
