"""What puts a document right: an item or all of it as the daemon has it, or the notes taken out (M8, M9).

Answers that can be read are kept.
"""

from __future__ import annotations

from promptside_protocol import forms
from promptside_protocol.forms.form import kind_of
from promptside_protocol.forms.grammar import LINE_END, TRAILER, Page
from promptside_server.documents import Reading
from promptside_server.offered import LACK, Act, errors_of


def mends(reading: Reading) -> list[Act]:
    """What makes a document that can't be approved one that can: its errors, and its notes."""
    if not reading.waits:
        return []
    acts: list[Act] = []
    if errors := errors_of(reading):
        line = errors[0].line
        acts.append(Act(title=f"Go to line {line}", command=LACK, args={"uri": reading.uri, "line": line}))
        whole = restored(reading)
        if whole is not None:
            acts.append(Act(title="Restore the document", text=whole))
    if reading.parsed is not None and reading.parsed.notes:
        words = "Remove the notes" if len(reading.parsed.notes) > 1 else "Remove the note"
        acts.append(Act(title=words, text=without_notes(reading.text)))
    return acts


def without_notes(text: str) -> str:
    """A document without its notes to the agent."""
    gone = Page(text).notes
    ends = [*LINE_END.findall(text), ""]
    lines = zip(LINE_END.split(text), ends, strict=True)
    return "".join(line + end for at, (line, end) in enumerate(lines) if at not in gone)


def restored(reading: Reading, ref: str = "") -> str | None:
    """The buffer with one item, or all of it, as the daemon has it; the other answers stay."""
    definition, parsed, form = reading.definition, reading.parsed, reading.form
    if definition is None or parsed is None or form is None:
        return None
    draft = forms.from_plain(definition, form.answers)
    whole = forms.render(definition, forms.edited(definition, draft, parsed))
    if not ref:
        return form.text if isinstance(definition, forms.TextDefinition) else whole
    fresh = Reading(uri="", task=reading.task, document="", text=whole, definition=definition)
    there = kind_of(definition).read(definition, Page(whole)).found
    if ref not in there:
        return None
    piece = fresh.lines[there[ref].start : there[ref].end]
    lines = reading.lines
    if ref in reading.sections:
        start, end = reading.sections[ref].start, reading.sections[ref].end
    else:
        start = end = _behind(reading, list(there), ref)
    end_mark = "\r\n" if "\r\n" in reading.text else "\n"
    return end_mark.join([*lines[:start], *piece, *lines[end:]])


def _behind(reading: Reading, order: list[str], ref: str) -> int:
    """Where an item that is gone belongs: in front of the next that is there, else in front of the last line."""
    for other in order[order.index(ref) + 1 :]:
        if other in reading.sections:
            return reading.sections[other].start
    lines = reading.lines
    last = next((at for at, line in enumerate(lines) if TRAILER.match(line.rstrip())), None)
    return last if last is not None else len(lines)
