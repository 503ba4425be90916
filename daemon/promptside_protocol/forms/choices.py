"""The choices of a question: ticks by their ids, and a line for an answer of the person's own (UX 2.7)."""

from __future__ import annotations

from typing import Any, Final

from promptside_protocol.forms.document import Choice, Chosen, FormError, Problem, Question
from promptside_protocol.forms.escape import clean, one_line
from promptside_protocol.forms.grammar import BULLET, Page, Section, leading_id
from promptside_protocol.forms.kind import Edit, error, unknown
from promptside_protocol.forms.slot import TickLine, flipped, tick_line, ticks

OTHER: Final = "Other:"


def choice_text(item: Question, choice: Choice) -> str:
    title = one_line(choice.title)
    if choice.recommended and not title.lower().endswith("(recommended)"):
        title = f"{title} (recommended)".strip()
    return title if item.kind == "yes_no" else f"{choice.id} · {title}".rstrip()


def choose(item: Question, page: Page, section: Section, wanted: Chosen) -> list[Edit]:
    """Edits of the ticks whose state differs; a choice that was deleted is put back if it is chosen."""
    there = ticks(page, section.start + 1, section.end)
    behind = there[-1].at + 1 if there else section.end
    edits: list[Edit] = []
    absent = [ref for ref in wanted.ids if ref not in {_choice_of(item, tick) for tick in there}]
    if absent:
        texts = {choice.id: choice_text(item, choice) for choice in item.options}
        edits.append(Edit(behind, behind, tuple(tick_line(texts[ref], on=True) for ref in absent)))
    for tick in there:
        ref = _choice_of(item, tick)
        if ref is not None and tick.on != (ref in wanted.ids):
            edits.append(flipped(page, tick.at, on=not tick.on))
    others = [tick for tick in there if _is_other(item, tick)]
    if others:
        said, end = _other(page, section, others[0])
        if wanted.other and (said != wanted.other or not others[0].on):
            edits.append(Edit(others[0].at, end, (tick_line(f"{OTHER} {wanted.other}", on=True),)))
        elif not wanted.other and others[0].on and said:
            edits.append(flipped(page, others[0].at, on=False))
    elif wanted.other:
        edits.append(Edit(behind, behind, (tick_line(f"{OTHER} {wanted.other}", on=True),)))
    return edits


def chosen(item: Question, page: Page, section: Section) -> tuple[Chosen, list[Problem]]:
    problems: list[Problem] = []
    ids: set[str] = set()
    other = ""
    seen_other = False
    on = 0
    for tick in ticks(page, section.start + 1, section.end):
        ref = _choice_of(item, tick)
        if ref is not None:
            on += tick.on and ref not in ids
            ids |= {ref} if tick.on else set()
        elif not _is_other(item, tick):
            text = f"'{tick.text}' is not one of the choices."
            text = f"{text} Write it behind Other." if item.other else text
            problems.append(_warning(tick, text, item))
        elif seen_other:
            problems.append(error(tick.at, "twice", f"{item.id}: Other is here twice.", item.id))
        else:
            seen_other = True
            said, _ = _other(page, section, tick)
            on += tick.on
            if tick.on and said:
                other = said
            elif tick.on:
                text = f"{item.id}: Other is ticked, but nothing is written behind it."
                problems.append(error(tick.at, "other", text, item.id))
            elif said:
                text = f"{item.id}: there is text behind Other, but it is not ticked."
                problems.append(_warning(tick, text, item))
    if item.kind != "any" and on > 1:
        problems.append(error(section.start, "many", too_many(item, on), item.id))
    return Chosen(ids=tuple(o.id for o in item.options if o.id in ids), other=other), problems


def chosen_reply(item: Question, value: Any) -> Chosen:
    known = [o.id for o in item.options]
    ids: set[str] = set()
    other = ""
    parts = [] if value in ("", None) else value
    if not isinstance(parts, list | tuple):
        raise FormError(f"{item.id} takes a list of its choices.")
    for part in parts:
        if isinstance(part, dict) and part.keys() == {"other"} and isinstance(part["other"], str):
            if not item.other:
                raise FormError(f"{item.id} takes one of its choices only.")
            other = " ".join(clean(part["other"]).split())
        elif isinstance(part, str) and part in known:
            ids.add(part)
        else:
            raise unknown(f"choice of {item.id}", str(part), known)
    return Chosen(ids=tuple(ref for ref in known if ref in ids), other=other)


def too_many(item: Question, count: int) -> str:
    return f"{item.id}: {count} are ticked, one is wanted."


def _warning(tick: TickLine, text: str, item: Question) -> Problem:
    return Problem(line=tick.at + 1, severity="warning", code="form-choice", text=text, ref=item.id)


def _choice_of(item: Question, tick: TickLine) -> str | None:
    """The choice that a tick stands for; of yes and no by their words, of the others by their ids."""
    if item.kind == "yes_no":
        words = tick.text.casefold()
        return next((o.id for o in item.options if choice_text(item, o).casefold() == words), None)
    ref = leading_id(tick.text)
    return next((o.id for o in item.options if o.id == ref), None)


def _is_other(item: Question, tick: TickLine) -> bool:
    return item.other and tick.text.startswith(OTHER)


def _other(page: Page, section: Section, tick: TickLine) -> tuple[str, int]:
    """What is written behind Other, with lines that go on below it, and the line behind the last of them."""
    words = [tick.text.removeprefix(OTHER)]
    end = tick.at + 1
    while end < section.end and not page.code[end] and end not in page.notes:
        line = page.lines[end]
        if not line.startswith(("  ", "\t")) or BULLET.match(line):
            break
        words.append(line)
        end += 1
    return " ".join(" ".join(words).split()), end
