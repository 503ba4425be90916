"""A stage's gate as a file may give it: by name, as a table, or as the source's JSON text (ST-5)."""

from __future__ import annotations

from typing import Any

import msgspec

from promptside_daemon.engine.pipeline import (
    Gate,
    OutputFormat,
    RequireAllChecked,
    RequireApproval,
    RequireFields,
    RequireSelection,
)
from promptside_daemon.toml_reader import Reader
from promptside_daemon.toml_source import KeyPath, did_you_mean

Schema = dict[str, Any]

_TYPES = ("require_approval", "require_selection", "require_all_checked", "require_fields")
_FITS: dict[str, OutputFormat] = {
    "require_selection": "options",
    "require_all_checked": "checklist",
    "require_fields": "structured",
}
_OWN = {output: kind for kind, output in _FITS.items()}
_KEYS = {"require_selection": ("type", "min", "max"), "require_fields": ("type", "fields")}
_MOST = 1_000


def read_gate(
    read: Reader, at: KeyPath, output: OutputFormat, schema: Schema | None
) -> tuple[Gate | None, Schema | None]:
    """The gate, by default the one that the output format is made for, and the schema.

    A structured stage that names fields but has no schema gets one: each field a text.
    """
    given = _as_table(read, at, output)
    if given is None:
        return None, schema
    kind = given.get("type")
    if kind not in _TYPES:
        word = kind if isinstance(kind, str) else ""
        sentence = f"There is no gate `{word}`." if word else "A gate has a `type`."
        read.fault(at, sentence, did_you_mean(word, (*_TYPES, "none")))
        return None, schema
    assert isinstance(kind, str)
    known = _KEYS.get(kind, ("type",))
    for key in given:
        if key not in known:
            read.fault(_inside(read, at, key), f"`{kind}` has no `{key}`.", did_you_mean(key, known))
    if _FITS.get(kind, output) != output:
        read.fault(
            at,
            f"`{kind}` needs the output `{_FITS[kind]}`; this stage's is `{output}`.",
            f"Take `{_OWN.get(output, 'require_approval')}`, or another output.",
        )
    match kind:
        case "require_selection":
            return _selection(read, at, given), schema
        case "require_all_checked":
            return RequireAllChecked(), schema
        case "require_fields":
            return _fields(read, at, given, schema)
        case _:
            if output == "structured" and schema is None:
                read.fault(at, "A structured output needs a `schema`, or a gate that names its fields.")
            return RequireApproval(), schema


def _as_table(read: Reader, at: KeyPath, output: OutputFormat) -> dict[str, Any] | None:
    value = read.value(at)
    if value is None:
        return {"type": _OWN.get(output, "require_approval")}
    if isinstance(value, dict):
        return value
    if not isinstance(value, str):
        read.wrong(at, "a table, or the name of a gate")
        return {"type": "require_approval"}
    if value == "none":
        return None
    if not value.lstrip().startswith("{"):
        return {"type": value}
    try:
        table = msgspec.json.decode(value, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, ValueError) as error:  # ValueError: a lone surrogate
        read.fault(at, f"This gate is not JSON: {error}.", at="value")
        return {"type": "require_approval"}
    return table


def _selection(read: Reader, at: KeyPath, given: dict[str, Any]) -> RequireSelection:
    bounds = {"min": 1, "max": max(1, given["min"]) if _is_count(given.get("min")) else 1}
    for key in bounds:
        if key not in given:
            continue
        if _is_count(given[key]):
            bounds[key] = given[key]
        else:
            sentence = f"`{key}` must be a whole number from 0 to {_MOST}."
            read.fault(_inside(read, at, key), sentence, at="value")
    if not bounds["min"] <= bounds["max"] or not bounds["max"]:
        read.fault(at, f"No selection is between {bounds['min']} and {bounds['max']}.")
    return RequireSelection(min=bounds["min"], max=bounds["max"])


def _fields(
    read: Reader, at: KeyPath, given: dict[str, Any], schema: Schema | None
) -> tuple[RequireFields, Schema | None]:
    fields = given.get("fields", (schema or {}).get("required", []))
    inside = _inside(read, at, "fields")
    if not isinstance(fields, list) or not all(isinstance(name, str) and name.strip() for name in fields):
        read.fault(inside, "`fields` must be a list of names.", at="value")
        return RequireFields(), schema
    if not fields:
        hint = 'For example `{ type = "require_fields", fields = ["title"] }`.'
        read.fault(inside, "`require_fields` names no field.", hint)
    if schema is None:
        texts = {name: {"type": "string"} for name in fields}
        schema = {
            "type": "object",
            "properties": texts,
            "required": list(texts),
            "additionalProperties": False,
        }
    known = schema.get("properties")
    for name in fields:
        if not isinstance(known, dict) or name not in known:
            hint = did_you_mean(name, tuple(known)) if isinstance(known, dict) else ""
            read.fault(
                inside, f"The gate wants the field `{name}`, which is not in the schema.", hint, at="value"
            )
    return RequireFields(fields=tuple(dict.fromkeys(fields))), schema


def _inside(read: Reader, at: KeyPath, key: str) -> KeyPath:
    """Where a key of the gate stands: in a table at a place of its own, in JSON text at the text's."""
    return (*at, key) if isinstance(read.value(at), dict) else at


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST
