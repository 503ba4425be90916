"""P6s: starts. The server to its answer to `initialize`, against pygls's own hello server; the daemon until it is ready
and two short calls of the terminal, against a Python that does nothing."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from measure import Figure, Person, Pipe, clock, person

RUNS = 11
HELLO = [sys.executable, str(Path(__file__).with_name("hello_server.py"))]
NOTHING = [sys.executable, "-c", "pass"]
PROMPTSIDE = [sys.executable, "-m", "promptside_cli"]
MSGSPEC = [sys.executable, "-c", "import msgspec"]
LIBRARIES = [sys.executable, "-c", "import asyncio, msgspec, sqlite3"]
"""What the terminal and the daemon can't do without: it tells how far below the goal they could come at all."""


def figures() -> list[Figure]:
    """All of them in turn, again and again, so that a busy moment meets figures and floors alike."""
    with person() as somebody:
        somebody.promptside("task", "new", "A task")
        somebody.promptside("task", "list")  # whatever is compiled at first is compiled now
        measures: dict[str, Callable[[], float]] = {
            "server": lambda: _initialize([sys.executable, "-m", "promptside_server"], somebody),
            "hello": lambda: _initialize(HELLO, somebody),
            "list": lambda: _run([*PROMPTSIDE, "task", "list"], somebody),
            "version": lambda: _run([*PROMPTSIDE, "--version"], somebody),
            "msgspec": lambda: _run(MSGSPEC, somebody),
            "libraries": lambda: _run(LIBRARIES, somebody),
            "pass": lambda: _run(NOTHING, somebody),
            "daemon": lambda: _daemon(somebody),
        }
        taken: dict[str, list[float]] = {name: [] for name in measures}
        for _ in range(RUNS):
            for name, measure in measures.items():
                taken[name].append(measure())
    middle = {name: statistics.median(seconds) * 1e3 for name, seconds in taken.items()}
    codec = f"{middle['msgspec'] / middle['pass']:.1f} x is importing msgspec alone"
    libraries = (
        f"{middle['libraries'] / middle['pass']:.1f} x is importing asyncio, msgspec and sqlite3 alone"
    )
    return [
        _figure("promptside lsp to the answer of initialize", middle["server"], middle["hello"], 1.3),
        _figure("promptside --version", middle["version"], middle["pass"], 4.0),
        _figure(f"promptside task list; {codec}", middle["list"], middle["pass"], 4.0),
        _figure(f"daemon, cold, until it is ready; {libraries}", middle["daemon"], middle["pass"], 3.0),
    ]


def _figure(what: str, value: float, floor: float, goal: float) -> Figure:
    return Figure(id="P6s", what=what, value=value, floor=floor, unit="ms", goal=goal)


def _run(command: list[str], somebody: Person) -> float:
    def run() -> None:
        subprocess.run(
            command, cwd=somebody.project, env=somebody.environment, stdout=subprocess.DEVNULL, check=True
        )

    return clock(run)


def _daemon(somebody: Person) -> float:
    """A start from nothing; the command returns when the daemon listens."""
    somebody.promptside("daemon", "stop")
    return _run([sys.executable, "-P", "-m", "promptside_daemon", "run"], somebody)


def _initialize(command: list[str], somebody: Person) -> float:
    def start() -> None:
        pipes.append(Pipe(command, somebody.environment, somebody.project))
        pipes[0].ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}})

    pipes: list[Pipe] = []
    seconds = clock(start)
    pipes[0].__exit__()
    return seconds
