"""A stage's output schema as a file may give it, as a table or as JSON text (ST-7).

It must be a JSON Schema of an object that points nowhere else: a validator would fetch what it points to.
"""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec

from promptside_daemon.engine.pipeline import OutputFormat
from promptside_daemon.toml_reader import Reader
from promptside_daemon.toml_source import MAX_DEPTH, KeyPath

_POINTERS = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})


def read_schema(read: Reader, at: KeyPath, output: OutputFormat) -> dict[str, Any] | None:
    """The schema; None where the stage has none, or none that can be used."""
    value = read.value(at)
    if value is None:
        return None
    if output == "text":
        read.fault(at, "A text has no schema.", 'Take `output = "structured"`, or leave the schema out.')
        return None
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError, ValueError) as error:  # ValueError: a lone surrogate
            read.fault(at, f"This schema is not JSON: {error}.", at="value")
            return None
    if not isinstance(value, dict):
        read.wrong(at, "a table, or JSON text")
        return None
    sentence = _unusable(value) or _no_schema(value)
    if sentence:
        read.fault(at, sentence, at="value")
        return None
    return value


def _unusable(schema: dict[str, Any]) -> str:
    stack: list[tuple[Any, int]] = [(schema, 0)]
    while stack:
        value, depth = stack.pop()
        if depth > MAX_DEPTH:
            return f"The schema is nested more than {MAX_DEPTH} levels deep."
        match value:
            case dict():
                for key, inner in value.items():
                    if key in _POINTERS and not (isinstance(inner, str) and inner.startswith("#/")):
                        return f"The schema's `{key}` must point into the schema itself: `#/$defs/…`."
                    if key == "pattern" and isinstance(inner, str) and not _is_pattern(inner):
                        return f"`{inner[:80]}` is not a regular expression."
                    stack.append((inner, depth + 1))
            case list():
                stack.extend((inner, depth + 1) for inner in value)
            case float() if not math.isfinite(value):
                return "A number in the schema is not finite."
            case str() | int() | float() | bool() | None:
                pass
            case _:
                return f"JSON has no {type(value).__name__}; write it as text."
    return ""


def _no_schema(schema: dict[str, Any]) -> str:
    if schema.get("type") != "object":
        return 'The schema must be that of an object: `type = "object"`.'
    from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415  # a third of a daemon's start

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        where = "".join(f"/{part}" for part in error.absolute_path) or "its top"
        return f"This is not a JSON Schema: at {where}, {error.message[:200]}."
    except RecursionError:
        return "The schema is nested too deep."
    return ""


def _is_pattern(text: str) -> bool:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError):
        return False
    return True
