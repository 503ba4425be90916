"""Documents of kind options: the person selects between a least and a greatest number (UX 2.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from promptside_protocol.forms.document import (
    FormError,
    Lack,
    Option,
    OptionsAnswers,
    OptionsDefinition,
    Problem,
)
from promptside_protocol.forms.escape import block, one_line
from promptside_protocol.forms.grammar import (
    TICK,
    Page,
    Section,
    Sections,
    broken_ticks,
    heading,
    is_heading,
    missing,
    opened_by_id,
    prose,
    sections,
)
from promptside_protocol.forms.kind import Edit, Kind, Reading, error, unknown

LEVEL = 2


def _sentence(definition: OptionsDefinition) -> str:
    least, most = definition.min, definition.max
    brackets = "its brackets" if most == 1 else "their brackets"
    if most < 1:
        return "Read the options. Then approve."
    if least == most:
        return f"Select exactly {least}: put an x in {brackets}. Then approve."
    if least > 0:
        return f"Select {least} to {most}: put an x in {brackets}. Then approve."
    if most < len(definition.options):
        return f"Select up to {most}: put an x in {brackets}. Then approve."
    return f"Select what you want: put an x in {brackets}. Then approve."


def _render(definition: OptionsDefinition) -> list[str]:
    lines: list[str] = []
    for option in definition.options:
        lines += [_heading(option), "", _slot(option.id, on=False), ""]
        if description := block(option.description, LEVEL):
            lines += [*description, ""]
        for title, points in (("For", option.pros), ("Against", option.cons)):
            if points:
                lines += [f"**{title}**", "", *(f"- {one_line(p)}".rstrip() for p in points), ""]
    return lines


def _heading(option: Option) -> str:
    title = one_line(option.title)
    if option.recommended and not title.lower().endswith("(recommended)"):
        title = f"{title} (recommended)".strip()
    return f"## {option.id} · {title}".rstrip()


def _slot(ref: str, *, on: bool) -> str:
    return f"- [{'x' if on else ' '}] Select {ref}"


def _read(definition: OptionsDefinition, page: Page) -> Reading[OptionsAnswers]:
    cut = _sections(definition, page)
    problems: list[Problem] = [
        *cut.problems,
        *missing(page, {o.id: o.id for o in definition.options}, cut.found, _opens(definition)),
        *broken_ticks(page.tokens()),
    ]
    broken = {p.line - 1 for p in problems if p.code == "form-tick"}
    selected: list[str] = []
    surplus: list[int] = []
    bodies: dict[str, str] = {}
    for ref, section in sorted(cut.found.items(), key=lambda item: item[1].start):
        slots = _slots(page, section)
        bodies[ref] = _body(page, section, slots)
        if slots and TICK.match(page.lines[slots[0]])[2] in "xX":  # type: ignore[index]  # slots are ticks
            selected.append(ref)
            if len(selected) > definition.max:
                surplus.append(slots[0])
        if not slots and not any(section.start < at < section.end for at in broken):
            text = f'{ref}: the line "{_slot(ref, on=False)}" is missing.'
            problems.append(error(section.start, "slot", text, ref))
        problems += [
            error(at, "twice", f"The tick of {ref} is here twice (first in line {slots[0] + 1}).", ref)
            for at in slots[1:]
        ]
    if surplus:
        text = f"{len(selected)} are selected; this gate takes {_taken(definition)}."
        text = f"{text} {_untick(definition, selected)}"
        problems += [error(at, "surplus", text) for at in surplus]
    order = {o.id: i for i, o in enumerate(definition.options)}
    answers = OptionsAnswers(selected=tuple(sorted(selected, key=order.__getitem__)))
    return Reading(answers=answers, found=cut.found, problems=tuple(problems), bodies=bodies)


def _opens(definition: OptionsDefinition) -> Callable[[str], str | None]:
    return opened_by_id({o.id for o in definition.options}, LEVEL)


def _sections(definition: OptionsDefinition, page: Page) -> Sections:
    return sections(page, _opens(definition), lambda line: is_heading(line, LEVEL), lambda ref: ref)


def _slots(page: Page, section: Section) -> list[int]:
    return [
        at
        for at, line in page.tokens(section.start + 1, section.end)
        if (tick := TICK.match(line)) and tick[4] == f"Select {section.ref}"
    ]


def _body(page: Page, section: Section, slots: list[int]) -> str:
    title = heading(section.title)
    text = prose(page, section.start + 1, section.end, frozenset(slots))
    return f"{title[1] if title else section.ref}\n\n{text}".strip()


def _write(definition: OptionsDefinition, page: Page, answers: OptionsAnswers) -> list[Edit]:
    edits: list[Edit] = []
    for ref, section in _sections(definition, page).found.items():
        slots = _slots(page, section)
        on = ref in answers.selected
        if not slots:
            if on:
                edits.append(Edit(section.start + 1, section.start + 1, ("", _slot(ref, on=True))))
            continue
        tick = TICK.match(page.lines[slots[0]])
        assert tick is not None
        if on != (tick[2] in "xX"):
            edits.append(Edit(slots[0], slots[0] + 1, (f"{tick[1]}{'x' if on else ' '}{tick[3]}{tick[4]}",)))
    return edits


def _lacks(definition: OptionsDefinition, answers: OptionsAnswers) -> list[Lack]:
    count, least, most = len(answers.selected), definition.min, definition.max
    if count > most:
        text = f"{count} options are selected; this gate takes {_taken(definition)}."
        return [Lack(ref="", text=f"{text} {_untick(definition, answers.selected)}")]
    if count >= least:
        return []
    if count:
        return [Lack(ref="", text=f"Select {_options(least - count, 'more ')} to approve.")]
    if least == most:
        return [Lack(ref="", text=f"Select {_options(least)} to approve.")]
    return [Lack(ref="", text=f"Select {least} to {_options(most)} to approve.")]


def _options(count: int, more: str = "") -> str:
    return f"{count} {more}option" if count == 1 else f"{count} {more}options"


def _taken(definition: OptionsDefinition) -> str:
    if definition.min == definition.max:
        return str(definition.max)
    return f"{definition.min} to {definition.max}" if definition.min else f"at most {definition.max}"


def _untick(definition: OptionsDefinition, selected: tuple[str, ...] | list[str]) -> str:
    over = len(selected) - definition.max
    return "Untick one." if over == 1 else f"Untick {over}."


def _from_plain(definition: OptionsDefinition, plain: dict[str, Any]) -> OptionsAnswers:
    known = [o.id for o in definition.options]
    for ref, value in plain.items():
        if ref not in known:
            raise unknown("option", ref, known)
        if not isinstance(value, bool):
            raise FormError(f"Option {ref} is selected or not: true or false is wanted.")
    return OptionsAnswers(selected=tuple(ref for ref in known if plain.get(ref)))


def _words(definition: OptionsDefinition, bodies: dict[str, str], answers: OptionsAnswers) -> str:
    if not answers.selected:
        return f"“{definition.title}” was approved; no option was selected."
    titles = {o.id: f"{o.id} · {one_line(o.title)}" for o in definition.options}
    parts = [bodies.get(ref, titles[ref]) for ref in answers.selected]
    return "\n\n".join(["Selected:", *parts])


KIND: Kind[OptionsDefinition, OptionsAnswers] = Kind(
    name="options",
    sentence=_sentence,
    number=lambda _: None,
    ids=lambda definition: [o.id for o in definition.options],
    render=_render,
    read=_read,
    write=_write,
    lacks=_lacks,
    from_plain=_from_plain,
    to_plain=lambda answers: dict.fromkeys(answers.selected, True),
    words=_words,
)
