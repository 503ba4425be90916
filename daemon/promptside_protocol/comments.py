"""Comments on lines, gathered while reading what an attempt changed, as one word to the agent (ED-12)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

QUOTED = 40
"""Lines of a quotation that are sent; the agent can read the file."""


class LineComment(Struct, frozen=True, kw_only=True):
    """What a person says of lines of a file; lines count from 1."""

    path: str
    """Relative to the project."""
    text: str
    line: int = 0
    """0 is the file as a whole."""
    end_line: int = 0
    """The last line; 0 where it is only one."""
    quote: str = ""
    """What stood there when it was said."""


def feedback(words: str, comments: Sequence[LineComment]) -> str:
    """The person's words, then each comment with its place, in the order of files and lines."""
    parts = [words.strip()] if words.strip() else []
    parts += [_said(one) for one in sorted(comments, key=lambda c: (c.path, c.line)) if one.text.strip()]
    return "\n\n".join(parts)


def _said(comment: LineComment) -> str:
    place = f"`{comment.path}`"
    if comment.line:
        last = max(comment.end_line, comment.line)
        place += f", line {comment.line}" if last == comment.line else f", lines {comment.line}-{last}"
    lines = [f"About {place}:", ""]
    quoted = comment.quote.rstrip().splitlines()
    if quoted:
        longest = max((len(run) for run in re.findall(r"`+", comment.quote)), default=0)
        fence = "`" * max(3, longest + 1)
        more = [f"({len(quoted) - QUOTED} more lines.)"] if len(quoted) > QUOTED else []
        lines += [fence, *quoted[:QUOTED], fence, *more, ""]
    return "\n".join([*lines, comment.text.strip()])
