"""How text is written into a document so that it is never read as a token.

The agent's text is changed for good (`block`, `one_line`); a person's answer gets backslashes that reading
takes away again (`encode`, `decode`), so that it comes back as it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from promptside_protocol.forms.grammar import ANSWER, BLANKS, CONFLICT, NOTE, Fence, heading, opening

_HEADING: Final = re.compile(r"^( {0,3})(#{1,6})(?=[ \t]|$)")
_BRACKET: Final = re.compile(r"^([ \t]*(?:[-*+>][ \t]*)*)\[(?=[^\]\n]{0,2}\](?![(\[:]))")
_NOTE: Final = re.compile(r"^([ \t]*)>>(?!>)")
_KEYWORD: Final = re.compile(r"^([ \t]*(?:[-*+][ \t]+)?)(Answer|Files|Note):")
_TRAILER: Final = re.compile(r"<!--(?=\s*promptside)", re.IGNORECASE)
_CONFLICT: Final = re.compile(r"^(?=<{7}(?: |$)|>{7}(?: |$))")
_UNSAFE: Final = re.compile("[\x00\ud800-\udfff]")
_OTHER_ENDS: Final = re.compile("\r\n|[\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]")
_FENCE_LINE: Final = re.compile(r"^ {0,3}(?:`{3,}|~{3,})")
_BACKSLASHES: Final = re.compile(r"^([ \t]*)(\\*)(.*)$", re.DOTALL)
_TRAILER_START: Final = "<!-- promptside "


def clean(text: str) -> str:
    """A text with `\\n` for its line ends, and with nothing that can't be stored in a text file."""
    return _UNSAFE.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def lines_kept(text: str) -> str:
    """Code as it is kept: cleaned, no blanks at the ends of lines, no blank lines at either end."""
    return "\n".join(line.rstrip(BLANKS) for line in clean(text).split("\n")).strip("\n")


def normal(text: str) -> str:
    """A text as it is kept: as code is, without blanks at its start, and outside of code blocks without more
    than one blank line in a row."""
    lines = lines_kept(text).lstrip(" \t\n").split("\n")
    return "\n".join(_single_blanks(list(zip(lines, in_code(lines), strict=True))))


def one_line(text: str) -> str:
    """The agent's text where only one line fits; every white space counts as a blank."""
    line = " ".join(_UNSAFE.sub("\ufffd", text).split())
    return _escaped(line)


def block(text: str, level: int) -> list[str]:
    """The agent's Markdown below a heading of this level; 0 leaves headings and lists as they are."""
    lines = [line.rstrip(BLANKS) for line in _OTHER_ENDS.sub("\n", _UNSAFE.sub("\ufffd", text)).split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    shift = _shift(lines, level)
    out: list[str] = []
    fence: Fence | None = None
    for line in _single_blanks([*zip(lines, in_code(lines), strict=True)]):
        if fence is not None:
            # A fence's own lines lose their indent, so that it is still a fence where the block is indented.
            end = fence.closed_by(line)
            out.append(line.strip(BLANKS) if end else line)
            fence = None if end else fence
            continue
        fence = opening(line)
        if fence is not None:
            out.append(line.strip(BLANKS))
        elif level:
            out.append(_escaped(_deeper(line, shift)))
        else:
            out.append(_escaped_prose(line))
    if fence is not None:
        out.append(fence.mark)
    return out


def indented(lines: list[str], blanks: str) -> list[str]:
    """Lines that belong to a bullet."""
    return [blanks + line if line else "" for line in lines]


def encode(text: str, ends_item: Callable[[str], bool]) -> list[str]:
    """A person's text as lines of a document; a line that would be a token gets a backslash."""
    kept = normal(text)
    lines = kept.split("\n") if kept else []
    out: list[str] = []
    for line, code in zip(lines, in_code(lines), strict=True):
        parts = _BACKSLASHES.match(line)
        assert parts is not None
        token = not code and _is_token(parts[1] + parts[3], ends_item)
        out.append(f"{parts[1]}\\{parts[2]}{parts[3]}" if token else line)
    return out


def decode(rows: list[tuple[str, bool]], ends_item: Callable[[str], bool]) -> str:
    """The text that `encode` wrote, from lines and whether each is code."""
    out: list[tuple[str, bool]] = []
    for line, code in rows:
        parts = None if code else _BACKSLASHES.match(line)
        if parts and parts[2] and _is_token(parts[1] + parts[3], ends_item):
            out.append((f"{parts[1]}{parts[2][1:]}{parts[3]}", code))
        else:
            out.append((line, code))
    return "\n".join(_single_blanks(out)).strip(" \t\n")


def fenced(text: str, lang: str) -> list[str]:
    """A person's code in a fence that nothing in it can close."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    mark = "`" * max(3, longest + 1)
    return [f"{mark}{lang}", *text.split("\n"), mark]


def unfenced(lines: list[str]) -> str | None:
    """The content of lines that are one code block and nothing else."""
    if len(lines) < 2:
        return None
    fence = opening(lines[0])
    if fence is None or not fence.closed_by(lines[-1]):
        return None
    if any(fence.closed_by(line) for line in lines[1:-1]):
        return None
    return "\n".join(lines[1:-1])


def shifted(text: str, level: int) -> str:
    """The agent's Markdown as the start of a person's text: headings below this level, the rest as it is."""
    lines = _OTHER_ENDS.sub("\n", _UNSAFE.sub("\ufffd", text)).split("\n")
    shift = _shift(lines, level)
    codes = in_code(lines)
    return normal("\n".join(a if code else _deeper(a, shift) for a, code in zip(lines, codes, strict=True)))


def in_code(lines: list[str]) -> list[bool]:
    """Which lines are code; a fence that nothing closes opens nothing."""
    closers = _closers(lines)
    out: list[bool] = []
    fence: Fence | None = None
    for at, line in enumerate(lines):
        if fence is not None:
            out.append(True)
            fence = None if fence.closed_by(line) else fence
            continue
        fence = opening(line)
        if fence is not None and closers[at + 1].get(fence.mark[0], 0) < len(fence.mark):
            fence = None
        out.append(fence is not None)
    return out


def _single_blanks(rows: list[tuple[str, bool]]) -> list[str]:
    out: list[str] = []
    after_blank = True
    for line, code in rows:
        if line or code or not after_blank:
            out.append(line)
        after_blank = not line and not code
    return out


def _is_token(line: str, ends_item: Callable[[str], bool]) -> bool:
    return (
        NOTE.match(line) is not None
        or line.startswith(_TRAILER_START)
        or CONFLICT.match(line) is not None
        or ANSWER.match(line) is not None
        or _FENCE_LINE.match(line) is not None
        or (heading(line) is not None and ends_item(line))
    )


def _closers(lines: list[str]) -> list[dict[str, int]]:
    """For each line the longest mark, by character, that closes a fence there or further down."""
    below: dict[str, int] = {}
    out = [below]
    for line in reversed(lines):
        mark = line.strip(BLANKS)
        if mark and mark[0] in "`~" and Fence(mark).closed_by(line):
            below = {**below, mark[0]: max(below.get(mark[0], 0), len(mark))}
        out.append(below)
    out.reverse()
    return out


def _shift(lines: list[str], level: int) -> int:
    """How much deeper the headings go, so that the highest comes right below the level."""
    found = [_HEADING.match(line) for line, code in zip(lines, in_code(lines), strict=True) if not code]
    highest = min((len(mark[2]) for mark in found if mark), default=7)
    return max(0, level + 1 - highest)


def _deeper(line: str, shift: int) -> str:
    found = _HEADING.match(line) if shift else None
    return f"{'#' * min(6, len(found[2]) + shift)}{line[found.end() :]}" if found else line


def _escaped(line: str) -> str:
    line = _BRACKET.sub(r"\1\[", line)
    line = _KEYWORD.sub(r"\1\2&#58;", line)
    return _escaped_prose(line)


def _escaped_prose(line: str) -> str:
    line = _NOTE.sub(r"\1> >", line)
    line = _CONFLICT.sub(r"\\", line)
    return _TRAILER.sub("&lt;!--", line)
