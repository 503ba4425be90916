"""The tokens of a form document and the lines they stand in; every pattern is linear in the line.

Inside a code fence nothing is a token. Lines end where editors end them: LF, CR LF or CR, nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from promptside_protocol.forms.document import Form, Note, Problem

BLANKS: Final = " \t"
LINE_END: Final = re.compile(r"\r\n|\r|\n")
TICK: Final = re.compile(r"^( {0,3}[-*+] \[)([ xX])(\][ \t]+)(\S.*)$")
BROKEN_TICK: Final = re.compile(r"^ {0,3}(?:[-*+] *)?\[[^\]\n]{0,2}\](?![(\[:])")
NOTE: Final = re.compile(r"^[ \t]*>>(?!>) ?(.*)$")
HEADING: Final = re.compile(r"^(#{1,6})(?:[ \t]+(.*))?$")
ANSWER: Final = re.compile(r"^(Answer|Files):")
CONFLICT: Final = re.compile(r"^(?:<{7}|>{7})(?: |$)")
TRAILER: Final = re.compile(r"^<!-- promptside ([^\s/#]+)/([^\s/#]+)#(\d+) (\w+)(?: (\d+))? -->$")
BULLET: Final = re.compile(r"^([ \t]*)[-*+](?:[ \t]+(.*))?$")
_ID: Final = re.compile(r"^(\w+)[ \t]*[·:.–—-](?:[ \t]|$)")
_FENCE: Final = re.compile(r"^ {0,3}(?:(`{3,})[^`]*|(~{3,}).*)$")
_FENCE_END: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*$")


class Fence(Struct, frozen=True, gc=False):
    """The mark that opened a code block; only the same character, as often or more, closes it."""

    mark: str

    def closed_by(self, line: str) -> bool:
        """Whether this line ends the block."""
        end = _FENCE_END.match(line)
        return end is not None and end[1][0] == self.mark[0] and len(end[1]) >= len(self.mark)


class Section(Struct, frozen=True, kw_only=True):
    """An item's place: the line that opens it, and the line behind its last; both count from 0."""

    ref: str
    start: int
    end: int
    title: str = ""


class Page:
    """A document cut into lines, with what is no answer of any kind taken out: notes, last line, code."""

    def __init__(self, text: str) -> None:
        self.lines: list[str] = [line.rstrip(BLANKS) for line in LINE_END.split(text)]
        self.code: list[int] = []
        """For each line the line (from 1) that opens its code block; 0 outside of code."""
        self.unclosed = 0
        """The line (from 1) that opens a code block which nothing closes, if there is one."""
        self.conflict: int | None = None
        self.trailers: set[int] = set()
        self.notes: set[int] = set()
        self._scan()

    def _scan(self) -> None:
        fence: Fence | None = None
        opened = 0
        for at, line in enumerate(self.lines):
            if fence is not None:
                self.code.append(opened)
                if fence.closed_by(line):
                    fence = None
                continue
            fence = opening(line)
            opened = at + 1 if fence is not None else 0
            self.code.append(opened)
            if fence is not None:
                continue
            if NOTE.match(line):
                self.notes.add(at)
            elif TRAILER.match(line):
                self.trailers.add(at)
            elif self.conflict is None and CONFLICT.match(line):
                self.conflict = at
        self.unclosed = opened if fence is not None else 0

    def tokens(self, start: int = 0, end: int | None = None) -> Iterator[tuple[int, str]]:
        """The lines that may hold a token: no code, no note, not the last line."""
        for at in range(start, len(self.lines) if end is None else end):
            if not self.code[at] and at not in self.notes:
                yield at, self.lines[at]

    def rows(self, start: int, end: int) -> Iterator[tuple[int, str]]:
        """The lines without notes and last line, code included."""
        for at in range(start, end):
            if at not in self.notes and at not in self.trailers:
                yield at, self.lines[at]


class Sections(Struct, frozen=True, kw_only=True):
    """The items of a document by id, in their order there."""

    found: dict[str, Section]
    problems: tuple[Problem, ...] = ()


def opening(line: str) -> Fence | None:
    """The code fence that this line opens, if it does (CommonMark)."""
    if "```" not in line and "~~~" not in line:
        return None
    found = _FENCE.match(line)
    return Fence(found[1] or found[2]) if found else None


def heading(line: str) -> tuple[int, str] | None:
    """Level and text of a heading, without the marks that may close it."""
    found = HEADING.match(line)
    if not found:
        return None
    text = found[2] or ""
    bare = text.rstrip("#")
    return len(found[1]), bare.rstrip(BLANKS) if bare != text and bare[-1:] in BLANKS else text


def is_heading(line: str, level: int) -> bool:
    """Whether this is a heading of this level or higher up."""
    found = heading(line)
    return found is not None and found[0] <= level


def opened_by_id(known: set[str], level: int) -> Callable[[str], str | None]:
    """Which item a heading of this level opens: the known one that it begins with."""

    def opens(line: str) -> str | None:
        found = heading(line)
        ref = leading_id(found[1]) if found and found[0] == level else ""
        return ref if ref in known else None

    return opens


def leading_id(text: str) -> str:
    """The id that a heading or a choice begins with; empty if there is none."""
    found = _ID.match(text)
    return found[1] if found else ""


def sections(
    page: Page, opens: Callable[[str], str | None], closes: Callable[[str], bool], name: Callable[[str], str]
) -> Sections:
    """Cut a document into its items; the first of two with one id counts."""
    found: dict[str, Section] = {}
    problems: list[Problem] = []
    ref: str | None = None
    start = 0

    def close(end: int) -> None:
        if ref is not None and ref not in found:
            found[ref] = Section(ref=ref, start=start, end=end, title=page.lines[start])

    for at, line in page.tokens():
        opened = opens(line)
        if opened is not None:
            close(at)
            ref, start = opened, at
            if opened in found:
                first = found[opened].start + 1
                problems.append(
                    Problem(
                        line=at + 1,
                        severity="error",
                        code="form-twice",
                        text=f"{name(opened)} is here twice (first in line {first}).",
                        ref=opened,
                    )
                )
        elif at in page.trailers or closes(line):
            close(at)
            ref = None
    close(len(page.lines))
    return Sections(found=found, problems=tuple(problems))


def prose(page: Page, start: int, end: int, slots: frozenset[int] = frozenset()) -> str:
    """The text of some lines as it stands there, without notes and the slots of answers."""
    return "\n".join(line for at, line in page.rows(start, end) if at not in slots).strip("\n")


def missing(
    page: Page, names: dict[str, str], found: dict[str, Section], opens: Callable[[str], str | None]
) -> list[Problem]:
    """What is said of items that are not in the document; one sentence for all that a code block swallowed."""
    gone = [ref for ref in names if ref not in found]
    swallowed: dict[int, list[str]] = {page.unclosed: []} if page.unclosed else {}
    if gone:
        for at, line in enumerate(page.lines):
            ref = opens(line) if page.code[at] else None
            if ref in gone:
                swallowed.setdefault(page.code[at], []).append(ref)
                gone.remove(ref)
    problems: list[Problem] = []
    for at, refs in swallowed.items():
        below = f": {listed([names[ref] for ref in refs])}" if refs else ""
        text = f"This code block is not closed. Nothing below it is read{below}."
        problems.append(Problem(line=at, severity="error", code="form-fence", text=text))
    for ref in gone:
        text = f"{names[ref]} is missing from the document."
        problems.append(Problem(line=1, severity="error", code="form-missing", text=text, ref=ref))
    return problems


def broken_ticks(places: Iterator[tuple[int, str]]) -> list[Problem]:
    """Lines that are nearly a tick: each counts as neither yes nor no."""
    return [
        Problem(
            line=at + 1,
            severity="error",
            code="form-tick",
            text='Not a tick: write "- [x] " or "- [ ] ", with a space after each part.',
        )
        for at, line in places
        if BROKEN_TICK.match(line) and not TICK.match(line)
    ]


def frame_problems(page: Page, form: Form, kind: str, number: int | None) -> list[Problem]:
    """A last line that says another document."""
    problems: list[Problem] = []
    for at in sorted(page.trailers):
        found = TRAILER.match(page.lines[at])
        assert found is not None
        task, stage, attempt, other, count = found.groups()
        text = ""
        if (task, stage, other) != (str(form.task), form.stage, kind):
            text = (
                f"This is the document of {task}/{stage} ({other}); {form.task}/{form.stage} waits for you."
            )
        elif attempt != str(form.attempt):
            text = f"This is attempt {attempt}; attempt {form.attempt} waits for you."
        elif number is not None and count != str(number):
            text = f"This is round {count}; round {number} waits for you."
        if text:
            problems.append(Problem(line=at + 1, severity="error", code="form-other", text=text))
    return problems


def trailer(form: Form, kind: str, number: int | None) -> str:
    """The last line of a document."""
    count = "" if number is None else f" {number}"
    return f"<!-- promptside {form.task}/{form.stage}#{form.attempt} {kind}{count} -->"


def notes(page: Page, found: dict[str, Section]) -> tuple[Note, ...]:
    """Notes to the agent with the nearest item above each; lines in a row are one note."""
    places = sorted((s.start, s.ref) for s in found.values())
    taken: list[tuple[int, str, list[str]]] = []
    last = -2
    index = -1
    for at in sorted(page.notes):
        while index + 1 < len(places) and places[index + 1][0] < at:
            index += 1
        said = NOTE.match(page.lines[at])
        assert said is not None
        if at == last + 1:
            taken[-1][2].append(said[1])
        else:
            taken.append((at + 1, places[index][1] if index >= 0 else "", [said[1]]))
        last = at
    return tuple(Note(line=line, ref=ref, text="\n".join(text).strip()) for line, ref, text in taken)


def listed(words: Iterator[str] | list[str]) -> str:
    """`A`, `A and B`, `A, B and C`."""
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
