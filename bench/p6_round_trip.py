"""P6: an executeCommand and its answer through the server, against a hand-written msgspec loop."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

from measure import Figure, Pipe, clock, person, server

ROUNDS = 400
RUNS = 5


def figures() -> list[Figure]:
    """The p50 of a round trip; the command is one that the server answers itself, as the floor does."""
    ours: list[float] = []
    floors: list[float] = []
    with person() as somebody:
        plain = [sys.executable, str(Path(__file__).with_name("handwritten.py"))]
        with server(somebody) as under_test, Pipe(plain, somebody.environment, somebody.project) as floor:
            under_test.initialize(somebody.project, {"experimental": {"promptside": True}})
            under_test.command("daemonStart")
            under_test.command("newTask", title="A task", agent="rehearsal-fast")
            for _ in range(RUNS):
                ours.append(_p50(under_test))
                floors.append(_p50(floor))
    return [
        Figure(
            id="P6",
            what="executeCommand openTask, p50",
            value=statistics.median(ours) * 1e6,
            floor=statistics.median(floors) * 1e6,
            unit="µs",
            goal=4.0,
        )
    ]


def _p50(pipe: Pipe) -> float:
    return statistics.median(clock(lambda: pipe.command("openTask", task=1)) for _ in range(ROUNDS))
