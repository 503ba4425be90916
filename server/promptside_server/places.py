"""Places of the daemon and of a text, in the units that the editor counts in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

if TYPE_CHECKING:
    from promptside_server.server import Server


def lines_of(text: str) -> list[str]:
    """A text as the daemon counts its lines."""
    return text.replace("\r\n", "\n").split("\n")


def span(server: Server, lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> types.Range:
    """From a place to a place, both counted from 0 in characters, as the editor counts; never outside the text."""
    return types.Range(start=place(server, lines, *start), end=place(server, lines, *end))


def place(server: Server, lines: list[str], line: int, column: int) -> types.Position:
    """A place that is counted in characters, as the editor counts."""
    line = max(0, min(line, len(lines) - 1))
    column = max(0, min(column, len(lines[line])))
    codec = server.workspace.position_codec
    units = codec.client_num_units(lines[line][:column])
    return types.Position(line=line, character=units)


def in_characters(server: Server, lines: list[str], at: types.Position) -> tuple[int, int]:
    """A place of the editor, in characters."""
    if at.line >= len(lines):
        return len(lines) - 1, len(lines[-1])
    codec = server.workspace.position_codec
    units = 0
    for column, letter in enumerate(lines[at.line]):
        if units >= at.character:
            return at.line, column
        units += codec.client_num_units(letter)
    return at.line, len(lines[at.line])
