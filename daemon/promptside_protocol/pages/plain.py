"""Text of agents and people made fit for a line: no escape sequences, no hidden order, known width.

The one place that decides what may reach a terminal; everything that draws goes through it.
"""

from __future__ import annotations

import re

_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement
    r"|\x1b[PX^_\]][^\x07\x1b]*(?:\x07|\x1b\\|$)"  # OSC, DCS, …: titles, links, clipboard
    r"|\x1b[ -/]*[0-~]"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_BREAK = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_HIDDEN = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]")
"""Controls, and the marks that can make a line read differently from what it says."""
_SURROGATE = re.compile("[\ud800-\udfff]")
ZWJ = "\u200d"


def harmless(text: str) -> str:
    """The same text without anything a terminal would obey; line breaks and tabs stay."""
    if text.isprintable() and text.isascii():
        return text
    text = _BREAK.sub("\n", _SEQUENCE.sub("", text))
    return _SURROGATE.sub("\ufffd", _HIDDEN.sub("", text))


def one_line(text: str) -> str:
    """The same text in one line: every run of blanks and line breaks is one blank."""
    return " ".join(harmless(text).split())


def cells(text: str) -> int:
    """How many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(_width(letter) for letter in text)


def cut(text: str, width: int, *, unicode: bool = False) -> str:
    """At most `width` columns of the text; what is missing is marked. No letter is torn from its accents."""
    if cells(text) <= width:
        return text
    mark = "…" if unicode else "..."
    room = width - len(mark)
    if room <= 0:
        return mark[: max(width, 0)]
    return text[: fitting(text, room)].rstrip() + mark


def fitting(text: str, width: int) -> int:
    """How many letters from the start fit into so many columns, without tearing one that is put together."""
    taken = 0
    for index, letter in enumerate(text):
        step = _width(letter)
        if taken + step > width:
            while index > 0 and (_width(text[index]) == 0 or text[index - 1] == ZWJ):
                index -= 1  # noqa: PLW2901  # the loop ends here: this is where the last whole letter ends
            return index
        taken += step
    return len(text)


def pad(text: str, width: int) -> str:
    """The text, filled up with blanks to so many columns."""
    return text + " " * max(width - cells(text), 0)


def _width(letter: str) -> int:
    if letter.isascii():
        return 1
    from unicodedata import category, east_asian_width  # noqa: PLC0415  # a table of 1 MB that most calls spare

    if category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(letter) in ("W", "F") else 1
