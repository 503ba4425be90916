"""What a person's answer to one question means: as data for the record, and in words for the agent."""

from __future__ import annotations

from typing import Any

from promptside_daemon.engine.task import Decision
from promptside_protocol.commands import Answer
from promptside_protocol.errors import refused


def reply_to(asked: Decision, command: Answer) -> tuple[Any, str]:
    """The value and the words of an answer by option, text, files or recommendation; refuses what doesn't fit."""
    if command.recommended:
        chosen = [o.id for o in asked.options if o.recommended]
        if not chosen:
            raise refused("no-recommendation", f"Nothing is recommended for {asked.id}.")
        value: Any = chosen[:1] if asked.kind != "any" else chosen
        return value, in_words(asked, value)
    if asked.kind in ("one", "any", "yes_no"):
        value = _choices(asked, command)
    elif asked.kind == "files":
        value = list(command.files) or [line for line in command.text.splitlines() if line.strip()]
    else:
        value = command.text
    if not value:
        raise refused("empty", f"{asked.id} needs an answer.", usage(asked))
    return value, in_words(asked, value)


def in_words(asked: Decision, value: Any) -> str:
    """An answer as the agent is told it: the options' own titles, or the person's text."""
    if isinstance(value, str):
        return value
    titles = {o.id: o.title for o in asked.options}
    parts = [str(v["other"]) if isinstance(v, dict) else titles.get(str(v), str(v)) for v in value]
    return ", ".join(parts)


def usage(asked: Decision) -> str:
    """How to answer a question in the terminal."""
    if asked.options:
        ids = "|".join(o.id for o in asked.options)
        return f"--option {ids}" + (" or --text “…”" if asked.other else "")
    return "--file PATH" if asked.kind == "files" else "--text “…”"


def _choices(asked: Decision, command: Answer) -> list[Any]:
    known = {o.id.lower(): o.id for o in asked.options}
    value: list[Any] = []
    for wanted in command.options:
        if wanted.lower() not in known:
            raise refused("no-option", f"{asked.id} has no option {wanted}.", usage(asked))
        value.append(known[wanted.lower()])
    if command.text:
        if not asked.other:
            raise refused("no-other", f"{asked.id} takes one of its options only.", usage(asked))
        value.append({"other": command.text})
    if len(value) > 1 and asked.kind != "any":
        raise refused("too-many", f"{asked.id}: {len(value)} are chosen, one is wanted.", usage(asked))
    return value
