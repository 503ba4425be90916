"""One line for a tool call and one for how it ended, as people read them (UX.md 4.3)."""

import os.path
from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct

from promptside_daemon.world.claude.harmless import harmless, one_line
from promptside_daemon.world.claude.lines import Block
from promptside_daemon.world.claude.reader import questions_of, result_text


class CallLine(Struct, frozen=True):
    """`path` is relative to the working directory if it lies inside."""

    text: str
    path: str | None = None
    line: int | None = None


def call_line(name: str, tool_input: dict[str, Any], cwd: str, changed: str = "") -> CallLine:
    """ "Read     src/x.py", "Run      npm test"; `changed` is put behind, like "+64 -3"."""
    verb, what, path = _said(name, tool_input, cwd)
    text = f"{verb:<8} {what}".rstrip()
    if changed:
        text = f"{text} {changed}"
    offset = tool_input.get("offset")
    return CallLine(text=text, path=path, line=offset if path and isinstance(offset, int) else None)


def changed_lines(tool_use_result: Any) -> tuple[str, int | None]:
    """What Write and Edit changed, like "+64 -3", and the first changed line; empty if nothing."""
    if not isinstance(tool_use_result, dict):
        return "", None
    patch = tool_use_result.get("structuredPatch")
    if not isinstance(patch, list):
        return "", None
    if not patch:
        content = tool_use_result.get("content")
        if tool_use_result.get("type") == "create" and isinstance(content, str):
            return f"+{len(content.splitlines())} -0", 1
        return "", None
    added = removed = 0
    for hunk in patch:
        for line in hunk.get("lines") or () if isinstance(hunk, dict) else ():
            added += str(line).startswith("+")
            removed += str(line).startswith("-")
    first = patch[0].get("newStart") if isinstance(patch[0], dict) else None
    return f"+{added} -{removed}", first if isinstance(first, int) else None


def ending_line(name: str, block: Block, *, denied: bool, seconds: float | None, structured: Any) -> str:
    """How a call ended, in a few words; empty if there is nothing to say."""
    said = one_line(_bare(result_text(block.content)))
    if denied:
        return f"denied: {said}" if said else "denied"
    if name == "Bash":
        if isinstance(structured, dict) and structured.get("backgroundTaskId"):
            return "goes on in the background"
        return _bash_ending(block, seconds)
    if block.is_error:
        return f"failed: {said}" if said else "failed"
    if (
        name == "AskUserQuestion"
        and isinstance(structured, dict)
        and isinstance(structured.get("answers"), dict)
    ):
        return one_line("; ".join(str(answer) for answer in structured["answers"].values()))
    return ""


def duration(seconds: float) -> str:
    """ "4 s", "1 min 12 s"."""
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    if not minutes:
        return f"{rest} s"
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"


_VERBS = {
    "MultiEdit": "Edit",
    "NotebookEdit": "Edit",
    "Bash": "Run",
    "Grep": "Search",
    "Glob": "Find",
    "WebFetch": "Fetch",
    "WebSearch": "Search",
    "Task": "Agent",
    "AskUserQuestion": "Ask",
    "ExitPlanMode": "Plan",
    "StructuredOutput": "Answer",
}
# The fields that say best what a call is about, of whatever tool, in this order.
_TELLING = ("command", "pattern", "query", "url", "description", "skill", "prompt", "plan")


def _said(name: str, tool_input: dict[str, Any], cwd: str) -> tuple[str, str, str | None]:
    if name.startswith("mcp__"):
        server, _, tool = name.removeprefix("mcp__").partition("__")
        return harmless(server), f"{harmless(tool)} {_telling(tool_input)}".rstrip(), None
    verb = _VERBS.get(name, one_line(name, 40))
    for field in ("file_path", "notebook_path"):
        if isinstance(tool_input.get(field), str):
            path = shown_path(tool_input[field], cwd)
            return verb, path, path
    if name == "AskUserQuestion":
        return verb, one_line(" · ".join(one.question for one in questions_of(tool_input))), None
    if name == "StructuredOutput":
        return verb, one_line(", ".join(str(key) for key in tool_input)), None
    return verb, _telling(tool_input), None


def _telling(tool_input: dict[str, Any]) -> str:
    for field in _TELLING:
        value = tool_input.get(field)
        if isinstance(value, str) and (said := one_line(value)):
            more = harmless(value).strip()
            return f"{said} …" if "\n" in more and not said.endswith("…") else said
    return ""


def shown_path(path: str, cwd: str) -> str:
    """`path` from the working directory, if it lies inside; else as it is."""
    if cwd and PurePosixPath(path).is_absolute():
        relative = os.path.relpath(path, cwd)
        if relative != ".." and not relative.startswith("../"):
            path = relative
    return harmless(path).replace("\n", " ")


def _bash_ending(block: Block, seconds: float | None) -> str:
    text = result_text(block.content)
    first, _, rest = text.partition("\n")
    code = "exit 0"
    error = ""
    if block.is_error:
        if first.startswith("Exit code "):
            code, error = f"exit {first.removeprefix('Exit code ').strip()}", one_line(rest)
        else:
            code, error = "failed", one_line(_bare(text))
    took = f", {duration(seconds)}" if seconds is not None and seconds >= 1 else ""
    return f"{code}{took}: {error}" if error else f"{code}{took}"


def _bare(text: str) -> str:
    return text.replace("<tool_use_error>", "").replace("</tool_use_error>", "")
