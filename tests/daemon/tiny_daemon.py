"""A daemon with next to nothing behind its wire: an order is a line in a file, an answer is made up.

Run as a program it is a real daemon; tests of the server use its core in their own process.
"""

import asyncio
import os
import sys
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

import promptside_protocol

# Another version, as an older or newer installation would have it; before anything else has read it.
promptside_protocol.__version__ = os.environ.get("TINY_VERSION", promptside_protocol.__version__)
promptside_protocol.PROTOCOL = int(os.environ.get("TINY_PROTOCOL", promptside_protocol.PROTOCOL))

from promptside_daemon.lifecycle import IDLE_SECONDS, Service, run  # noqa: E402
from promptside_daemon.rpc.who import Who  # noqa: E402
from promptside_protocol.commands import Ack, NewTask, Say  # noqa: E402
from promptside_protocol.errors import refused  # noqa: E402
from promptside_protocol.notices import CaughtUp, EventHappened, Notice, OutputCame, TaskChanged  # noqa: E402
from promptside_protocol.output import OutputEntry  # noqa: E402
from promptside_protocol.queries import (  # noqa: E402
    Decisions,
    FollowOutput,
    GetTask,
    Output,
    OutputPage,
    Query,
    Status,
    Watch,
)
from promptside_protocol.views import DaemonView, Metrics, TaskView  # noqa: E402

OWN = {"attempt-1": ("/project", 1)}


class TinyCore:
    """Orders are lines of a file, so that the next daemon has them; a transcript is a file, too."""

    def __init__(self, directory: Path, clients: Callable[[], int] = lambda: 0) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.orders = directory / "orders"
        self.transcript = directory / "transcript"
        self.orders.touch()
        self.transcript.touch()
        self.clients = clients
        self.moved = asyncio.Event()
        self.release = asyncio.Event()
        self.open_flows = 0
        self.told = 0
        self.whos: list[Who] = []
        self.closed = False

    async def order(self, command: Struct, who: Who) -> object:
        self.whos.append(who)
        match command:
            case Say(text="bug"):
                raise ZeroDivisionError("a bug")
            case Say(text="refuse"):
                raise refused("not_now", "Nobody runs.", "promptside run")
            case Say(text="late"):
                await self.release.wait()
                return Ack(seq=self._write("say late"))
            case Say(text="die"):
                self._write("die")
                os._exit(9)
            case Say(text=text) if text.startswith("write "):
                self.write_output(text.removeprefix("write "))
                return Ack(seq=0)
            case NewTask(key=key) if f"task {key}" in self.lines():
                return Ack(seq=self.lines().index(f"task {key}") + 1)
            case NewTask(key=key, title="die first"):
                self._write(f"task {key}")  # the next daemon finds the key
                os._exit(9)
            case NewTask(key=key):
                return Ack(seq=self._write(f"task {key}"))
            case Say(text=text):
                return Ack(seq=self._write(f"say {text}"))
            case _:
                pass
        raise refused("unknown", f"no such order: {command}")

    async def ask(self, query: Query[Any], who: Who) -> object:
        self.whos.append(who)
        match query:
            case GetTask(task=7):
                return object()  # can't be encoded: a bug
            case GetTask():
                return task_view(0, query.task)
            case Decisions(task=7):
                await self.release.wait()
                return ()
            case Decisions():
                return ()
            case Output():
                entry = OutputEntry(cursor=1, role="text", text="x" * query.limit)
                return OutputPage(stage="s", attempt=1, entries=(entry,), cursor=1, ended=True)
            case Status():
                return DaemonView(
                    pid=os.getpid(),
                    version=promptside_protocol.__version__,
                    protocol=promptside_protocol.PROTOCOL,
                    uptime_s=0.0,
                    attempts=(),
                    clients=self.clients(),
                    log="",
                )
            case _:
                raise refused("unknown", f"no answer to {query}")

    async def flow(self, query: Watch | FollowOutput, who: Who, flow: int) -> AsyncGenerator[Notice, None]:
        self.open_flows += 1
        try:
            if isinstance(query, FollowOutput):
                source = self._output(query, flow)
            elif query.project == "/flood":
                source = self._flood(flow)
            elif query.project == "/gone":
                raise refused("no-project", "There is no such project.")
            elif query.project == "/bug":
                raise ZeroDivisionError("a bug")
            else:
                source = self._changes(query, flow)
            async for notice in source:
                self.told += 1
                yield notice
        finally:
            self.open_flows -= 1

    def gone(self, who: Who) -> None:
        """Nothing is held here."""

    def keepers(self) -> dict[int, str]:
        return {}

    def task_of(self, attempt: str) -> tuple[str, int] | None:
        return OWN.get(attempt)

    def busy(self) -> bool:
        return bool(os.environ.get("TINY_BUSY"))

    def due(self) -> float | None:
        seconds = os.environ.get("TINY_DUE")
        return time.time() + float(seconds) if seconds else None

    async def close(self) -> None:
        self.closed = True

    def lines(self) -> list[str]:
        return self.orders.read_text().splitlines()

    def write_output(self, line: str) -> None:
        with self.transcript.open("a") as file:
            file.write(line + "\n")
        self._wake()

    async def _changes(self, query: Watch, flow: int) -> AsyncGenerator[Notice, None]:
        """For each order an event or a changed task, then the word that this was all."""
        cursor = query.cursors.get("/project", 0)
        while True:
            wake = self.moved
            lines = self.lines()
            for seq in range(cursor + 1, len(lines) + 1):
                if query.events:
                    yield EventHappened(
                        flow=flow,
                        project="/project",
                        seq=seq,
                        at=0.0,
                        task=seq,
                        kind="said",
                        body={"line": lines[seq - 1]},
                    )
                else:
                    yield TaskChanged(flow=flow, project="/project", seq=seq, task=task_view(seq, seq))
            cursor = len(lines)
            yield CaughtUp(flow=flow, project="/project", seq=cursor)
            await wake.wait()

    async def _output(self, query: FollowOutput, flow: int) -> AsyncGenerator[Notice, None]:
        cursor = query.cursor
        while True:
            wake = self.moved
            with self.transcript.open("rb") as file:
                file.seek(cursor)
                for line in file:
                    cursor += len(line)
                    text = line.decode().rstrip("\n")
                    entry = OutputEntry(cursor=cursor, role="text", text=text)
                    yield OutputCame(
                        flow=flow,
                        task=query.task,
                        stage="s",
                        attempt=1,
                        cursor=cursor,
                        entries=(entry,),
                        ended=text == "end",
                    )
                    if text == "end":
                        return
            await wake.wait()

    async def _flood(self, flow: int) -> AsyncGenerator[Notice, None]:
        seq = 0
        while True:
            seq += 1
            yield EventHappened(
                flow=flow, project="/flood", seq=seq, at=0.0, task=1, kind="k", body={"text": "x" * 1000}
            )

    def _write(self, line: str) -> int:
        with self.orders.open("a") as file:
            file.write(line.replace("\n", " ") + "\n")
        self._wake()
        return len(self.lines())

    def _wake(self) -> None:
        self.moved.set()
        self.moved = asyncio.Event()


def task_view(seq: int, number: int) -> TaskView:
    return TaskView(
        seq=seq,
        id=number,
        project="/project",
        title=f"Task {number}",
        description="",
        state="taken",
        state_since=0.0,
        claimed_by=None,
        reason=None,
        pipeline="standard",
        type="feature",
        work_type="coding",
        priority=50,
        agent="rehearsal",
        stages=(),
        current=None,
        waiting_for=None,
        directory="d",
        metrics=Metrics(),
        error=None,
        created=0.0,
    )


async def make_core(service: Service) -> TinyCore:
    if os.environ.get("TINY_DIES"):
        os._exit(3)
    if os.environ.get("TINY_FAILS"):
        raise refused("broken", "The registry can't be read.", "promptside doctor")
    if os.environ.get("TINY_BUG"):
        raise ZeroDivisionError("a bug at the start")
    return TinyCore(Path(os.environ["PROMPTSIDE_HOME"]) / "tiny", service.clients)


if __name__ == "__main__":
    idle = float(os.environ.get("TINY_IDLE", IDLE_SECONDS))
    sys.exit(run(make_core, foreground="--foreground" in sys.argv, idle_seconds=idle))
