"""Hover on an item of a form document: what it is, what was answered, what it lacks, and where it comes from.

Always plain text: an agent's words must not become a picture that is fetched from somewhere.
"""

from __future__ import annotations

from typing import Any, assert_never

from lsprotocol import types

from promptside_protocol import forms
from promptside_protocol.pages.plain import cut, one_line
from promptside_protocol.pages.waiting import QUESTION_KINDS
from promptside_protocol.pages.words import duration, money
from promptside_server.documents import Reading, documents
from promptside_server.places import span
from promptside_server.server import Server
from promptside_server.shared import answer

LONG = 400
"""Characters of an answer; the whole stands in the document."""
SEVERITY = {"critical": "a critical point", "warning": "a warning", "info": "an information"}


def register(server: Server) -> None:
    """Answer for hover at the line where an item begins."""
    known = documents(server)

    async def hover(params: types.HoverParams) -> types.Hover | None:
        reading = await known.ready(params.text_document.uri)
        if reading is None or reading.definition is None:
            return None
        line, lines = params.position.line, reading.lines
        section = next((s for s in reading.sections.values() if s.start == line), None)
        if section is None:
            return None
        return types.Hover(
            contents=types.MarkupContent(
                kind=types.MarkupKind.PlainText, value="\n".join(_said(reading, section.ref))
            ),
            range=span(server, lines, (line, 0), (line, len(lines[line]))),
        )

    answer(server, types.TEXT_DOCUMENT_HOVER, hover)


def _said(reading: Reading, ref: str) -> list[str]:
    definition = reading.definition
    assert definition is not None, "only forms have items"
    answers = reading.parsed.answers if reading.parsed is not None else None
    values = reading.given
    if isinstance(definition, forms.FieldsDefinition) and isinstance(answers, forms.FieldsAnswers):
        values = forms.field_values(definition, answers)  # with what the agent wrote and nobody changed
    what, given = _what(definition, ref), _answer(definition, ref, values)
    lacking = forms.lacks(definition, answers) if answers is not None and reading.waits else []
    lacks = [lack.text for lack in lacking if lack.ref == ref]
    return [what, f"Answer: {given or 'none yet'}", *(f"Lacks: {text}" for text in lacks), _origin(reading)]


def _what(definition: forms.Definition, ref: str) -> str:
    match definition:
        case forms.OptionsDefinition(options=options):
            option = next(o for o in options if o.id == ref)
            best = ", recommended" if option.recommended else ""
            return f"{ref}: {one_line(option.title)} (an option{best})"
        case forms.ChecklistDefinition(items=items):
            item = next(i for i in items if i.id == ref)
            place = f", {item.path}{f':{item.line}' if item.line is not None else ''}" if item.path else ""
            return f"{ref}: {one_line(item.title)} ({SEVERITY[item.severity]}{place})"
        case forms.FieldsDefinition(fields=fields):
            field = next(f for f in fields if f.key == ref)
            wanted = ", required" if field.required else ""
            one_of = f", one of: {', '.join(map(one_line, field.choices))}" if field.choices else ""
            return f"{field.label} (a field{wanted}{one_of})"
        case forms.QuestionsDefinition(items=items):
            question = next(q for q in items if q.id == ref)
            wanted = ", required" if question.required else ""
            return f"{ref}: {one_line(question.text)} (a question, {QUESTION_KINDS[question.kind]}{wanted})"
        case forms.TextDefinition():
            return one_line(definition.title)
        case _:
            assert_never(definition)


def _answer(definition: forms.Definition, ref: str, given: dict[str, Any]) -> str:
    value = given.get(ref)
    match value:
        case None | "" | [] | ():
            return ""
        case bool():
            chosen = {True: "selected", False: "not selected"}
            return (
                chosen[value]
                if isinstance(definition, forms.OptionsDefinition)
                else ("Yes" if value else "No")
            )
        case {"ticked": ticked, "note": note}:
            words = "reviewed" if ticked else "not reviewed"
            return f"{words}; {cut(one_line(note), LONG, unicode=True)}" if note else words
        case list() | tuple():
            return cut(", ".join(one_line(str(one)) for one in value), LONG, unicode=True)
        case _:
            return cut(one_line(str(value)), LONG, unicode=True)


def _origin(reading: Reading) -> str:
    """The attempt that it is from."""
    definition = reading.definition
    assert definition is not None, "only forms have items"
    stage = next((s for s in reading.task.stages if s.id == definition.stage), None)
    words = [f"From {stage.name if stage is not None else definition.stage}, attempt {definition.attempt}"]
    attempts = stage.attempts if stage is not None else ()
    attempt = next((a for a in attempts if a.n == definition.attempt), None)
    if attempt is not None:
        words += [duration(attempt.duration_s)] if attempt.duration_s is not None else []
        recorded = reading.task.metrics.recorded
        words += [money(attempt.cost_usd, recorded=recorded)] if attempt.cost_usd is not None else []
    return ", ".join(words) + "."
