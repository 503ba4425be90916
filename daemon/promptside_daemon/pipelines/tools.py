"""Which tools a stage's agent has, and what it may do without asking, as a file gives them (ST-9, ST-14)."""

from __future__ import annotations

import re

from promptside_daemon.toml_reader import Reader
from promptside_daemon.toml_source import KeyPath, did_you_mean

TOOLS = (
    "Read", "Glob", "Grep", "Edit", "Write", "NotebookEdit", "Bash", "WebSearch", "WebFetch",
    "Task", "Agent", "Skill", "SendMessage", "TaskStop", "TaskOutput", "TaskCreate", "TaskGet", "TaskList",
    "TaskUpdate", "TodoWrite", "ToolSearch", "Monitor", "ListAgents", "Workflow", "ReportFindings",
    "ScheduleWakeup", "CronCreate", "CronDelete", "CronList", "EnterWorktree", "ExitWorktree",
    "EnterPlanMode", "ExitPlanMode", "BashOutput", "KillShell",
)  # fmt: skip
"""Of the versions of the Claude CLI that were looked at; a name that is not here may still be right."""

ASKING = "AskUserQuestion"
"""Belongs to no list: it is there wherever a person can be asked."""

_TOOL = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,127}")
_RULE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,127}(?:\([^\n]+\))?")
_WIDENING = frozenset({"Read", "Edit", "Write", "NotebookEdit"})


def read_tools(read: Reader, at: KeyPath) -> tuple[str, ...] | None:
    """The tools of a stage; None, which is `"all"` or no such key, takes all that the agent has."""
    if read.value(at) in (None, "all"):
        return None
    tools = []
    for number, tool in enumerate(read.words(at)):
        place = (*at, number)
        if "(" in tool:
            read.fault(place, f"`{tool}` is a rule, not a tool.", "Rules stand in `rules`.", at="value")
        elif not _TOOL.fullmatch(tool):
            read.fault(place, f"`{tool}` can't be a tool's name.", at="value")
        elif tool == ASKING:
            sentence = f"`{ASKING}` is left out of the list: every stage has it where a person can be asked."
            read.fault(place, sentence, severity="warning", at="value")
            continue
        elif tool not in TOOLS and not tool.startswith("mcp__"):
            sentence = f"No tool `{tool}` is known; the agent would leave it out without a word."
            read.fault(place, sentence, did_you_mean(tool, TOOLS), severity="warning", at="value")
        tools.append(tool)
    return tuple(dict.fromkeys(tools))


def read_rules(read: Reader, at: KeyPath) -> tuple[str, ...]:
    """What needs no asking, in the CLI's syntax: `Tool` or `Tool(what)`."""
    rules = read.words(at)
    for number, rule in enumerate(rules):
        place = (*at, number)
        if not _RULE.fullmatch(rule):
            hint = "Write `Tool` or `Tool(what)`, for example `Bash(npm test)`."
            read.fault(place, f"`{rule}` is not a permission rule.", hint, at="value")
        elif rule in _WIDENING:
            # Measured: without a path such a rule holds for every file of the machine.
            sentence = f"`{rule}` without a path holds outside of the project, too."
            read.fault(place, sentence, f"Write `{rule}(./**)`.", severity="warning", at="value")
    return tuple(dict.fromkeys(rules))
