"""Where one is in a prompt's template: in what expression, behind which word; for finding one's way only."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from promptside_server.toml_lines import word_at


class Blank(Struct, frozen=True, kw_only=True):
    """What can be written at a place inside of `{{ … }}` or `{% … %}`, or behind the task's directory."""

    kind: Literal["variable", "part", "filter", "test", "tag", "artifact"]
    word: str
    """What stands there already, before the place."""
    owner: str = ""
    """Of a part: the variable."""


def blank(before: str) -> Blank | None:
    """What can be written behind a text; None where a template is only text."""
    if named := _ARTIFACT.search(before):
        return Blank(kind="artifact", word=named[1])
    start = max(before.rfind("{{"), before.rfind("{%"))
    if start < 0 or max(before.rfind("}}"), before.rfind("%}")) > start:
        return None
    inside = before[start + 2 :].lstrip("-+")
    if _in_string(inside):
        return None
    if part := _PART.search(inside):
        return Blank(kind="part", owner=part[1], word=part[2])
    if filtered := _FILTER.search(inside):
        return Blank(kind="filter", word=filtered[1])
    if tested := _TEST.search(inside):
        return Blank(kind="test", word=tested[1])
    if before[start : start + 2] == "{%" and (tag := _TAG.fullmatch(inside)):
        return Blank(kind="tag", word=tag[1])
    return Blank(kind="variable", word=_WORD.search(inside)[0])  # type: ignore[index]  # it matches the empty word


def named_at(text: str, line: int, column: int) -> Blank | None:
    """The word of an expression that a place is in, whole."""
    lines = text.split("\n")
    if line >= len(lines):
        return None
    _, end = word_at(lines[line], column)
    found = blank("\n".join([*lines[:line], lines[line][:end]]))
    return found if found is not None and found.word else None


TAGS = {
    "if": "What follows is there only if something is.",
    "elif": "Else, if something else is.",
    "else": "What is there if it is not.",
    "endif": "The end of an `if`.",
    "for": "What follows once for each item of a list.",
    "endfor": "The end of a `for`.",
    "set": "Gives a name to a value.",
}
"""The words that a `{% … %}` can begin with."""

_ARTIFACT = re.compile(r"\{\{-?\s*task\.directory\s*-?\}\}/([\w.-]*)\Z")
_PART = re.compile(r"\b([A-Za-z_]\w*)\.(\w*)\Z")
_FILTER = re.compile(r"\|\s*(\w*)\Z")
_TEST = re.compile(r"\bis\s+(?:not\s+)?(\w*)\Z")
_TAG = re.compile(r"\s*(\w*)")
_WORD = re.compile(r"\w*\Z")


def _in_string(inside: str) -> bool:
    quote = ""
    for letter in inside:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
    return bool(quote)
