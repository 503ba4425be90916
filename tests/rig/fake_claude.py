"""A Claude CLI that does what a test writes down: a script of a few lines that speaks with these functions.

`fake_claude(directory, script)` makes the program. It says its version as the real one does.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

SESSION = "6a1d0e0e-0000-4000-8000-000000000001"

_PROGRAM = """#!{python} -IS
import sys
if "--version" in sys.argv:
    print("2.1.330 (Claude Code)")
    sys.exit()
sys.path.insert(0, {rig!r})
from fake_claude import *
import json, os, signal, subprocess, time
{script}
"""


def fake_claude(directory: Path, script: str, name: str = "claude") -> Path:
    """Write the program; it runs `script`, in which everything of this module is known."""
    program = directory / name
    rig = str(Path(__file__).parent)
    program.write_text(_PROGRAM.format(python=sys.executable, rig=rig, script=script), encoding="utf-8")
    program.chmod(0o755)
    return program


# --- what a script says ------------------------------------------------------------------------------------


def line(**event: Any) -> None:
    """One event, a whole line at once."""
    write(json.dumps({"session_id": SESSION, "parent_tool_use_id": None, **event}).encode() + b"\n")


def write(data: bytes) -> None:
    """Bytes of the transcript as they are."""
    while data:
        data = data[os.write(1, data) :]


def init(tools: tuple[str, ...] = ("Read", "Write", "Bash"), session: str = SESSION) -> None:
    """The start of a turn."""
    line(
        type="system",
        subtype="init",
        session_id=session,
        cwd=str(Path.cwd()),
        tools=list(tools),
        mcp_servers=[],
        model="fake",
        permissionMode="default",
        claude_code_version="2.1.330",
    )


def text(words: str) -> None:
    """A message of the agent."""
    message = {"id": f"msg_{words[:20]}", "type": "message", "role": "assistant", "model": "fake"}
    line(type="assistant", message={**message, "content": [{"type": "text", "text": words}]})


def use(name: str, given: dict[str, Any], number: str = "toolu_1") -> None:
    """A tool use."""
    block = {"type": "tool_use", "id": number, "name": name, "input": given}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "fake"}
    line(type="assistant", message={**message, "content": [block]})


def used(said: str = "done", number: str = "toolu_1", *, failed: bool = False) -> None:
    """Its result."""
    block = {"type": "tool_result", "tool_use_id": number, "content": said, "is_error": failed}
    line(type="user", message={"role": "user", "content": [block]})


def ask(name: str, given: dict[str, Any], request: str = "r1", number: str = "toolu_1") -> dict[str, Any]:
    """Ask for a permission, or the person; the answer."""
    wanted = {"subtype": "can_use_tool", "tool_name": name, "input": given, "tool_use_id": number}
    line(type="control_request", request_id=request, request=wanted)
    while True:
        message = heard()
        if message is None:
            sys.exit(0)
        if message["type"] == "control_response" and message["response"]["request_id"] == request:
            answer: dict[str, Any] = message["response"]["response"]
            return answer


def result(words: str = "Done.", **more: Any) -> None:
    """The end of a turn; a good one, unless `more` says otherwise."""
    line(
        **{
            "type": "result",
            "subtype": "success",
            "is_error": False,
            "num_turns": 1,
            "duration_ms": 1,
            "duration_api_ms": 1,
            "total_cost_usd": 0.0,
            "usage": {"input_tokens": 1, "output_tokens": 1},
            "modelUsage": {},
            "permission_denials": [],
            "terminal_reason": "completed",
            "result": words,
            **more,
        }
    )


def heard() -> Any:
    """The next message of the host; None when no more comes."""
    global _held  # noqa: PLW0603  # one process, one stdin
    while b"\n" not in _held:
        chunk = os.read(0, 1 << 16)
        if not chunk:
            return None
        _held += chunk
    first, _, _held = _held.partition(b"\n")
    return json.loads(first)


_held = b""


def prompt() -> str:
    """Wait for a message of the person; what it says. The process ends when none comes any more."""
    while True:
        message = heard()
        if message is None:
            sys.exit(0)
        if message["type"] == "user":
            said: str = message["message"]["content"]
            return said


def hold(gate: str) -> None:
    """Stop here until the test opens the gate, a named pipe, with `let_go`."""
    with open(gate, "rb"):  # noqa: PTH123  # what the test writes down knows no more than this
        pass


def let_go(gate: Path) -> None:
    """Let the agent that holds at a gate go on; waits until it is there."""
    with gate.open("wb"):
        pass


def end() -> NoReturn:
    """Wait for the end of the input, as the CLI does, and leave in order."""
    while heard() is not None:
        pass
    sys.exit(0)
