"""A page: lines of spans with roles, drawn by the terminal and by every editor; nothing here knows a colour.

Whatever an agent or a person wrote has been made harmless before it stands in a span.
"""

from __future__ import annotations

import datetime as dt
from typing import Literal

from msgspec import Struct

from promptside_protocol.views import Offer

Role = Literal[
    "", "title", "muted", "waiting", "running", "done", "failed", "next", "skipped", "paused",
    "path", "tool", "stderr", "added", "removed", "note",
]  # fmt: skip
"""What a span is; clients give it a colour (UX 4.5). Never colour alone: a mark or a word says it too."""

Fold = Literal["", "open", "closed", "inside"]
"""`open` and `closed` head a group and say how it begins; the lines `inside` follow their head."""


class Span(Struct, frozen=True):
    """A piece of one line in one role."""

    text: str
    role: Role = ""


class Line(Struct, frozen=True, kw_only=True):
    """One line; `ref` names what it is about (`task/12`, `stage/research`, `path/src/a.py:3`)."""

    spans: tuple[Span, ...] = ()
    fold: Fold = ""
    ref: str = ""
    offers: tuple[Offer, ...] = ()
    project: str = ""
    """The path of the project that it is about, where a page holds several."""


class Page(Struct, frozen=True, kw_only=True):
    """A whole page; its title is also the name under which an editor opens it."""

    title: str
    lines: tuple[Line, ...]


class Look(Struct, frozen=True, kw_only=True):
    """What a caller decides about the drawing: the moment, the width in cells, the marks, the time zone."""

    now: float
    width: int = 100
    unicode: bool = False
    zone: dt.tzinfo | None = None
    """None is the zone of this machine."""
    me: str = ""
    """The name under which the daemon keeps what this person did: it reads “you”."""
    calls: bool = True
    """Whether what to do next is said as calls of the terminal; else the offers stand there themselves."""


def line(
    *parts: Span | str, fold: Fold = "", ref: str = "", offers: tuple[Offer, ...] = (), project: str = ""
) -> Line:
    """A line of spans and plain text; empty pieces are left out."""
    spans = tuple(span for part in parts if (span := Span(part) if isinstance(part, str) else part).text)
    return Line(spans=spans, fold=fold, ref=ref, offers=offers, project=project)


def text_of(drawn: Line) -> str:
    """The line without its roles."""
    return "".join(span.text for span in drawn.spans).rstrip()
