"""An agent's answer as the output of its stage: parsed, validated, redacted, and kept as a document (ST-6, ST-7)."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from promptside_daemon.engine.pipeline import (
    Gate,
    RequireAllChecked,
    RequireApproval,
    RequireFields,
    RequireSelection,
    Stage,
)
from promptside_daemon.engine.task import Task, find_attempt
from promptside_daemon.world.documents import Documents
from promptside_daemon.world.redact import Redactor
from promptside_protocol import forms
from promptside_protocol.forms.outputs import GateName

WORDS_LIMIT = 1000
"""Characters of a validator's words that go back to the agent."""


class Found(Struct, frozen=True, kw_only=True):
    """An output; if it is `invalid` the definition shows the raw text."""

    definition: forms.Definition
    shown: str
    text: str
    invalid: str = ""


class Answer:
    """Reads the answers of one attempt."""

    def __init__(self, documents: Documents, redactor: Redactor, schema: dict[str, Any] | None) -> None:
        self._documents = documents
        self._redactor = redactor
        self._schema = schema

    def read(self, task: Task, attempt: str, stage: Stage, structured: Any, said: str) -> Found:
        """The output of a turn: the object that the agent handed over, else one in its text, else the text."""
        found = find_attempt(task, attempt)
        n = found[2].n if found is not None else 1
        if self._schema is None:
            invalid = "" if said.strip() else "the answer is empty"
            return self._text(task, attempt, stage, n, said, invalid)
        payload = structured if structured is not None else object_in(said)
        if payload is None:
            return self._text(task, attempt, stage, n, said, "there is no JSON object in it")
        # The validator quotes what it found: its words are as little for everybody as the answer itself.
        invalid = self._redactor.text(violation(payload, self._schema))
        if not invalid:
            try:
                definition = self._definition(task, stage, n, self._redactor.data(payload))
            except (ValueError, TypeError, KeyError) as error:
                invalid = self._redactor.text(str(error))[:WORDS_LIMIT]
            else:
                return self._kept(attempt, definition, forms.render(definition))
        raw = (
            said
            if said.strip()
            else f"```json\n{msgspec.json.format(msgspec.json.encode(payload)).decode()}\n```"
        )
        return self._text(task, attempt, stage, n, raw, invalid)

    def _definition(self, task: Task, stage: Stage, n: int, payload: Any) -> forms.Definition:
        gate = stage.gate
        low, high = (gate.min, gate.max) if isinstance(gate, RequireSelection) else (1, 1)
        return forms.definition_of(
            stage.output,
            payload,
            task=task.id,
            stage=stage.id,
            title=stage.name,
            attempt=n,
            gate=gate_name(gate),
            min=low,
            max=high,
            required=gate.fields if isinstance(gate, RequireFields) else (),
            schema=self._schema,
        )

    def _text(self, task: Task, attempt: str, stage: Stage, n: int, said: str, invalid: str) -> Found:
        definition = forms.TextDefinition(
            task=task.id, stage=stage.id, title=stage.name, attempt=n, body=self._redactor.text(said)
        )
        found = self._kept(attempt, definition, forms.render(definition))
        # The text itself is in the attempt directory; the database keeps facts only.
        return replace(found, definition=replace(definition, body=""), invalid=invalid)

    def _kept(self, attempt: str, definition: forms.Definition, text: str) -> Found:
        return Found(
            definition=definition,
            shown=forms.shown(definition, text),
            text=self._documents.keep(attempt, text),
        )


def violation(payload: Any, schema: dict[str, Any]) -> str:
    """The validator's words about the first thing that doesn't fit; empty if all does."""
    import jsonschema  # noqa: PLC0415  # 100 ms that a daemon without agents need not spend

    validator = jsonschema.validators.validator_for(schema)(schema)
    try:
        error = jsonschema.exceptions.best_match(validator.iter_errors(payload))
    except RecursionError:
        return "the schema refers to itself without end"
    if error is None:
        return ""
    return f"{error.json_path}: {error.message}"[:WORDS_LIMIT]


_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n```", re.DOTALL)


def object_in(said: str) -> Any:
    """A JSON object in a text: the whole, or in its last fence that holds one; None if there is none."""
    for candidate in (said, *reversed(_FENCED.findall(said))):
        try:
            found = msgspec.json.decode(candidate.encode())
        except (msgspec.DecodeError, UnicodeEncodeError):
            continue
        if isinstance(found, dict):
            return found
    return None


def gate_name(gate: Gate | None) -> GateName:
    """A gate's word in pipeline files; empty for none."""
    match gate:
        case RequireApproval():
            return "require_approval"
        case RequireSelection():
            return "require_selection"
        case RequireAllChecked():
            return "require_all_checked"
        case RequireFields():
            return "require_fields"
        case None:
            return ""
