"""What is laid over the draft of a form, from the words of a command line or of a person at a prompt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from promptside_cli.exits import Stopped, UsageError
from promptside_protocol.views import GateView

Answers = dict[str, Any]


def selected(gate: GateView, chosen: Iterable[str]) -> Answers:
    """Exactly these options: what the draft had selected before is not."""
    ids = set(chosen)
    unknown = ids - {option.id for option in gate.options}
    if unknown:
        raise _unknown("option", ", ".join(sorted(unknown)), [option.id for option in gate.options])
    return {option.id: option.id in ids for option in gate.options}


def checked(gate: GateView, notes: Mapping[str, str]) -> Answers:
    """These items ticked, with their notes; where none is given, the draft's stays."""
    before = {item.id: item.note for item in gate.items}
    return {item: {"ticked": True, "note": note or before.get(item, "")} for item, note in notes.items()}


def checks(gate: GateView, words: Iterable[str]) -> dict[str, str]:
    """`ID`, `ID=NOTE` or `all` as items with notes."""
    ids = [item.id for item in gate.items]
    notes: dict[str, str] = {}
    for word in words:
        item, _, note = word.partition("=")
        if word == "all":
            notes = {**dict.fromkeys(ids, ""), **notes}
        elif item in ids:
            notes[item] = note
        else:
            raise _unknown("item", item, ids)
    return notes


def fields(words: Iterable[str]) -> Answers:
    """`K=V` pairs."""
    values: Answers = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise UsageError(f"--field takes NAME=VALUE, not “{word}”.")
        values[key] = value
    return values


def _unknown(kind: str, name: str, known: list[str]) -> Stopped:
    there = ", ".join(known) or "none"
    return Stopped(
        "unknown-item", f"Not approved: there is no {kind} {name} at this gate.", f"There is: {there}."
    )
