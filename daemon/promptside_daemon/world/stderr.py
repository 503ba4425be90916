"""The end of what an agent said on its standard error; there may be gigabytes before it."""

from __future__ import annotations

from pathlib import Path

TAIL_BYTES = 64 * 1024


def tail(path: Path, limit: int = TAIL_BYTES) -> str:
    """The last bytes of a file as text, from the start of a line if there were more; empty if it is not there."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(size - limit, 0))
            said = file.read(limit)
    except FileNotFoundError:
        return ""
    if size > limit and b"\n" in said:
        said = said.split(b"\n", 1)[1]
    return said.decode(errors="replace")
