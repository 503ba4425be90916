"""A form as the daemon has it and as the buffer was last the same; what is this buffer's own since, by item.

Pure: texts and forms in, texts and answers out.
"""

from __future__ import annotations

from typing import Any, assert_never

import msgspec
from msgspec import Struct

from promptside_protocol import forms
from promptside_protocol.forms.form import kind_of
from promptside_protocol.forms.grammar import LINE_END, Page, Section
from promptside_protocol.forms.widgets import proposed
from promptside_protocol.queries import Form

STALE = "The file was changed elsewhere. Read it again."
"""For a buffer without unsaved edits whose file is the newer one: most editors read it again by themselves."""
ELSEWHERE = "{} was changed elsewhere after you opened this."
LOOK = "{} Look again, then approve."
LET_GO = "{} Save or close this, then look again."


class Held(Struct, kw_only=True):
    """A form as the daemon had it last, and as the buffer was when both were the same."""

    form: Form
    definition: forms.Definition
    base: Form
    base_definition: forms.Definition
    seq: int = 0
    """What the task was at when the form was asked for."""
    conflicts: dict[str, str] = {}
    """By item: what is said where an edit met somebody else's."""
    refusal: str = ""
    """Why an edit of this buffer was not taken."""
    tried: bool = False
    """Whether an approval was asked for: from then on what lacks is a warning, until mended."""
    apart: bool = False
    """The buffer was opened with what the daemon never had: neither side is taken before the person says so."""
    last: tuple[forms.Definition, str, dict[str, Section], forms.Parsed] | None = None
    """What was read last: most of what an editor asks is about the same text."""

    def understood(self, text: str) -> tuple[dict[str, Section], forms.Parsed]:
        """The sections and the answers of a buffer."""
        if self.last is None or self.last[0] is not self.definition or self.last[1] != text:
            sections = kind_of(self.definition).read(self.definition, Page(text)).found
            self.last = (self.definition, text, sections, forms.parse(self.definition, text))
        return self.last[2], self.last[3]

    @property
    def replaced(self) -> bool:
        """Whether another attempt has taken the place of the one that the buffer was opened with."""
        return self.definition.attempt != self.base_definition.attempt

    def unsent(self, text: str) -> bool:
        """Whether the buffer holds something of its own since it was the same."""
        return forms.shown(self.base_definition, text) != self.base.shown

    def agree(self) -> None:
        """The buffer is what the daemon has."""
        self.base, self.base_definition = self.form, self.definition
        self.conflicts, self.apart = {}, False


def begun(form: Form, definition: forms.Definition, opened: str, older: Form | None) -> Held:
    """What to hold of a buffer that was opened with this text; `older` is the form as of that version, if known."""
    held = Held(form=form, definition=definition, base=form, base_definition=definition)
    if forms.shown(definition, opened) == form.shown:
        return held
    attempt = forms.attempt_in(opened)
    if attempt not in (None, definition.attempt):
        held.base_definition = msgspec.structs.replace(definition, attempt=attempt)
        shown = forms.shown(held.base_definition, opened)
        held.base = msgspec.structs.replace(form, text=opened, shown=shown, version=-1)
    elif older is not None and older.seen is not None and older.seen.attempt == definition.attempt:
        held.base = msgspec.structs.replace(
            form,
            text=opened,
            shown=forms.shown(definition, opened),
            version=older.seen.version,
            answers=older.seen.answers,
        )
    else:
        # The content of a text is the file's: what stands there is the person's own.
        held.apart = not isinstance(definition, forms.TextDefinition)
    return held


def merged(held: Held, text: str) -> forms.Merged:
    """What this buffer and others answered since both were the same."""
    definition = held.definition
    base = forms.from_plain(held.base_definition, held.base.answers)
    mine = forms.edited(definition, base, forms.parse(definition, text))
    return forms.merge(definition, base, mine, forms.from_plain(definition, held.form.answers))


def same_prose(held: Held, theirs: Form) -> bool:
    """Whether others changed nothing but answers."""
    definition = held.definition
    answered = forms.apply(definition, held.base.text, forms.from_plain(definition, theirs.answers))
    return forms.shown(definition, answered) == theirs.shown


def elsewhere(held: Held, ref: str, end: str = LOOK) -> str:
    """What others did to an item, with who and when where the daemon knows it (M10)."""
    changes = held.form.seen.changes if held.form.seen is not None else ()
    name = name_of(held.definition, ref) if ref else "The document"
    known = next((change.sentence for change in changes if change.ref == ref), "")
    return end.format(known or ELSEWHERE.format(name))


def conflicts_of(held: Held, found: forms.Merged) -> dict[str, str]:
    """By item, what is said where both changed it."""
    return {conflict.ref: elsewhere(held, conflict.ref) for conflict in found.conflicts}


def first_difference(mine: str, theirs: str) -> int:
    """The first line (from 1) of my text that is not in its place in theirs."""
    own, other = LINE_END.split(mine), LINE_END.split(theirs)
    pairs = zip(own, other, strict=False)
    found = next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(own), len(other)))
    return min(found, len(own) - 1) + 1


def cleared(definition: forms.Definition, ref: str) -> Any:
    """The answer to an item that takes away what was answered."""
    match definition:
        case forms.OptionsDefinition():
            return False
        case forms.ChecklistDefinition():
            return {"ticked": False, "note": ""}
        case forms.FieldsDefinition(fields=fields):
            return next((proposed(f) for f in fields if f.key == ref), None)
        case forms.QuestionsDefinition(items=items):
            kind = next((i.kind for i in items if i.id == ref), "text")
            return "" if kind in ("text", "long_text", "code") else []
        case forms.TextDefinition():
            return None
        case _:
            assert_never(definition)


def name_of(definition: forms.Definition, ref: str) -> str:
    """What an item is called: a field by its label, the others by their ids."""
    if isinstance(definition, forms.FieldsDefinition):
        return next((f.label for f in definition.fields if f.key == ref), ref)
    return ref
