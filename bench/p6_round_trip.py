"""P6: requests and their answers through the server, against a hand-written msgspec loop that says as much.

TODO comments, of which the goal speaks, come with a later issue; until then the 100 findings of a checklist stand for
them, which come to a source file by the same door: lenses in the checklist, diagnostics and actions in the source.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import agents
import msgspec
from measure import Figure, Person, Pipe, clock, person, server

ROUNDS = 100
RUNS = 5
LINES = 5_000
FINDINGS = 100
SCRIPT = """
detail = "\\n".join(f"Line {{n}} of what was found." for n in range({every} - 4))
items = [
    dict(severity="warning", title=f"Finding {{n}}", detail=detail, file="big.py", line={every} * n + 1)
    for n in range({count})
]
result(result="", structured_output=dict(items=items))
"""
CHECKLIST = 'output = "checklist"\ngate = { type = "require_all_checked" }\n'
EDITOR = {
    "experimental": {"promptside": True},
    "textDocument": {
        "codeLens": {},
        "publishDiagnostics": {},
        "codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix"]}}},
    },
}

Ask = Callable[[Pipe], Any]


def figures() -> list[Figure]:
    """The p50 of each; runs of ours and of the floor in turn, so that a busy moment meets both."""
    with person() as somebody:
        agents.install(somebody, SCRIPT.format(every=LINES // FINDINGS, count=FINDINGS), CHECKLIST)
        source = somebody.project / "big.py"
        source.write_text("".join(f"value_{n} = {n}\n" for n in range(LINES)))
        with server(somebody) as pipe:
            checklist, lines = _review(somebody, pipe, source)
            return [
                _figure(
                    somebody, pipe, "executeCommand openTask", lambda one: one.command("openTask", task=1)
                ),
                _figure(
                    somebody,
                    pipe,
                    f"code lenses of a {lines:,}-line checklist with {FINDINGS} findings",
                    lambda one: one.ask("textDocument/codeLens", {"textDocument": {"uri": checklist}}),
                ),
                _figure(
                    somebody,
                    pipe,
                    "code actions at one of these findings",
                    lambda one: one.ask("textDocument/codeAction", _at(source, LINES // 2)),
                ),
            ]


def _figure(somebody: Person, pipe: Pipe, what: str, ask: Ask) -> Figure:
    answer = msgspec.json.encode(ask(pipe)).decode()
    ours: list[float] = []
    floors: list[float] = []
    command = [sys.executable, str(Path(__file__).with_name("handwritten.py")), answer]
    with Pipe(command, somebody.environment, somebody.project) as floor:
        for _ in range(RUNS):
            ours.append(_p50(pipe, ask))
            floors.append(_p50(floor, ask))
    return Figure(
        id="P6",
        what=f"{what}, p50, {len(answer):,} bytes",
        value=statistics.median(ours) * 1e6,
        floor=statistics.median(floors) * 1e6,
        unit="µs",
        goal=4.0,
    )


def _p50(pipe: Pipe, ask: Ask) -> float:
    return statistics.median(clock(lambda: ask(pipe)) for _ in range(ROUNDS))


def _review(somebody: Person, pipe: Pipe, source: Path) -> tuple[str, int]:
    """A checklist waits, and both files are open; the uri of the checklist, and its lines."""
    pipe.initialize(somebody.project, EDITOR)
    pipe.command("daemonStart")
    pipe.command("newTask", title="A review", pipeline="bench", agent="claude")
    heard: list[Any] = []
    pipe.command("run", heard.append, task=1)
    waiting = _told(pipe, heard, "promptside/task", lambda p: p["task"]["waiting_for"])
    document = somebody.project / waiting["task"]["waiting_for"]["document"]
    shown = pipe.command("openTask", heard.append, task=1)["uri"]
    for file, language in ((document, "markdown"), (source, "python")):
        opened = {"uri": file.as_uri(), "languageId": language, "version": 1, "text": file.read_text()}
        pipe.tell("textDocument/didOpen", {"textDocument": opened})
    told = _told(
        pipe,
        heard,
        "textDocument/publishDiagnostics",
        lambda p: p["uri"].endswith("big.py") and p["diagnostics"],
    )
    lenses = pipe.ask("textDocument/codeLens", {"textDocument": {"uri": document.as_uri()}})
    if len(told["diagnostics"]) != FINDINGS or len(lenses) < FINDINGS:
        raise RuntimeError(f"{len(told['diagnostics'])} diagnostics and {len(lenses)} lenses for {shown}")
    return document.as_uri(), len(document.read_text().splitlines())


def _told(pipe: Pipe, heard: list[Any], method: str, condition: Callable[[Any], object]) -> Any:
    """The parameters of the first such notification, of those that came and will come."""
    at = 0
    while True:
        for message in heard[at:]:
            if message.get("method") == method and condition(message["params"]):
                return message["params"]
        at = len(heard)
        heard.append(pipe.read())


def _at(source: Path, line: int) -> dict[str, Any]:
    place = {"line": line, "character": 0}
    return {
        "textDocument": {"uri": source.as_uri()},
        "range": {"start": place, "end": place},
        "context": {"diagnostics": []},
    }
