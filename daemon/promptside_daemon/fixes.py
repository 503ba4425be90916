"""What can be done by an edit about a fault of a pipeline, prompt or settings file (ED-5).

A loader's hint is the fix in words, made for people; here the words that stand in back quotes become an edit.
An edit is offered only where the word that it replaces is found in the text, at the fault or right behind it.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from pathlib import Path

from promptside_protocol.views import FaultView, Fix

REACH = 6
"""Lines, from the fault's on, in which its word may stand: a gate's type stands below its header."""
NEW_PROMPT = "{{ task_description }}\n\n{{ previous_output }}\n"

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'|\[\[?[^\]]*\]\]?|[^\s=,\]}#]+')
_MEANT = re.compile(r"Did you mean `([^`]+)`\?")
_WRITE = re.compile(r"Write `([^`]+)`\.")
_SHOULD_BE = re.compile(r"It should be (.+)\.")
_MISSING = re.compile(r"`(\w+)` is missing\.")
_QUOTED = re.compile(r"`([^`]+)`")


def token_end(line: str, column: int) -> int:
    """The column behind the key or value that begins at a column; a fault is never empty where a line isn't."""
    token = _TOKEN.match(line, column - 1)
    return token.end() + 1 if token else max(len(line.rstrip()) + 1, column)


def fix_for(fault: FaultView, lines: list[str], file: Path) -> Fix | None:
    """The edit that does what the hint says; None where a person has to think."""
    if (meant := _MEANT.fullmatch(fault.hint)) is not None:
        return _instead(fault, lines, file, meant[1], _nearest(fault.message, meant[1]))
    if (write := _WRITE.fullmatch(fault.hint)) is not None:
        return _instead(fault, lines, file, write[1], _quoted(fault.message))
    if (missing := _MISSING.fullmatch(fault.message)) is not None:
        return _added(fault, lines, file, missing[1])
    if fault.message.startswith("There is no prompt file") and (path := _SHOULD_BE.fullmatch(fault.hint)):
        name = Path(path[1]).name
        return Fix(
            title=f"Create {name}",
            file=path[1],
            line=1,
            column=1,
            end_line=1,
            end_column=1,
            text=NEW_PROMPT,
            create=True,
        )
    return None


def _instead(fault: FaultView, lines: list[str], file: Path, better: str, word: str) -> Fix | None:
    if not word:
        return None
    whole = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w(-])")
    for number in range(fault.line, min(fault.line + REACH, len(lines) + 1)):
        start = fault.column - 1 if number == fault.line else 0
        found = whole.search(lines[number - 1], start)
        if found is not None:
            return Fix(
                title=f"Write `{better}`",
                file=str(file),
                line=number,
                column=found.start() + 1,
                end_line=number,
                end_column=found.end() + 1,
                text=better,
            )
    return None


def _added(fault: FaultView, lines: list[str], file: Path, key: str) -> Fix | None:
    """A key that is missing, on the line behind the header of its table."""
    if not lines[fault.line - 1].lstrip().startswith("["):
        return None
    at = len(lines[fault.line - 1].rstrip()) + 1
    return Fix(
        title=f"Add `{key}`",
        file=str(file),
        line=fault.line,
        column=at,
        end_line=fault.line,
        end_column=at,
        text=f'\n{key} = ""',
    )


def _nearest(message: str, better: str) -> str:
    """Of the words that a sentence quotes, the one that is nearly the better one."""
    words = _QUOTED.findall(message)
    return max(words, key=lambda word: SequenceMatcher(None, word, better).ratio(), default="")


def _quoted(message: str) -> str:
    first = _QUOTED.search(message)
    return first[1] if first else ""
