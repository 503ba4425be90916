"""500 lines a second for a minute through the server: its CPU per line, and orders in between.

The floor of the first is reading and typed decoding of the same lines once; of the second, the same order, as seldom,
while there is no stream. The figures of the first begin with the order to run.
"""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path
from typing import Any

import agents
import msgspec
from measure import Figure, Person, Pipe, clock, person, server

LINES_A_SECOND = 500
SECONDS = float(os.environ.get("BENCH_SECONDS", "60"))

SCRIPT = """
begun = time.monotonic()
for n in range({lines}):
    message = {{"id": f"m{{n}}", "type": "message", "role": "assistant", "model": "fake",
                "content": [{{"type": "text", "text": f"line {{n}} " + "x" * 600}}]}}
    line(type="assistant", message=message)
    if n % 10 == 9:
        sys.stdout.flush()
        time.sleep(max(0, begun + n / {pace} - time.monotonic()))
result(result="Done.")
"""
PAUSE_SECONDS = 0.1
"""How long nothing is asked before an order whose time is taken, while there is a stream and while there is none."""


class Block(msgspec.Struct):
    """What is read of a line, for the floor."""

    type: str
    text: str = ""


class Said(msgspec.Struct):
    content: list[Block] = []


class Line(msgspec.Struct):
    type: str
    message: Said | None = None


def figures() -> list[Figure]:
    """One minute of it."""
    with person() as somebody:
        lines = int(LINES_A_SECOND * SECONDS)
        agents.install(somebody, SCRIPT.format(lines=lines, pace=LINES_A_SECOND))
        with server(somebody) as pipe:
            pipe.initialize(somebody.project, {"experimental": {"promptside": True}})
            pipe.command("daemonStart")
            pipe.command("newTask", title="Say much", pipeline="bench", agent="claude")
            idle = statistics.median(_idle_order(pipe) for _ in range(60))
            heard = _Heard()
            cpu = pipe.cpu()
            pipe.command("run", heard.hear, task=1)
            while not heard.running:
                heard.hear(pipe.read())
            pipe.ask("promptside/follow", {"task": 1}, heard.hear)
            orders = []
            while not heard.ended:
                orders.append(_order(pipe, heard))
                _listen(pipe, heard, until=time.monotonic() + PAUSE_SECONDS)
            used = (pipe.cpu() - cpu) / max(heard.lines, 1)
        transcript = Path(_transcript(somebody))
        floor = statistics.median(_decode(transcript) for _ in range(5)) / max(heard.lines, 1)
    if heard.lines < lines:
        raise RuntimeError(f"{heard.lines} of {lines} lines came")
    return [
        Figure(
            id="P4s",
            what=f"CPU of the server per line, {heard.lines} lines at {LINES_A_SECOND}/s",
            value=used * 1e6,
            floor=floor * 1e6,
            unit="µs",
            goal=25.0,
        ),
        Figure(
            id="P4o",
            what="executeCommand in between, p50, against idle",
            value=statistics.median(orders) * 1e6,
            floor=idle * 1e6,
            unit="µs",
            goal=4.0,
        ),
    ]


class _Heard:
    """What was told of the output."""

    def __init__(self) -> None:
        self.lines = 0
        self.ended = False
        self.running = False

    def hear(self, message: Any) -> None:
        match message:
            case {"method": "promptside/output", "params": {"entries": entries, **rest}}:
                if "error" in rest:
                    raise RuntimeError(rest["error"])
                self.lines += sum(entry["role"] == "text" for entry in entries)
                self.ended = self.ended or rest.get("ended", False)
            case {"method": "promptside/task", "params": {"task": {"stages": [{"attempts": [*_, attempt]}]}}}:
                self.running = self.running or attempt["status"] == "running"
            case _:
                pass


def _order(pipe: Pipe, heard: _Heard | None = None) -> float:
    params = {"command": "promptside.openTask", "arguments": [{"task": 1}]}
    return clock(lambda: pipe.ask("workspace/executeCommand", params, heard.hear if heard else None))


def _idle_order(pipe: Pipe) -> float:
    time.sleep(PAUSE_SECONDS)
    return _order(pipe)


def _listen(pipe: Pipe, heard: _Heard, until: float) -> None:
    while not heard.ended and time.monotonic() < until:
        heard.hear(pipe.read())


def _transcript(somebody: Person) -> str:
    view = msgspec.json.decode(somebody.promptside("task", "show", "1", "--json"))
    return str(view["stages"][0]["attempts"][0]["transcript"])


def _decode(path: Path) -> float:
    """CPU seconds of reading and typed decoding, in one thread."""
    decoder = msgspec.json.Decoder(Line)
    began = time.thread_time()
    with path.open("rb") as file:
        for line in file:
            decoder.decode(line)
    return time.thread_time() - began
