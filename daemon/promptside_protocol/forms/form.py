"""What can be done with a form document, whatever its kind; no text makes anything here raise.

Only `from_plain` raises: what a client sends is refused with a sentence.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from typing import Any

from promptside_protocol.forms import checklist, fields, options, questionnaire, text
from promptside_protocol.forms.document import Answers, Definition, Lack, Note, Parsed, Problem, together
from promptside_protocol.forms.escape import one_line
from promptside_protocol.forms.grammar import (
    ANSWER,
    BLANKS,
    BULLET,
    LINE_END,
    TICK,
    TRAILER,
    Page,
    Section,
    frame_problems,
    notes,
    trailer,
)
from promptside_protocol.forms.kind import Edit, Kind, error

KINDS: dict[str, Kind[Any, Any]] = {
    kind.name: kind for kind in (text.KIND, options.KIND, checklist.KIND, fields.KIND, questionnaire.KIND)
}
"""Every kind by its name; a further format is one more file and its name here (ST-6)."""


def kind_of(definition: Definition) -> Kind[Any, Any]:
    """The functions for this definition."""
    return KINDS[str(definition.__struct_config__.tag)]


def render(definition: Definition, answers: Answers | None = None) -> str:
    """The whole document, with these answers in it."""
    kind = kind_of(definition)
    lines = [f"# {one_line(definition.title)}".rstrip(), "", f"> {kind.sentence(definition)}", ""]
    lines += kind.render(definition)
    while not lines[-1]:
        lines.pop()
    lines += ["", trailer(definition, kind.name, kind.number(definition)), ""]
    blank = "\n".join(lines)
    return blank if answers is None else apply(definition, blank, answers)


def parse(definition: Definition, text: str) -> Parsed:
    """What a person wrote into the document, and what is wrong with it."""
    kind = kind_of(definition)
    page = Page(text)
    if page.conflict is not None:
        problem = error(page.conflict, "conflict", "There are merge conflict markers in this document.")
        unread = frozenset(kind.ids(definition))
        return Parsed(answers=kind.from_plain(definition, {}), problems=(problem,), unread=unread)
    reading = kind.read(definition, page)
    said = notes(page, reading.found)
    found = [*frame_problems(page, definition, kind.name, kind.number(definition)), *reading.problems]
    places = {ref: section.start + 1 for ref, section in reading.found.items()}
    unread = frozenset(kind.ids(definition)) - places.keys() | _broken(reading.found, found)
    found += _gate(kind.lacks(definition, reading.answers), said, places)
    return Parsed(
        answers=reading.answers,
        notes=said,
        problems=tuple(sorted(found, key=lambda problem: problem.line)),
        bodies=reading.bodies,
        unread=unread,
    )


def apply(definition: Definition, text: str, answers: Answers) -> str:
    """The document with these answers instead of its own; everything else in it stays as it is."""
    kind = kind_of(definition)
    page = Page(text)
    if page.conflict is not None:
        return text
    edits = sorted(kind.write(definition, page, answers), key=lambda edit: (edit.start, edit.end))
    return _edited(text, edits) if edits else text


def lacks(definition: Definition, answers: Answers) -> list[Lack]:
    """What stands between these answers and an approval, in sentences (ST-5)."""
    found: list[Lack] = kind_of(definition).lacks(definition, answers)
    return found


def from_plain(definition: Definition, plain: dict[str, Any]) -> Answers:
    """Answers from what a client sent; raises `FormError` for what can't belong to this form."""
    answers: Answers = kind_of(definition).from_plain(definition, plain)
    return answers


def to_plain(answers: Answers) -> dict[str, Any]:
    """Answers as plain data, by item; an item that is not there is unanswered."""
    plain: dict[str, Any] = KINDS[str(answers.__struct_config__.tag)].to_plain(answers)
    return plain


def without_notes(text: str, words: str | None = None) -> str:
    """The document without its notes to the agent; with `words`, only without those that are among them."""
    page = Page(text)
    taken = notes(page, {})
    gone = {
        at
        for note in taken
        if words is None or (note.text and note.text in words)
        for at in range(note.line - 1, note.line - 1 + _lines_of(page, note.line - 1))
    }
    return _edited(text, [Edit(at, at + 1, ()) for at in sorted(gone)]) if gone else text


def attempt_in(text: str) -> int | None:
    """The attempt that a document's last line names; None if it names none."""
    lines = reversed(LINE_END.split(text))
    found = next((f for line in lines if (f := TRAILER.match(line.rstrip(BLANKS)))), None)
    return int(found[3]) if found is not None else None


def decision_text(definition: Definition, text: str, answers: Answers) -> str:
    """The prompt variable `user_decision` for the next stage (ST-4), items as the document has them."""
    kind = kind_of(definition)
    page = Page(text)
    bodies = {} if page.conflict is not None else kind.read(definition, page).bodies
    words: str = kind.words(definition, bodies, answers)
    return words


def canonical(definition: Definition, text: str) -> str:
    """The document as it is compared: what formatting on save changes is always the same.

    Blanks at the ends of lines, the marker of a bullet, `X` for `x`, and how many blank lines follow one
    another say nothing outside of code; the last line is always ours.
    """
    kind = kind_of(definition)
    page = Page(text)
    out: list[str] = []
    for at, line in enumerate(page.lines):
        if page.code[at]:
            out.append(line)
        elif at not in page.trailers and (line or (out and out[-1] and not ANSWER.fullmatch(out[-1]))):
            out.append(_plain_bullet(line))
    while out and not out[-1]:
        out.pop()
    own = trailer(definition, kind.name, kind.number(definition))
    others = [page.lines[at] for at in sorted(page.trailers) if page.lines[at] != own]
    return "\n".join([*out, *others, "", own, ""])


def shown(definition: Definition, text: str) -> str:
    """The hash of what a client shows: formatting on save keeps it, any answer or word changes it (CW-23)."""
    return hashlib.sha256(canonical(definition, text).encode("utf-8", "surrogatepass")).hexdigest()


def _plain_bullet(line: str) -> str:
    tick = TICK.match(line)
    if tick:
        line = f"{tick[1]}{tick[2].lower()}] {tick[4]}"
    bullet = BULLET.match(line)
    return f"{bullet[1]}- {bullet[2] or ''}".rstrip() if bullet else line


def _edited(text: str, edits: list[Edit]) -> str:
    """The text with its lines replaced, each with the line end that is used there."""
    parts = LINE_END.split(text)
    ends = [*LINE_END.findall(text), ""]
    end = "\r\n" if "\r\n" in ends else "\n"
    out: list[str] = []
    done = 0
    for edit in edits:
        out += [
            line + mark for line, mark in zip(parts[done : edit.start], ends[done : edit.start], strict=True)
        ]
        if out and not out[-1].endswith(("\r", "\n")):
            out[-1] += end
        out += [line + end for line in edit.lines]
        done = edit.end
    out += [line + mark for line, mark in zip(parts[done:], ends[done:], strict=True)]
    return "".join(out)


def _lines_of(page: Page, start: int) -> int:
    """How many lines in a row from this one on are notes."""
    end = start
    while end in page.notes:
        end += 1
    return end - start


def _broken(found: dict[str, Section], problems: list[Problem]) -> frozenset[str]:
    """The items in which something can't be read."""
    faults = [problem for problem in problems if problem.severity == "error"]
    lines = sorted(problem.line - 1 for problem in faults)
    refs = {problem.ref for problem in faults if problem.ref in found}
    for section in found.values():
        first = bisect_left(lines, section.start)
        if first < len(lines) and lines[first] < section.end:
            refs.add(section.ref)
    return frozenset(refs)


def _gate(lacking: list[Lack], said: tuple[Note, ...], places: dict[str, int]) -> list[Problem]:
    problems: list[Problem] = []
    if said:
        words = "1 note for the agent. Approving needs it sent or removed."
        if len(said) > 1:
            words = f"{len(said)} notes for the agent. Approving needs them sent or removed."
        problems.append(Problem(line=said[0].line, severity="information", code="gate-notes", text=words))
    if lacking:
        words = together(lack.text for lack in lacking)
        problems.append(Problem(line=1, severity="information", code="gate-lacks", text=words))
    problems += [
        Problem(line=places[lack.ref], severity="hint", code="gate-lacks", text=lack.text, ref=lack.ref)
        for lack in lacking
        if lack.ref in places
    ]
    return problems
