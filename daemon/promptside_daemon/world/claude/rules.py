"""Permission rules in the Claude CLI's syntax: what one covers, and which one "always" makes (ST-14).

A rule that covers too little costs a question; one that covers too much runs what nobody has allowed. So a
prefix rule covers one simple command only: nothing that chains, substitutes or redirects.
"""

import os.path
import re
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from promptside_daemon.world.claude.harmless import one_line
from promptside_daemon.world.claude.readings import PermissionAsked
from promptside_daemon.world.claude.toollines import call_line, shown_path


class Rule(Struct, frozen=True):
    """`Tool` or `Tool(content)`."""

    tool: str
    content: str | None = None

    def __str__(self) -> str:
        return self.tool if self.content is None else f"{self.tool}({self.content})"


def parse(text: str) -> Rule:
    """Raise ValueError, with a sentence, if `text` is no rule."""
    found = _RULE.fullmatch(text.strip())
    if not found:
        raise ValueError(
            f"“{one_line(text)}” is no permission rule. One looks like Read, or like Bash(npm test:*)."
        )
    content = found["content"]
    return Rule(found["tool"], None if content in {None, "", "*"} else content)


def covers(rule: Rule, tool: str, tool_input: dict[str, Any], cwd: str) -> bool:
    """Does `rule` allow this use of a tool? Paths are compared as they are written: no links are followed."""
    if not _same_tool(rule.tool, tool):
        return False
    if rule.content is None:
        return True
    if tool == "Bash":
        command = tool_input.get("command")
        return isinstance(command, str) and _covers_command(rule.content, command)
    if tool in _EDITING | _READING:
        path = _path(tool_input)
        return path is not None and _covers_path(rule.content, path, cwd)
    if tool == "WebFetch":
        return _covers_url(rule.content, tool_input.get("url"))
    return False


def covered(rules: tuple[Rule, ...], asked: PermissionAsked, cwd: str) -> bool:
    """Does one of the rules allow what is asked for?"""
    return any(covers(rule, asked.tool, asked.input, cwd) for rule in rules)


def always(asked: PermissionAsked, cwd: str) -> Rule | None:
    """The rule that "always in this project" makes: the CLI's suggestion if it fits, else the exact use.

    None if no rule is sure to allow no more than that.
    """
    for suggested in _suggested(asked):
        if covers(suggested, asked.tool, asked.input, cwd) and suggested.tool == asked.tool:
            return suggested
    rule = _exact(asked, cwd)
    return rule if rule is not None and covers(rule, asked.tool, asked.input, cwd) else None


def wanted(asked: PermissionAsked) -> str:
    """The exact command, path or address that is asked for; empty for a tool without one."""
    for field in ("command", "file_path", "notebook_path", "url", "query", "pattern"):
        value = asked.input.get(field)
        if isinstance(value, str) and value:
            return value
    return ""


def sentence(asked: PermissionAsked, stage: str, cwd: str) -> str:
    """What the agent wants, for people: "The agent wants to run `npm install` in Implementation."."""
    what = wanted(asked)
    shown = one_line(shown_path(what, cwd) if _path(asked.input) == what else what)
    quoted = f"“{shown}”" if "`" in shown else f"`{shown}`"
    verb = _VERBS.get(asked.tool)
    if verb and shown:
        return f"The agent wants to {verb} {quoted} in {stage}."
    use = re.sub(r"\s+", " ", call_line(asked.tool, asked.input, cwd).text)
    return f"The agent wants to use {use} in {stage}."


_RULE = re.compile(r"(?P<tool>[A-Za-z][\w.*-]*)(?:\((?P<content>.*)\))?", re.DOTALL)
_EDITING = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
_READING = frozenset({"Read", "Glob", "Grep"})
_VERBS = {
    "Bash": "run",
    "Read": "read",
    "Write": "write",
    "Edit": "change",
    "MultiEdit": "change",
    "NotebookEdit": "change",
    "WebFetch": "fetch",
    "WebSearch": "search the web for",
}


def _same_tool(named: str, tool: str) -> bool:
    if named == tool:
        return True
    if named == "Edit":
        return tool in _EDITING
    if named == "Read":
        return tool in _READING
    if named.startswith("mcp__"):
        server = named.removesuffix("*").removesuffix("__")
        return tool.startswith(f"{server}__") and server.count("__") == 1
    return False


def _covers_command(pattern: str, command: str) -> bool:
    if command == pattern and "*" not in pattern:
        return True
    prefix = next((pattern.removesuffix(end) for end in (":*", " *") if pattern.endswith(end)), None)
    if prefix is None or not prefix or "*" in prefix or not _simple(command):
        return False
    return command == prefix or command.startswith(f"{prefix} ")


def _simple(command: str) -> bool:
    """One command with its arguments, which the shell can't be made to read as more than that."""
    quote = ""
    for character in command:
        if character < " " or character in "\x7f\x85\u2028\u2029":
            return False
        if quote == "'":
            quote = "" if character == "'" else quote
        elif character in "$`\\":
            return False
        elif quote == '"':
            quote = "" if character == '"' else quote
        elif character in "\"'":
            quote = character
        elif character in ";&|<>(){}#!":
            return False
    return not quote


def _path(tool_input: dict[str, Any]) -> str | None:
    for field in ("file_path", "notebook_path", "path"):
        if isinstance(tool_input.get(field), str):
            return str(tool_input[field])
    return None


def _covers_path(pattern: str, path: str, cwd: str) -> bool:
    if "\0" in path:
        return False
    absolute = os.path.normpath(PurePosixPath(cwd, path))
    if pattern.startswith("//"):
        wanted_path = pattern[1:]
    elif pattern.startswith("~/"):
        # Whose home that is, is not known here; the CLI itself knows.
        return False
    else:
        wanted_path = f"{cwd.rstrip('/')}/{pattern.removeprefix('./').lstrip('/')}"
    return re.fullmatch(_glob(wanted_path), absolute) is not None


def _glob(pattern: str) -> str:
    parts = re.split(r"(\*\*|\*|\?)", pattern)
    return "".join({"**": r"(?s:.*)", "*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part)) for part in parts)


def _covers_url(pattern: str, url: Any) -> bool:
    if not pattern.startswith("domain:") or not isinstance(url, str):
        return False
    try:
        host = urlsplit(url).hostname
    except ValueError:
        return False
    return host is not None and host == pattern.removeprefix("domain:").lower()


def _suggested(asked: PermissionAsked) -> list[Rule]:
    if asked.tool not in {"Bash", "WebFetch"}:
        # For files the CLI suggests the whole directory; the file is enough.
        return []
    found = []
    for suggestion in asked.suggestions:
        if suggestion.get("type") != "addRules" or suggestion.get("behavior") != "allow":
            continue
        for rule in suggestion.get("rules") or ():
            if isinstance(rule, dict) and isinstance(rule.get("toolName"), str):
                content = rule.get("ruleContent")
                if isinstance(content, str) and content:
                    found.append(Rule(rule["toolName"], content))
    return found


def _exact(asked: PermissionAsked, cwd: str) -> Rule | None:
    if asked.tool == "Bash":
        command = asked.input.get("command")
        return Rule("Bash", command) if isinstance(command, str) and command and "*" not in command else None
    if asked.tool in _EDITING | _READING:
        path = _path(asked.input)
        if path is None or re.search(r"[*?\[\]{}!\\\n]", path):
            return None
        absolute = os.path.normpath(PurePosixPath(cwd, path))
        shown = shown_path(absolute, cwd)
        tool = "Edit" if asked.tool in _EDITING else "Read"
        return Rule(tool, f"/{shown}" if shown.startswith("/") else shown)
    if asked.tool == "WebFetch":
        return None
    return Rule(asked.tool)
