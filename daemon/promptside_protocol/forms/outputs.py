"""An agent's output, already validated, as a form; and the JSON Schemas given to the agent (ST-6, ST-7)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, assert_never

from promptside_protocol.forms.document import (
    CheckItem,
    ChecklistDefinition,
    Definition,
    Field,
    FieldsDefinition,
    Option,
    OptionsDefinition,
    Severity,
    TextDefinition,
    Widget,
)
from promptside_protocol.forms.escape import one_line

OutputFormat = Literal["text", "options", "checklist", "structured"]
GateName = Literal["require_approval", "require_selection", "require_all_checked", "require_fields", ""]

_LETTERS: Final = {"critical": "C", "warning": "W", "info": "I"}
_LINE: Final = 80
"""A text up to this length, as the schema's example or its greatest length, is one line (UX 2.6)."""

_COMPOSED: Final = frozenset({"enum", "const", "anyOf", "oneOf", "allOf", "$ref"})
"""Rules that say more than a type: what they allow is written as JSON."""

SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    "options": {
        "type": "object",
        "additionalProperties": False,
        "required": ["options"],
        "properties": {
            "options": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["title", "description", "pros", "cons"],
                    "properties": {
                        "id": {"type": "string", "description": "A letter: A, B, C"},
                        "title": {"type": "string", "minLength": 1, "description": "At most 60 characters"},
                        "description": {"type": "string", "description": "Markdown"},
                        "pros": {"type": "array", "items": {"type": "string"}},
                        "cons": {"type": "array", "items": {"type": "string"}},
                        "recommended": {"type": "boolean", "description": "True for at most one option"},
                    },
                },
            }
        },
    },
    "checklist": {
        "type": "object",
        "additionalProperties": False,
        "required": ["items"],
        "properties": {
            "items": {
                "type": "array",
                "items": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["severity", "title"],
                    "properties": {
                        "severity": {"enum": ["critical", "warning", "info"]},
                        "title": {"type": "string", "minLength": 1, "description": "At most 60 characters"},
                        "detail": {"type": "string", "description": "Markdown"},
                        "file": {"type": "string", "description": "Path relative to the project"},
                        "line": {"type": "integer", "minimum": 1},
                    },
                },
            }
        },
    },
}


def fields_schema(keys: Iterable[str]) -> dict[str, Any]:
    """The schema of a structured output that names only its fields: each is a text and has to be there."""
    names = list(dict.fromkeys(keys))
    return {
        "type": "object",
        "additionalProperties": False,
        "required": names,
        "properties": {name: {"type": "string"} for name in names},
    }


def definition_of(
    format: OutputFormat,  # noqa: A002  # the pipeline's word
    payload: Any,
    *,
    task: int,
    stage: str,
    title: str,
    attempt: int,
    gate: GateName = "require_approval",
    min: int = 1,  # noqa: A002  # the gate's word
    max: int = 1,  # noqa: A002  # the gate's word
    required: Sequence[str] = (),
    schema: dict[str, Any] | None = None,
) -> Definition:
    """The form of an output that fits its format: a text, or an object as the schema has it.

    `min` and `max` count for the gate `require_selection`, `required` (keys) for `require_fields`.
    """
    frame: dict[str, Any] = {"task": task, "stage": stage, "title": title, "attempt": attempt}
    match format:
        case "text":
            return TextDefinition(**frame, body=str(payload))
        case "options":
            options = _options(payload["options"])
            if gate != "require_selection":
                min, max = 0, len(options)  # noqa: A001  # see above
            return OptionsDefinition(**frame, options=options, min=min, max=max)
        case "checklist":
            needed = gate == "require_all_checked"
            return ChecklistDefinition(**frame, items=_items(payload["items"]), required=needed)
        case "structured":
            return FieldsDefinition(
                **frame, fields=_fields(payload, required if gate == "require_fields" else (), schema or {})
            )
    assert_never(format)


def label_of(key: str) -> str:
    """`test_plan` and `testPlan` as “Test plan”."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", key)
    words = re.sub(r"[\W_]+", " ", spaced).split()
    text = " ".join(word if word.isupper() and len(word) > 1 else word.lower() for word in words)
    return text[:1].upper() + text[1:]


def _options(payload: list[dict[str, Any]]) -> tuple[Option, ...]:
    ids = [str(option.get("id", "")).strip() for option in payload]
    if len(set(ids)) != len(ids) or not all(re.fullmatch(r"[A-Z]{1,2}[0-9]{0,2}", ref) for ref in ids):
        ids = [_letters(n) for n in range(len(payload))]
    return tuple(
        Option(
            id=ref,
            title=option["title"],
            description=option.get("description", ""),
            pros=tuple(option.get("pros", ())),
            cons=tuple(option.get("cons", ())),
            recommended=bool(option.get("recommended", False)),
        )
        for ref, option in zip(ids, payload, strict=True)
    )


def _letters(n: int) -> str:
    """A … Z, AA, AB, …"""
    text = ""
    n += 1
    while n:
        n, letter = divmod(n - 1, 26)
        text = chr(ord("A") + letter) + text
    return text


def _items(payload: list[dict[str, Any]]) -> tuple[CheckItem, ...]:
    items: list[CheckItem] = []
    counts = dict.fromkeys(_LETTERS, 0)
    for item in payload:
        severity: Severity = item["severity"]
        counts[severity] += 1
        items.append(
            CheckItem(
                id=f"{_LETTERS[severity]}{counts[severity]}",
                severity=severity,
                title=item["title"],
                detail=item.get("detail", ""),
                path=item.get("file", ""),
                line=item.get("line"),
            )
        )
    order = list(_LETTERS)
    return tuple(sorted(items, key=lambda item: order.index(item.severity)))


def _fields(payload: dict[str, Any], required: Sequence[str], schema: dict[str, Any]) -> tuple[Field, ...]:
    declared = schema.get("properties")
    properties: dict[str, Any] = declared if isinstance(declared, dict) else {}
    labels: set[str] = set()
    fields: list[Field] = []
    for key in dict.fromkeys([*properties, *payload, *required]):
        label = label_of(key) or "Field"
        while label.casefold() in labels:
            label = f"{label} again"
        labels.add(label.casefold())
        rule = properties.get(key)
        widget, choices = _widget(rule if isinstance(rule, dict) else {}, payload.get(key))
        fields.append(
            Field(
                key=key,
                label=label,
                widget=widget,
                required=key in required,
                choices=choices,
                value=payload.get(key),
            )
        )
    return tuple(fields)


def _widget(rule: dict[str, Any], value: Any) -> tuple[Widget, tuple[str, ...]]:
    """How a value is written, by the schema's type; without one, by the value that is there."""
    if choices := _choices(rule):
        return "enum", choices
    if not _COMPOSED.isdisjoint(rule):
        return "json", ()
    kind = rule.get("type") or _type_of(value)
    if kind == "boolean":
        return "boolean", ()
    if kind == "string":
        return ("line" if _is_short(rule) else "text"), ()
    if kind == "array":
        items = rule.get("items")
        items = items if isinstance(items, dict) else {}
        if choices := _choices(items):
            return "any", choices
        texts = isinstance(value, list) and all(isinstance(v, str) for v in value)
        if items.get("type") == "string" or (not items and texts):
            return "bullets", ()
    return "json", ()


def _choices(rule: dict[str, Any]) -> tuple[str, ...]:
    """The words of an enum that can be ticked: texts that differ, also on one line."""
    words = rule.get("enum")
    if not isinstance(words, list) or not all(isinstance(word, str) and one_line(word) for word in words):
        return ()
    return tuple(words) if len({one_line(word) for word in words}) == len(words) else ()


def _is_short(rule: dict[str, Any]) -> bool:
    length = rule.get("maxLength")
    if isinstance(length, int) and length <= _LINE:
        return True
    given = rule.get("examples")
    examples = [*(given if isinstance(given, list) else []), rule.get("example")]
    texts = [text for text in examples if isinstance(text, str)]
    return bool(texts) and all(len(text) <= _LINE and "\n" not in text for text in texts)


def _type_of(value: Any) -> str:
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "boolean"
    return "array" if isinstance(value, list) else ""
