"""Documents of kind checklist: points by severity, each with a tick and a note (UX 2.5).

A note is one paragraph: white space of any kind in it counts as one blank, so wrapping lines changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from promptside_protocol.forms.document import (
    CheckItem,
    ChecklistAnswers,
    ChecklistDefinition,
    FormError,
    Lack,
    Problem,
    Tick,
)
from promptside_protocol.forms.escape import block, clean, indented, one_line
from promptside_protocol.forms.grammar import (
    BLANKS,
    TICK,
    Page,
    Section,
    Sections,
    broken_ticks,
    is_heading,
    missing,
    prose,
    sections,
)
from promptside_protocol.forms.kind import Edit, Kind, Reading, error, unknown

SENTENCE = 'Tick every item you have reviewed. A note goes behind "Note:".'
GROUPS: Final = {"critical": "Critical", "warning": "Warning", "info": "Info"}
LEVEL = 2
_OPENING: Final = re.compile(r"^ {0,3}(?:[-*+] *)?\[[^\]\n]{0,2}\][ \t]*\*\*(\w+)\*\*")
"""A point is where it is, also when its tick is broken."""
_NOTE: Final = re.compile(r"^([ \t]+)([-*+][ \t]+)?Note:[ \t]*(.*)$")


def _render(definition: ChecklistDefinition) -> list[str]:
    lines: list[str] = []
    for severity, title in GROUPS.items():
        items = [item for item in definition.items if item.severity == severity]
        if items:
            lines += [f"## {title}", ""]
        for item in items:
            lines += [f"- [ ] **{item.id}** {_title(item)}", *indented(block(item.detail, LEVEL), "  ")]
            lines += [_note(""), ""]
    return lines


def _title(item: CheckItem) -> str:
    place = one_line(item.path).replace("`", "'")
    if place and item.line is not None:
        place = f"{place}:{item.line}"
    return " ".join(part for part in (one_line(item.title), f"`{place}`" if place else "") if part)


def _note(text: str, start: str = "  - ") -> str:
    return f"{start}Note: {text}".rstrip()


def _read(definition: ChecklistDefinition, page: Page) -> Reading[ChecklistAnswers]:
    cut = _sections(definition, page)
    problems: list[Problem] = [
        *cut.problems,
        *missing(page, {item.id: item.id for item in definition.items}, cut.found, _opens(definition)),
        *broken_ticks(page.tokens()),
    ]
    items: dict[str, Tick] = {}
    bodies: dict[str, str] = {}
    for item in definition.items:
        section = cut.found.get(item.id)
        if section is None:
            continue
        ticked, notes = _ticked(page, section), _notes(page, section)
        given = Tick(ticked=ticked, note=_said(page, notes[0]) if notes else "")
        if given != Tick():
            items[item.id] = given
        problems += [
            error(
                at,
                "twice",
                f"The note of {item.id} is here twice (first in line {notes[0][0] + 1}).",
                item.id,
            )
            for at, _ in notes[1:]
        ]
        slots = frozenset(at for first, last in notes for at in range(first, last))
        bodies[item.id] = _body(page, section, slots)
    answers = ChecklistAnswers(items=items)
    return Reading(answers=answers, found=cut.found, problems=tuple(problems), bodies=bodies)


def _opens(definition: ChecklistDefinition) -> Callable[[str], str | None]:
    known = {item.id for item in definition.items}

    def opens(line: str) -> str | None:
        found = _OPENING.match(line)
        return found[1] if found and found[1] in known else None

    return opens


def _sections(definition: ChecklistDefinition, page: Page) -> Sections:
    return sections(page, _opens(definition), lambda line: is_heading(line, LEVEL), lambda ref: ref)


def _ticked(page: Page, section: Section) -> bool:
    tick = TICK.match(page.lines[section.start])
    return tick is not None and tick[2] in "xX"


def _notes(page: Page, section: Section) -> list[tuple[int, int]]:
    """Where the notes of an item stand: their first line, and the line behind their last."""
    found: list[tuple[int, int]] = []
    end = section.start
    for at, line in page.tokens(section.start + 1, section.end):
        note = _NOTE.match(line) if at >= end else None
        if note is None:
            continue
        end = last = at + 1
        while end < section.end and not page.code[end] and end not in page.notes:
            text = page.lines[end]
            if text and _indent(text) <= _indent(line):
                break
            end += 1
            last = end if text else last
        end = last
        found.append((at, last))
    return found


def _indent(line: str) -> int:
    whole = line.expandtabs(4)
    return len(whole) - len(whole.lstrip(" "))


def _said(page: Page, place: tuple[int, int]) -> str:
    first, last = place
    note = _NOTE.match(page.lines[first])
    assert note is not None
    return " ".join(" ".join([note[3], *page.lines[first + 1 : last]]).split())


def _body(page: Page, section: Section, slots: frozenset[int]) -> str:
    tick = TICK.match(page.lines[section.start])
    text = prose(page, section.start + 1, section.end, slots)
    lines = [line.strip(BLANKS) for line in text.split("\n")]
    return "\n".join([tick[4] if tick else "", *lines]).strip()


def _write(definition: ChecklistDefinition, page: Page, answers: ChecklistAnswers) -> list[Edit]:
    edits: list[Edit] = []
    for ref, section in _sections(definition, page).found.items():
        wanted = answers.items.get(ref, Tick())
        tick = TICK.match(page.lines[section.start])
        if tick and wanted.ticked != (tick[2] in "xX"):
            line = f"{tick[1]}{'x' if wanted.ticked else ' '}{tick[3]}{tick[4]}"
            edits.append(Edit(section.start, section.start + 1, (line,)))
        notes = _notes(page, section)
        if not notes:
            if wanted.note:
                edits.append(Edit(at := _last(page, section), at, (_note(wanted.note),)))
        elif _said(page, notes[0]) != wanted.note:
            found = _NOTE.match(page.lines[notes[0][0]])
            assert found is not None
            edits.append(Edit(*notes[0], (_note(wanted.note, f"{found[1]}{found[2] or ''}"),)))
    return edits


def _last(page: Page, section: Section) -> int:
    """The line behind the last of an item that is not blank."""
    end = section.end
    while end > section.start + 1 and not page.lines[end - 1]:
        end -= 1
    return end


def _lacks(definition: ChecklistDefinition, answers: ChecklistAnswers) -> list[Lack]:
    if not definition.required:
        return []
    return [
        Lack(ref=item.id, text=f"{item.id} is not ticked.")
        for item in definition.items
        if not answers.items.get(item.id, Tick()).ticked
    ]


def _from_plain(definition: ChecklistDefinition, plain: dict[str, Any]) -> ChecklistAnswers:
    known = [item.id for item in definition.items]
    items: dict[str, Tick] = {}
    for ref, value in plain.items():
        if ref not in known:
            raise unknown("item", ref, known)
        items[ref] = _tick(ref, value)
    return ChecklistAnswers(items={ref: items[ref] for ref in known if items.get(ref, Tick()) != Tick()})


def _tick(ref: str, value: object) -> Tick:
    wrong = FormError(f'{ref} takes {{"ticked": true or false, "note": text}}.')
    if not isinstance(value, dict) or not value.keys() <= {"ticked", "note"}:
        raise wrong
    ticked, note = value.get("ticked", False), value.get("note", "")
    if not isinstance(ticked, bool) or not isinstance(note, str):
        raise wrong
    return Tick(ticked=ticked, note=" ".join(clean(note).split()))


def _to_plain(answers: ChecklistAnswers) -> dict[str, Any]:
    return {ref: {"ticked": tick.ticked, "note": tick.note} for ref, tick in answers.items.items()}


def _words(definition: ChecklistDefinition, bodies: dict[str, str], answers: ChecklistAnswers) -> str:
    lines = [
        f"“{definition.title}” was reviewed:" if definition.items else f"“{definition.title}” was approved."
    ]
    for item in definition.items:
        tick = answers.items.get(item.id, Tick())
        title = bodies.get(item.id, f"**{item.id}** {_title(item)}").split("\n", 1)[0]
        lines.append(f"- [{'x' if tick.ticked else ' '}] {title}")
        if tick.note:
            lines.append(f"  - Note: {tick.note}")
    return "\n".join(lines)


KIND: Kind[ChecklistDefinition, ChecklistAnswers] = Kind(
    name="checklist",
    sentence=lambda definition: SENTENCE if definition.items else "Nothing was found. Approve.",
    number=lambda _: None,
    ids=lambda definition: [item.id for item in definition.items],
    render=_render,
    read=_read,
    write=_write,
    lacks=_lacks,
    from_plain=_from_plain,
    to_plain=_to_plain,
    words=_words,
)
