"""How the value of a field is written, read and checked, by its widget (UX 2.6)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, NoReturn, assert_never

from promptside_protocol.forms.document import Field, FormError, Problem
from promptside_protocol.forms.escape import clean, encode, normal, one_line, shifted, unfenced
from promptside_protocol.forms.grammar import Page, Section, broken_ticks, is_heading
from promptside_protocol.forms.kind import Edit, error
from promptside_protocol.forms.slot import bulleted, flipped, free_text, tick_line, ticks

LEVEL = 2
TICKED: Final = frozenset({"enum", "boolean", "any"})
"""Widgets whose choices stand there, to be ticked."""

_NUMBERS: Final = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NOT_PLAIN: Final = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def proposed(field: Field) -> Any:
    """The agent's value as it reads in the document."""
    value = field.value
    match field.widget:
        case "line":
            return " ".join(clean(value).split()) or None if isinstance(value, str) else None
        case "text":
            return shifted(value, LEVEL) or None if isinstance(value, str) else None
        case "enum":
            return value if value in field.choices else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "any":
            listed = value if isinstance(value, list | tuple) else ()
            return [c for c in field.choices if c in listed] or None
        case "bullets":
            listed = value if isinstance(value, list | tuple) else ()
            return _entries([v for v in listed if isinstance(v, str)]) or None
        case "json":
            return value if _json(value) else None
    assert_never(field.widget)


def value_lines(field: Field, value: Any, ends_item: Callable[[str], bool]) -> list[str]:
    """A value as it stands below its label; of ticks all choices, of the others nothing for an empty field."""
    match field.widget:
        case "line":
            return encode(value or "", _is_top_heading)
        case "text":
            return encode(value or "", ends_item)
        case "enum":
            return [tick_line(one_line(c), on=c == value) for c in field.choices]
        case "boolean":
            return [tick_line("Yes", on=value is True), tick_line("No", on=value is False)]
        case "any":
            return [tick_line(one_line(c), on=c in (value or ())) for c in field.choices]
        case "bullets":
            return [f"- {entry}" for entry in value or ()]
        case "json":
            return [] if value is None else ["```json", *_json(value).split("\n"), "```"]
    assert_never(field.widget)


def hint_lines(field: Field) -> list[str]:
    """What may stand in a field, below its label: a quotation, which is no value."""
    return [f"> {one_line(field.hint)}", ""] if field.hint else []


def flips(field: Field, page: Page, section: Section, value: Any) -> list[Edit]:
    """Edits of the ticks whose state differs; a choice that was deleted is put back if it is chosen."""
    chosen = chosen_texts(field, value)
    there = ticks(page, section.start + 1, section.end)
    known = {"Yes", "No"} if field.widget == "boolean" else {one_line(c) for c in field.choices}
    edits = [
        flipped(page, t.at, on=not t.on) for t in there if t.text in known and t.on != (t.text in chosen)
    ]
    behind = there[-1].at + 1 if there else section.start + 1
    absent = [text for text in chosen if text not in {t.text for t in there}]
    return [*edits, *([Edit(behind, behind, tuple(tick_line(t, on=True) for t in absent))] if absent else [])]


def value_in(
    field: Field, page: Page, section: Section, ends_item: Callable[[str], bool]
) -> tuple[Any, list[Problem]]:
    """A field's value in the document; None if it is empty."""
    start, end = section.start + 1, section.end
    match field.widget:
        case "line":
            filled = [at for at, line in page.rows(start, end) if line and not _is_hint(field, line)]
            if field.hint and filled:
                start, end = filled[0], filled[-1] + 1
            text = free_text(page, start, end, _is_top_heading) or None if filled else None
            if len(filled) < 2:
                return text, []
            many = _NUMBERS[len(filled)] if len(filled) < len(_NUMBERS) else str(len(filled))
            return text, [error(filled[1], "line", f"{field.label} is one line; this is {many}.", field.key)]
        case "text":
            return free_text(page, start, end, ends_item) or None, []
        case "enum" | "boolean" | "any":
            return _ticked(field, page, section)
        case "bullets":
            return bulleted([line for _, line in page.rows(start, end)]) or None, []
        case "json":
            return _json_value(field, page, section)
    assert_never(field.widget)


def checked(field: Field, value: Any) -> Any:
    """A value as it is kept; None if it empties the field."""
    if value is None:
        return None
    match field.widget:
        case "line" | "text":
            if not isinstance(value, str):
                raise FormError(f"{field.label} takes a text.")
            text = normal(value)
            if field.widget == "line" and "\n" in text:
                raise FormError(f"{field.label} is one line; this is more.")
            return text or None
        case "enum":
            if value != "" and value not in field.choices:
                raise FormError(f"{field.label} takes one of: {', '.join(field.choices)}.")
            return value or None
        case "boolean":
            if value != "" and not isinstance(value, bool):
                raise FormError(f"{field.label} takes true or false.")
            return None if value == "" else value
        case "any":
            if not isinstance(value, list | tuple) or any(v not in field.choices for v in value):
                raise FormError(f"{field.label} takes a list of: {', '.join(field.choices)}.")
            return [c for c in field.choices if c in value] or None
        case "bullets":
            if not isinstance(value, list | tuple) or not all(isinstance(v, str) for v in value):
                raise FormError(f"{field.label} takes a list of texts.")
            return _entries(list(value)) or None
        case "json":
            text = _json(value)
            if not text:
                raise FormError(f"{field.label} takes JSON.")
            return json.loads(text)
    assert_never(field.widget)


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: true is not 1, and 1 is not 1.0."""
    return one is other or _json(one) == _json(other)


def chosen_texts(field: Field, value: Any) -> list[str]:
    if field.widget == "boolean":
        return [] if value is None else ["Yes" if value else "No"]
    return [one_line(v) for v in (value if isinstance(value, list) else [value]) if isinstance(v, str)]


def _ticked(field: Field, page: Page, section: Section) -> tuple[Any, list[Problem]]:
    start, end = section.start + 1, section.end
    values: dict[str, Any] = {one_line(c): c for c in field.choices}
    if field.widget == "boolean":
        values = {"Yes": True, "No": False}
    problems = broken_ticks(page.tokens(start, end))
    chosen: list[Any] = []
    for tick in ticks(page, start, end):
        if tick.text not in values:
            text = f"'{tick.text}' is not one of the choices."
            problems.append(
                Problem(line=tick.at + 1, severity="warning", code="form-choice", text=text, ref=field.key)
            )
        elif tick.on and values[tick.text] not in chosen:
            chosen.append(values[tick.text])
    if field.widget == "any":
        return [c for c in field.choices if c in chosen] or None, problems
    if len(chosen) > 1:
        text = f"{field.label}: {len(chosen)} are ticked, one is wanted."
        problems.append(error(section.start, "many", text, field.key))
    return chosen[0] if len(chosen) == 1 else None, problems


def _is_hint(field: Field, line: str) -> bool:
    """Whether a line says what may stand in the field; a person may have changed it, or written above it."""
    return bool(field.hint) and line.startswith("> ")


def _is_top_heading(line: str) -> bool:
    """Whether a line would look like a field, known or not."""
    return is_heading(line, LEVEL)


def _entries(values: list[str]) -> list[str]:
    return [entry for entry in (" ".join(clean(v).split()) for v in values) if entry]


def _json(value: Any) -> str:
    """A value as JSON in lines that every editor counts alike; empty if it can't be written."""
    try:
        text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
    except (RecursionError, TypeError, ValueError):
        return ""
    return _NOT_PLAIN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _json_value(field: Field, page: Page, section: Section) -> tuple[Any, list[Problem]]:
    rows = [(at, line) for at, line in page.rows(section.start + 1, section.end)]
    while rows and not rows[-1][1]:
        rows.pop()
    while rows and not rows[0][1]:
        rows.pop(0)
    lines = [line for _, line in rows]
    inner = unfenced(lines)
    text = "\n".join(lines) if inner is None else inner
    if not text.strip():
        return None, []
    try:
        return json.loads(text, parse_constant=_refused, parse_float=_finite), []
    except (RecursionError, ValueError) as fault:
        reason = fault.msg if isinstance(fault, json.JSONDecodeError) else "it is not plain data"
        first = rows[0][0] + (inner is not None)
        at = first + fault.lineno - 1 if isinstance(fault, json.JSONDecodeError) else first
        return None, [error(at, "json", f"{field.label} is not valid JSON: {reason}.", field.key)]


def _refused(word: str) -> NoReturn:
    raise ValueError(word)


def _finite(text: str) -> float:
    value = float(text)
    return value if abs(value) != float("inf") else _refused(text)
