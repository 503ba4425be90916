"""Where rendering can start so that a reader who has everything up to a cursor gets all that follows, once.

The place is found by reading the transcript backwards from the cursor, in chunks, however long it is.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from promptside_daemon.world.claude import stream
from promptside_daemon.world.claude.lines import StreamEvent

_CHUNK = 256 * 1024
# How the CLI writes it. Were it to write spaces one day, rendering would start at the head of the file.
_MARK = b'"type":"message_start"'


def resume_point(path: Path, cursor: int) -> int:
    """The offset to render from, at or before `cursor`, with a fresh renderer; drop what is at or before it.

    It is where the last message of the main agent begins that `cursor` has seen the beginning of; else 0.
    """
    with path.open("rb", buffering=0) as file:
        descriptor = file.fileno()
        for found in _marks_backwards(descriptor, cursor):
            start, end = _line_around(descriptor, found, cursor)
            if end is None:
                continue
            line = stream.decode(_read(descriptor, start, end))
            # The words may stand in a text; only the event itself counts.
            if (
                isinstance(line, StreamEvent)
                and line.event.type == "message_start"
                and line.parent_tool_use_id is None
            ):
                return start
    return 0


def _marks_backwards(descriptor: int, end: int) -> Iterator[int]:
    """Where the mark stands before `end`, last one first."""
    overlap = len(_MARK) - 1
    while end > 0:
        start = max(0, end - _CHUNK)
        block = _read(descriptor, start, end)
        place = block.rfind(_MARK)
        while place >= 0:
            yield start + place
            place = block.rfind(_MARK, 0, place + overlap)
        # The next block goes a little further, to find a mark across the border, and never finds one twice.
        end = start + overlap if start else 0


def _line_around(descriptor: int, place: int, limit: int) -> tuple[int, int | None]:
    """Start and end (without its newline) of the line at `place`; no end if it is cut by `limit`."""
    start = place
    while start > 0:
        low = max(0, start - _CHUNK)
        newline = _read(descriptor, low, start).rfind(b"\n")
        if newline >= 0:
            start = low + newline + 1
            break
        start = low
    end = place
    while end < limit:
        block = _read(descriptor, end, min(end + _CHUNK, limit))
        newline = block.find(b"\n")
        if newline >= 0:
            return start, end + newline
        if not block:
            break
        end += len(block)
    return start, None


def _read(descriptor: int, start: int, end: int) -> bytes:
    parts = []
    while start < end and (part := os.pread(descriptor, end - start, start)):
        parts.append(part)
        start += len(part)
    return b"".join(parts)
