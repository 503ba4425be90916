"""500 lines a second for a minute through the server: its CPU per line, and orders in between.

The floor of the first is reading and typed decoding of the same lines once; of the second, the idle order.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
from measure import Figure, Person, Pipe, clock, person, server

LINES_A_SECOND = 500
SECONDS = float(os.environ.get("BENCH_SECONDS", "60"))

AGENT = """#!{python} -I
import json, sys, time
if "--version" in sys.argv:
    print("2.1.330 (Claude Code)"); sys.exit()
sys.stdin.readline()
def line(**event): sys.stdout.write(json.dumps({{"session_id": "s", "parent_tool_use_id": None, **event}}) + "\\n")
line(type="system", subtype="init", cwd="/", tools=["Read"], mcp_servers=[], model="fake",
     permissionMode="default", claude_code_version="2.1.330")
begun = time.monotonic()
for n in range({lines}):
    message = {{"id": f"m{{n}}", "type": "message", "role": "assistant", "model": "fake",
                "content": [{{"type": "text", "text": f"line {{n}} " + "x" * 600}}]}}
    line(type="assistant", message=message)
    if n % 10 == 9:
        sys.stdout.flush()
        time.sleep(max(0, begun + n / {pace} - time.monotonic()))
line(type="result", subtype="success", is_error=False, num_turns=1, duration_ms=1, duration_api_ms=1,
     total_cost_usd=0.0, usage={{"input_tokens": 1, "output_tokens": 1}}, modelUsage={{}}, permission_denials=[],
     terminal_reason="completed", result="Done.")
sys.stdout.flush()
sys.stdin.read()
"""

PIPELINE = """
[[stage]]
id = "work"
name = "Work"
input = "user"
prompt = "Work: {{ task_description }}"
tools = ["Read"]
permission = "deny"
"""


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
        _set_up(somebody)
        with server(somebody) as pipe:
            pipe.initialize(somebody.project, {"experimental": {"promptside": True}})
            pipe.command("daemonStart")
            pipe.command("newTask", title="Say much", pipeline="loud", agent="claude")
            idle = statistics.median(_order(pipe) for _ in range(300))
            heard = _Heard()
            cpu = pipe.cpu()
            pipe.command("run", task=1)
            while not heard.ended:
                try:
                    pipe.ask("promptside/follow", {"task": 1}, heard.hear)
                    break
                except RuntimeError:
                    heard.hear(pipe.read())  # it has not begun yet
            orders = []
            while not heard.ended:
                orders.append(_order(pipe, heard))
                _listen(pipe, heard, until=time.monotonic() + 0.25)
            used = (pipe.cpu() - cpu) / max(heard.lines, 1)
        transcript = Path(_transcript(somebody))
        floor = statistics.median(_decode(transcript) for _ in range(5)) / max(heard.lines, 1)
    wanted = int(LINES_A_SECOND * SECONDS)
    if heard.lines < wanted:
        raise RuntimeError(f"{heard.lines} of {wanted} lines came")
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

    def hear(self, message: Any) -> None:
        if message.get("method") == "promptside/output":
            self.lines += sum(entry["role"] == "text" for entry in message["params"]["entries"])
            self.ended = self.ended or message["params"].get("ended", False)


def _order(pipe: Pipe, heard: _Heard | None = None) -> float:
    params = {"command": "promptside.openTask", "arguments": [{"task": 1}]}
    return clock(lambda: pipe.ask("workspace/executeCommand", params, heard.hear if heard else None))


def _listen(pipe: Pipe, heard: _Heard, until: float) -> None:
    while not heard.ended and time.monotonic() < until:
        heard.hear(pipe.read())


def _set_up(somebody: Person) -> None:
    program = somebody.data.parent / "claude"
    lines = int(LINES_A_SECOND * SECONDS)
    program.write_text(AGENT.format(python=sys.executable, lines=lines, pace=LINES_A_SECOND))
    program.chmod(0o755)
    somebody.environment["PROMPTSIDE_CLAUDE"] = str(program)
    pipelines = somebody.data / "config" / "pipelines"
    pipelines.mkdir(parents=True)
    (pipelines / "loud.toml").write_text(PIPELINE)


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
