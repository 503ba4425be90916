"""Documents of kind fields: a structured output that the person corrects (UX 2.6).

What the agent proposes is where the document begins; an answer is a value that is not the agent's any more.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from promptside_protocol.forms.document import (
    Field,
    FieldsAnswers,
    FieldsDefinition,
    Lack,
    Problem,
)
from promptside_protocol.forms.grammar import (
    Page,
    Section,
    Sections,
    heading,
    is_heading,
    missing,
    prose,
    sections,
)
from promptside_protocol.forms.kind import Edit, Kind, Reading, unknown
from promptside_protocol.forms.slot import replaced
from promptside_protocol.forms.widgets import (
    LEVEL,
    TICKED,
    checked,
    chosen_texts,
    flips,
    hint_lines,
    proposed,
    same,
    value_in,
    value_lines,
)


def field_values(definition: FieldsDefinition, answers: FieldsAnswers) -> dict[str, Any]:
    """Every field's value as it stands: the person's, else the agent's; None is an empty field."""
    return {
        f.key: answers.values[f.key] if f.key in answers.values else proposed(f) for f in definition.fields
    }


def is_blank(value: object) -> bool:
    """Whether a field with this value counts as empty; false and 0 are values."""
    return value is None or value in ("", [], {})


# --- writing ------------------------------------------------------------------------------------------


def _render(definition: FieldsDefinition) -> list[str]:
    ends_item = _ends_item(definition)
    lines: list[str] = []
    for field in definition.fields:
        suffix = " (required)" if field.required else ""
        value = value_lines(field, proposed(field), ends_item)
        lines += [f"## {field.label}{suffix}", "", *hint_lines(field), *value, *([""] if value else [])]
    return lines


def _write(definition: FieldsDefinition, page: Page, answers: FieldsAnswers) -> list[Edit]:
    ends_item = _ends_item(definition)
    wanted = field_values(definition, answers)
    found = _sections(definition, page).found
    edits: list[Edit] = []
    for field in definition.fields:
        section = found.get(field.key)
        if section is None:
            continue
        value, problems = value_in(field, page, section, ends_item)
        broken = any(problem.severity == "error" for problem in problems)
        if broken and field.key not in answers.values:
            continue  # what can't be read is the person's to mend, not ours to overwrite
        if same(value, wanted[field.key]) and not broken:
            continue
        if field.widget in TICKED:
            edits += flips(field, page, section, wanted[field.key])
        else:
            lines = value_lines(field, wanted[field.key], ends_item)
            lines = [*hint_lines(field), *lines]
            edits.append(replaced(page, section.start + 1, section.end, ["", *lines, ""] if lines else [""]))
    return edits


# --- reading ------------------------------------------------------------------------------------------


def _read(definition: FieldsDefinition, page: Page) -> Reading[FieldsAnswers]:
    cut = _sections(definition, page)
    ends_item = _ends_item(definition)
    labels = {f.key: f.label for f in definition.fields}
    problems: list[Problem] = [*cut.problems, *missing(page, labels, cut.found, _opens(definition))]
    values: dict[str, Any] = {}
    bodies: dict[str, str] = {}
    for field in definition.fields:
        section = cut.found.get(field.key)
        if section is None:
            continue
        value, faults = value_in(field, page, section, ends_item)
        problems += [*faults, *_foreign_headings(field, page, section)]
        if not any(fault.severity == "error" for fault in faults) and not same(value, proposed(field)):
            values[field.key] = value
        bodies[field.key] = prose(page, section.start + 1, section.end)
    answers = FieldsAnswers(values=values)
    return Reading(answers=answers, found=cut.found, problems=tuple(problems), bodies=bodies)


def _folded(label: str) -> str:
    """A label without `(required)`, with its case and blanks levelled."""
    text = " ".join(label.split())
    if text.endswith(")"):
        inner = text[text.rfind("(") + 1 : -1]
        if inner == "required" or inner.endswith(", required"):
            text = text[: text.rfind("(")].rstrip()
    return text.casefold()


def _ends_item(definition: FieldsDefinition) -> Callable[[str], bool]:
    opens = _opens(definition)
    return lambda line: is_heading(line, LEVEL - 1) or opens(line) is not None


def _opens(definition: FieldsDefinition) -> Callable[[str], str | None]:
    keys = {_folded(f.label): f.key for f in definition.fields}

    def opens(line: str) -> str | None:
        found = heading(line)
        return keys.get(_folded(found[1])) if found and found[0] == LEVEL else None

    return opens


def _sections(definition: FieldsDefinition, page: Page) -> Sections:
    labels = {f.key: f.label for f in definition.fields}
    closes = partial(is_heading, level=LEVEL - 1)
    return sections(page, _opens(definition), closes, labels.__getitem__)


def _foreign_headings(field: Field, page: Page, section: Section) -> list[Problem]:
    return [
        Problem(
            line=at + 1,
            severity="warning",
            code="form-heading",
            text=f"'{found[1]}' is not a field; it is read as part of {field.label}.",
            ref=field.key,
        )
        for at, line in page.tokens(section.start + 1, section.end)
        if (found := heading(line)) and found[0] == LEVEL
    ]


# --- gate and plain data ------------------------------------------------------------------------------


def _lacks(definition: FieldsDefinition, answers: FieldsAnswers) -> list[Lack]:
    values = field_values(definition, answers)
    return [
        Lack(ref=f.key, text=f"{f.label} is required and still empty.")
        for f in definition.fields
        if f.required and is_blank(values[f.key])
    ]


def _from_plain(definition: FieldsDefinition, plain: dict[str, Any]) -> FieldsAnswers:
    fields = {f.key: f for f in definition.fields}
    values: dict[str, Any] = {}
    for key, value in plain.items():
        if key not in fields:
            raise unknown("field", key, list(fields))
        kept = checked(fields[key], value)
        if not same(kept, proposed(fields[key])):
            values[key] = kept
    return FieldsAnswers(values={key: values[key] for key in fields if key in values})


def _words(definition: FieldsDefinition, _bodies: dict[str, str], answers: FieldsAnswers) -> str:
    values = field_values(definition, answers)
    parts = [f"“{definition.title}” was approved with these values:"]
    for field in definition.fields:
        lines = value_lines(field, values[field.key], lambda _: False)
        text = "\n".join(lines) if not is_blank(values[field.key]) else "(empty)"
        if field.widget in ("line", "text") and isinstance(values[field.key], str):
            text = values[field.key]
        elif field.widget in TICKED:
            text = ", ".join(chosen_texts(field, values[field.key])) or "(empty)"
        parts.append(f"## {field.label}\n\n{text}")
    return "\n\n".join(parts)


def _sentence(definition: FieldsDefinition) -> str:
    if definition.sentence:
        return definition.sentence
    if any(f.required for f in definition.fields):
        return "Correct what the agent wrote. Fields marked (required) must not be empty."
    return "Correct what the agent wrote. Then approve."


KIND: Kind[FieldsDefinition, FieldsAnswers] = Kind(
    name="fields",
    sentence=_sentence,
    number=lambda _: None,
    ids=lambda definition: [f.key for f in definition.fields],
    render=_render,
    read=_read,
    write=_write,
    lacks=_lacks,
    from_plain=_from_plain,
    to_plain=lambda answers: dict(answers.values),
    words=_words,
)
