"""P6s: from starting the server to its answer to `initialize`, against pygls's own hello server."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

from measure import Figure, Person, Pipe, clock, person

RUNS = 11


def figures() -> list[Figure]:
    """Each in turn, so that a busy moment meets both."""
    ours: list[float] = []
    floors: list[float] = []
    hello = [sys.executable, str(Path(__file__).with_name("hello_server.py"))]
    with person() as somebody:
        for _ in range(RUNS):
            ours.append(_start([sys.executable, "-m", "promptside_server"], somebody))
            floors.append(_start(hello, somebody))
    return [
        Figure(
            id="P6s",
            what="start to the answer of initialize, against pygls's hello server",
            value=statistics.median(ours) * 1e3,
            floor=statistics.median(floors) * 1e3,
            unit="ms",
            goal=1.3,
        )
    ]


def _start(command: list[str], somebody: Person) -> float:
    def start() -> None:
        pipes.append(Pipe(command, somebody.environment, somebody.project))
        pipes[0].ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}})

    pipes: list[Pipe] = []
    seconds = clock(start)
    pipes[0].__exit__()
    return seconds
