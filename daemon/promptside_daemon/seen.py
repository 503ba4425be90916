"""What others did to a form since a client saw it, in sentences with who and when (M10).

A client names what it saw by its hash; which version that was is replayed from the journal.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import msgspec

from promptside_daemon.engine.events import AnyEvent
from promptside_daemon.engine.history import Version, versions
from promptside_daemon.engine.task import FormState, Person
from promptside_daemon.store.rows import JournalRow
from promptside_protocol import forms
from promptside_protocol.commands import EditDraft
from promptside_protocol.pages.words import client_name
from promptside_protocol.queries import ItemChange, Seen

_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


def events_of(rows: Iterable[JournalRow]) -> Iterable[AnyEvent]:
    """The facts of a task as they were."""
    return [_decoder.decode(row.body) for row in rows]


def version_with(rows: Iterable[JournalRow], document: str, shown: str) -> tuple[Version, ...]:
    """The version that was seen, if it is known, and those after it."""
    found = versions(events_of(rows), document)
    at = next((n for n in range(len(found) - 1, -1, -1) if found[n].form.shown == shown), None)
    return found[at:] if at is not None else ()


def seen(since: tuple[Version, ...]) -> Seen | None:
    """What a client saw, and what came after it."""
    if not since:
        return None
    first = since[0].form
    return Seen(version=first.version, attempt=first.attempt, answers=_plain(first), changes=changes(since))


def changes(since: tuple[Version, ...], *, but: Person | None = None) -> tuple[ItemChange, ...]:
    """By item, the last that was done to it, if not by this person's window; what was taken back is no change."""
    if not since:
        return ()
    before, now = since[0].form, since[-1].form
    if before.attempt != now.attempt:
        return (_change("", f"Attempt {now.attempt} took the place of attempt {before.attempt}", since[-1]),)
    found: dict[str, ItemChange] = {}
    for was, version in pairwise(since):
        old, new = _plain(was.form), _plain(version.form)
        for ref in (*new, *(ref for ref in old if ref not in new)):
            if _at(new, ref) == _at(old, ref):
                continue
            if but is not None and but.process and version.by == but:
                found.pop(ref, None)
            else:
                found[ref] = _change(ref, _done(now.definition, ref, old.get(ref), new.get(ref)), version)
        if old == new and was.form.shown != version.form.shown:
            found[""] = _change("", "The text was changed", version)
    if before.shown == now.shown:
        return ()
    first, last = _plain(before), _plain(now)
    return tuple(c for ref, c in found.items() if not ref or _at(first, ref) != _at(last, ref))


def overtaken(rows: Iterable[JournalRow], form: FormState, edit: EditDraft, by: Person) -> str:
    """What others did to an item since the version that an edit of it is based on, in a sentence; empty if nothing.

    Of items that others left alone, and of those that they answered alike, nothing is said. Nor of what the same
    window did last: who types faster than it is told has seen what they typed.
    """
    version, answers = edit.version, edit.answers
    found = versions(events_of(rows), form.document)
    at = next((n for n, v in enumerate(found) if _is_version(v, form.attempt, version)), None)
    if at is None:
        return "The document was changed elsewhere after you opened it."
    now, own = _plain(form), _plain(msgspec.structs.replace(form, answers=answers))
    changed = {change.ref: change.sentence for change in changes(found[at:], but=by)}
    return next((changed[ref] for ref in answers if ref in changed and _at(now, ref) != _at(own, ref)), "")


def _is_version(version: Version, attempt: int, number: int) -> bool:
    return version.form.attempt == attempt and version.form.version == number


def answers_in_words(form: FormState) -> str:
    """All answers of a form, a line each: for who saw what nobody knows any more."""
    definition = form.definition
    given = _plain(form)
    lines = [f"{name_of(definition, ref)} {_is(definition, given.get(ref))}." for ref in _refs(definition)]
    return "\n".join(lines) or "The document has other text."


def name_of(definition: forms.Definition, ref: str) -> str:
    """What an item is called: a field by its label, the others by their ids."""
    if isinstance(definition, forms.FieldsDefinition):
        return next((f.label for f in definition.fields if f.key == ref), ref)
    return ref


def _change(ref: str, what: str, version: Version) -> ItemChange:
    when = time.strftime("%H:%M", time.localtime(version.at))
    sentence = f"{what}{_where(version.by)} at {when}, after you opened this."
    return ItemChange(
        ref=ref, sentence=sentence, at=version.at, client=version.by.client if version.by is not None else ""
    )


def _where(by: Person | None) -> str:
    return f" in {client_name(by.client)}" if by is not None and by.client else ""


def _done(definition: forms.Definition, ref: str, old: Any, new: Any) -> str:
    """“C2 was ticked”."""
    name = name_of(definition, ref)
    match definition:
        case forms.ChecklistDefinition():
            was, is_now = _ticked(old), _ticked(new)
            if was != is_now:
                return f"{name} was {'ticked' if is_now else 'unticked'}"
            return f"The note of {name} was changed"
        case forms.OptionsDefinition():
            return f"{name} was {'selected' if new else 'unselected'}"
        case forms.QuestionsDefinition():
            return (
                f"{name} was answered"
                if new not in (None, "", [], ())
                else f"The answer to {name} was removed"
            )
        case _:
            return f"{name} was changed"


def _is(definition: forms.Definition, value: Any) -> str:
    match definition:
        case forms.ChecklistDefinition():
            note = str(value.get("note", "")) if isinstance(value, dict) else ""
            noted = f" with the note “{note}”" if note else ""
            return f"is {'ticked' if _ticked(value) else 'not ticked'}{noted}"
        case forms.OptionsDefinition():
            return "is selected" if value else "is not selected"
        case forms.QuestionsDefinition():
            return "is answered" if value not in (None, "", [], ()) else "is not answered"
        case _:
            return "is as the agent wrote it" if value is None else "was changed"


def _refs(definition: forms.Definition) -> tuple[str, ...]:
    match definition:
        case forms.OptionsDefinition(options=options):
            return tuple(o.id for o in options)
        case forms.ChecklistDefinition(items=points):
            return tuple(i.id for i in points)
        case forms.FieldsDefinition(fields=fields):
            return tuple(f.key for f in fields)
        case forms.QuestionsDefinition(items=asked):
            return tuple(q.id for q in asked)
        case _:
            return ()


def _plain(form: FormState) -> dict[str, Any]:
    """Answers as they are compared: an item without one is not there."""
    try:
        return forms.to_plain(forms.from_plain(form.definition, form.answers))
    except forms.FormError:
        return dict(form.answers)


def _ticked(value: Any) -> bool:
    return isinstance(value, dict) and bool(value.get("ticked"))


def _at(answers: dict[str, Any], ref: str) -> tuple[Any, ...]:
    """An answer, told apart from none."""
    return (answers[ref],) if ref in answers else ()
