"""Where the person is in the source: quoted for the agent, with path and lines, as far as it fits (ED-13).

A client tells it with an order, as `{uri, range}`; a mere cursor is named, a selection is quoted.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from lsprotocol import types
from msgspec import Struct
from pygls.exceptions import JsonRpcInvalidParams
from pygls.uris import to_fs_path

from promptside_server.places import in_characters, lines_of

if TYPE_CHECKING:
    from promptside_server.server import Server

CHARACTERS = 8_000
"""More of a selection than this is not quoted; the agent can read the file."""
MESSAGES = 5
"""Diagnostics that go along."""
OURS = "/.promptside/tasks/", "/.promptside/drafts/", "/.promptside/DESK.md"


class At(Struct, frozen=True, kw_only=True):
    """A position as LSP has it."""

    line: int
    character: int = 0


class Range(Struct, frozen=True, kw_only=True):
    """From a position to a position."""

    start: At
    end: At


class Place(Struct, frozen=True, kw_only=True):
    """What a client adds to an order: the document, the cursor or selection in it, and what is wrong there."""

    uri: str = ""
    range: Range | None = None
    diagnostics: tuple[str, ...] = ()
    """Messages of any source."""

    @property
    def selected(self) -> bool:
        """Whether there is more than a cursor."""
        return self.range is not None and self.range.start != self.range.end


class Context(Struct, frozen=True, kw_only=True):
    """A place in words."""

    text: str = ""
    where: str = ""
    """`src/login.ts:41-43`; empty if there is no such file."""
    says: bool = False
    """Whether it says something by itself: a selection, or what is wrong; not a cursor."""


def place_in(name: str, given: dict[str, Any]) -> Place:
    """The place among the arguments of a command."""
    found = {key: given[key] for key in Place.__struct_fields__ if given.get(key) is not None}
    try:
        return msgspec.convert(found, Place)
    except msgspec.ValidationError as error:
        raise JsonRpcInvalidParams(f"promptside.{name}: {error}.") from error


def is_ours(path: Path) -> bool:
    """Whether a file is a document of Promptside's: what one writes there is no source."""
    name = path.as_posix()
    return any(part in name for part in OURS)


def context(server: Server, place: Place, project: str) -> Context:
    """The place as the agent is to be told of it; empty where there is nothing to be told."""
    name = to_fs_path(place.uri) if place.uri.startswith("file:") else None
    if name is None or (is_ours(Path(name)) and not place.selected):
        return Context()
    path = Path(name).resolve()
    shown = path.relative_to(project).as_posix() if project and path.is_relative_to(project) else str(path)
    text = _text(server, place.uri, path)
    if text is None:
        return Context()
    lines = lines_of(text)
    (first, start), (last, end) = _span(server, lines, place)
    if last > first and end == 0:
        last, end = last - 1, len(lines[last - 1])  # whole lines: the end stands at the beginning of the next
    where = f"{shown}:{first + 1}" + (f"-{last + 1}" if last > first else "")
    said = [f"> {line}" for one in place.diagnostics[:MESSAGES] for line in one.strip().splitlines()]
    if place.selected:
        picked = "\n".join([*lines[first:last], lines[last][:end]]) if last > first else lines[first][:end]
        head = f"From `{shown}`, {_lines(first, last)}, selected in the editor{_unsaved(server, place.uri)}:"
        parts = [head, "", *_quoted(picked[start:], _language(server, place.uri, path))]
    elif said:
        parts = [f"In `{shown}`, {_lines(first, last)}:", "", *_quoted(lines[first], "")]
    else:
        return Context(text=f"The person is in `{shown}`, line {first + 1}.", where=where)
    if said:
        parts += ["", "What is said there:", "", *said]
    return Context(text="\n".join(parts), where=where, says=True)


def _lines(first: int, last: int) -> str:
    return f"lines {first + 1}-{last + 1}" if last > first else f"line {first + 1}"


def _span(server: Server, lines: list[str], place: Place) -> tuple[tuple[int, int], tuple[int, int]]:
    if place.range is None:
        return (0, 0), (0, 0)

    def at(one: At) -> tuple[int, int]:
        return in_characters(server, lines, types.Position(max(one.line, 0), max(one.character, 0)))

    start, end = sorted((at(place.range.start), at(place.range.end)))
    return start, end


def _quoted(text: str, language: str) -> list[str]:
    """A block with a fence that nothing in it can close; cut at a line where it is too long, which is said."""
    rest = ""
    if len(text) > CHARACTERS:
        kept = text[:CHARACTERS]
        kept = kept[: kept.rindex("\n")] if "\n" in kept else kept
        rest = f"(Cut: {len(kept)} of {len(text)} characters. The rest is in the file.)"
        text = kept
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", *text.rstrip("\n").split("\n"), fence, *(["", rest] if rest else [])]


def _text(server: Server, uri: str, path: Path) -> str | None:
    text = server.document(uri)
    if text is not None:
        return text
    try:
        return path.read_text("utf-8", errors="replace")
    except OSError:
        return None


def _language(server: Server, uri: str, path: Path) -> str:
    from promptside_server.documents import documents  # noqa: PLC0415  # see below

    found = documents(server).buffer(uri)
    word = (found.language_id if found is not None else None) or path.suffix.lstrip(".")
    return word if re.fullmatch(r"[\w+#-]{1,30}", word) else ""


def _unsaved(server: Server, uri: str) -> str:
    from promptside_server.features.unsaved import unsaved  # noqa: PLC0415  # which needs this module's door

    return ", not saved yet" if unsaved(server).holds(uri) else ""
