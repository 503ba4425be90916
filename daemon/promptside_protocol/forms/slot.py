"""The places of answers that several kinds have: free text, ticks, and lists."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from promptside_protocol.forms.escape import decode
from promptside_protocol.forms.grammar import BLANKS, BULLET, TICK, Page
from promptside_protocol.forms.kind import Edit


class TickLine(Struct, frozen=True, kw_only=True):
    """A tick: its line from 0, whether it is set, and its text."""

    at: int
    on: bool
    text: str


def free_text(page: Page, start: int, end: int, ends_item: Callable[[str], bool], first: str = "") -> str:
    """What a person wrote in these lines, and in front of them behind `Answer:`."""
    rows = [(line, bool(page.code[at])) for at, line in page.rows(start, end)]
    return decode([(first.strip(BLANKS), False), *rows] if first else rows, ends_item)


def replaced(page: Page, start: int, end: int, lines: list[str]) -> Edit:
    """An edit that puts lines in the place of others, with the notes to the agent kept below them."""
    notes = [page.lines[at] for at in range(start, end) if at in page.notes]
    return Edit(start, end, (*lines, *notes, *([""] if notes else [])))


def ticks(page: Page, start: int, end: int) -> list[TickLine]:
    """The ticks in these lines."""
    return [
        TickLine(at=at, on=tick[2] in "xX", text=tick[4])
        for at, line in page.tokens(start, end)
        if (tick := TICK.match(line))
    ]


def flipped(page: Page, at: int, *, on: bool) -> Edit:
    """An edit that sets or clears a tick."""
    tick = TICK.match(page.lines[at])
    assert tick is not None
    return Edit(at, at + 1, (f"{tick[1]}{'x' if on else ' '}{tick[3]}{tick[4]}",))


def tick_line(text: str, *, on: bool = False) -> str:
    """A tick as we write it."""
    return f"- [{'x' if on else ' '}] {text}"


def bulleted(lines: list[str]) -> list[str]:
    """The entries of a list; a line without a bullet goes on with the entry above it."""
    entries: list[str] = []
    for line in lines:
        bullet = BULLET.match(line)
        if bullet:
            entries.append(bullet[2] or "")
        elif line and entries and line[0] in BLANKS:
            entries[-1] = f"{entries[-1]} {line.strip(BLANKS)}"
        elif line:
            entries.append(line)
    return [entry for entry in (" ".join(entry.split()) for entry in entries) if entry]
