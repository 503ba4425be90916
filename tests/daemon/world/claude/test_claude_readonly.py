"""ST-16: breaches are told from attempts at them, and a changed path from one the agent can have made."""

from typing import Any

import pytest

from promptside_daemon.world.claude.reader import Reader
from promptside_daemon.world.claude.readings import Reading, SessionStarted, ToolFinished, ToolUsed
from promptside_daemon.world.claude.readonly import Breach, Touched, breaches, touched, unoffered

CWD = "/project/tree"
OFFERED = frozenset({"Read", "Glob"})


def used(name: str, use: str = "t", **tool_input: Any) -> ToolUsed:
    return ToolUsed(at=1, id=use, name=name, input=tool_input)


def finished(use: str = "t", *, ran: bool = True) -> ToolFinished:
    return ToolFinished(at=2, id=use, ok=ran, ran=ran)


def started(*tools: str) -> SessionStarted:
    return SessionStarted(
        at=0, session="s", model="m", tools=tools, permission_mode="", version="", mcp_servers=()
    )


def test_tools_that_the_stage_does_not_have_are_named_before_anything_runs() -> None:
    assert unoffered(("Read", "Bash", "mcp__x__y"), OFFERED) == ("Bash", "mcp__x__y")
    assert unoffered(("Read", "mcp__x__y", "mcp__x__z"), OFFERED | {"mcp__x__y"}) == ()
    assert unoffered(("Bash",), None) == ()


@pytest.mark.parametrize(
    ("readings", "broken"),
    [
        ([used("Read"), finished()], False),
        ([used("Bash", command="npm install"), finished()], True),
        ([used("Bash", command="npm install"), finished(ran=False)], False),
        # The end came while it ran: it may have done anything.
        ([started("Read", "Bash"), used("Bash", command="npm install")], True),
        # A tool that isn't there can't run, however the run ended.
        ([started("Read"), used("Bash", command="npm install")], False),
    ],
)
def test_a_breach_is_a_tool_that_ran(readings: list[Reading], broken: bool) -> None:
    expected = (Breach("Bash", "Run      npm install"),) if broken else ()
    assert breaches(readings, OFFERED, CWD) == expected


def test_what_a_call_can_have_made() -> None:
    readings: list[Reading] = [
        used("Write", "a", file_path="src/../x.py"),
        finished("a"),
        used("Edit", "b", file_path="/project/tree/y.py"),
        used("Write", "c", file_path="/project/tree/denied.py"),
        finished("c", ran=False),
        used("Read", "d", file_path="/project/tree/read.py"),
        finished("d"),
    ]
    made = touched(readings, CWD)
    assert made == Touched(frozenset({"/project/tree/x.py", "/project/tree/y.py"}))
    assert made.may_have_made("/project/tree/./x.py")
    assert not made.may_have_made("/project/tree/read.py")


@pytest.mark.parametrize("name", ["Bash", "mcp__x__y", "Novel"])
def test_after_a_command_or_an_unknown_tool_anything_may_have_been_made(name: str) -> None:
    made = touched([used(name), finished()], CWD)
    assert made.unknown
    assert made.may_have_made("/anything")
    assert not touched([used(name), finished(ran=False)], CWD).unknown


@pytest.mark.parametrize(
    "name",
    ["280-readonly-strict", "281-readonly-user-sources", "283-restricted-tools", "42-tools-read-glob-grep"],
)
def test_recorded_read_only_runs_tried_to_write_and_broke_nothing(
    transcripts: dict[str, Any], name: str
) -> None:
    reader = Reader()
    readings = [reading for line, at in transcripts[name].lines for reading in reader.read(line, at)]
    assert any(isinstance(reading, ToolUsed) and reading.name == "Write" for reading in readings)
    offered = frozenset({"Read", "Glob", "Grep"})
    assert breaches(readings, offered, "/tmp/proj") == ()
    assert touched(readings, "/tmp/proj") == Touched(frozenset())


def test_a_recorded_run_that_may_do_all_is_a_breach_of_a_read_only_stage(transcripts: dict[str, Any]) -> None:
    reader = Reader()
    run = transcripts["52-bypass-root-sandbox"]
    readings = [reading for line, at in run.lines for reading in reader.read(line, at)]
    assert {breach.tool for breach in breaches(readings, frozenset({"Read"}), "/tmp/proj")} == {
        "Write",
        "Bash",
    }
