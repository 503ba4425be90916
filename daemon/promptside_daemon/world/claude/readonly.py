"""The stream's half of the read-only proof (ST-16): which tools ran, and what can they have made?

The other half compares the tree before and after; a changed path counts only if it is in what is said here.
"""

import os.path
from collections.abc import Iterable
from pathlib import PurePosixPath

from msgspec import Struct

from promptside_daemon.world.claude.readings import Reading, SessionStarted, ToolFinished, ToolUsed
from promptside_daemon.world.claude.toollines import call_line


class Breach(Struct, frozen=True):
    """A tool ran that the stage doesn't have; `what` is its line, as people see it."""

    tool: str
    what: str


class Touched(Struct, frozen=True):
    """What the tool uses of an attempt can have made.

    `paths` are absolute; `unknown` are the lines of calls of which nobody can say what they wrote.
    """

    paths: frozenset[str]
    unknown: tuple[str, ...] = ()

    def may_have_made(self, path: str) -> bool:
        return bool(self.unknown) or os.path.normpath(path) in self.paths


def unoffered(tools: Iterable[str], offered: frozenset[str] | None) -> tuple[str, ...]:
    """The tools in `init` that the stage doesn't have; one that names an MCP tool gets the whole server."""
    if offered is None:
        return ()
    any_mcp = any(name.startswith("mcp__") for name in offered)
    return tuple(name for name in tools if name not in offered and not (any_mcp and name.startswith("mcp__")))


def breaches(readings: Iterable[Reading], offered: frozenset[str], cwd: str) -> tuple[Breach, ...]:
    """The uses of tools outside the stage's list that ran, or may have run when the end came.

    A call of a tool that isn't there is refused by the CLI and breaks nothing.
    """
    known: set[str] = set()
    found = []
    uses, finished = _paired(readings, known)
    for use in uses:
        if use.name in offered:
            continue
        end = finished.get(use.id)
        if end.ran if end is not None else use.name in known:
            found.append(Breach(use.name, call_line(use.name, use.input, cwd).text))
    return tuple(found)


def touched(readings: Iterable[Reading], cwd: str) -> Touched:
    """Every path that a tool use of these readings can have made or changed."""
    uses, finished = _paired(readings, set())
    paths: set[str] = set()
    unknown = []
    for use in uses:
        end = finished.get(use.id)
        if use.name in _HARMLESS or (end is not None and not end.ran):
            continue
        path = next((use.input[field] for field in _PATHS if isinstance(use.input.get(field), str)), None)
        if use.name in _WRITING and path is not None:
            paths.add(os.path.normpath(PurePosixPath(cwd, path)))
        else:
            unknown.append(call_line(use.name, use.input, cwd).text)
    return Touched(frozenset(paths), tuple(unknown))


_PATHS = ("file_path", "notebook_path")
_WRITING = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})
# A subagent's own calls are in the stream; a skill is text. What is in neither list can do anything.
_HARMLESS = frozenset(
    {
        "Agent",
        "AskUserQuestion",
        "EnterPlanMode",
        "ExitPlanMode",
        "Glob",
        "Grep",
        "ListAgents",
        "Read",
        "ReportFindings",
        "Skill",
        "StructuredOutput",
        "Task",
        "TodoWrite",
        "ToolSearch",
        "WebFetch",
        "WebSearch",
    }
)


def _paired(readings: Iterable[Reading], known: set[str]) -> tuple[list[ToolUsed], dict[str, ToolFinished]]:
    uses: list[ToolUsed] = []
    finished: dict[str, ToolFinished] = {}
    for reading in readings:
        match reading:
            case ToolUsed():
                uses.append(reading)
            case ToolFinished():
                finished[reading.id] = reading
            case SessionStarted():
                known.update(reading.tools)
            case _:
                pass  # nothing else says what a tool did
    return uses, finished
