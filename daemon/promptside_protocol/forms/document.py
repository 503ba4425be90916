"""What a form document is made of: its definition, the answers to it, and what reading its text finds.

The definition holds the agent's text and is never changed by a person; answers hold only what a person gave.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from msgspec import Struct

Severity = Literal["critical", "warning", "info"]
Widget = Literal["line", "text", "enum", "boolean", "any", "bullets", "json"]
QuestionKind = Literal["one", "any", "text", "long_text", "files", "code", "yes_no"]


class FormError(ValueError):
    """Answers that can't belong to this form; the message is a sentence for the person who sent them."""


# --- definitions --------------------------------------------------------------------------------------


class Form(Struct, frozen=True, kw_only=True):
    """What all kinds have: whose document it is, and its title."""

    task: int
    stage: str
    attempt: int
    title: str


class TextDefinition(Form, frozen=True, kw_only=True, tag="text", tag_field="kind"):
    """Any Markdown. The content is the document's: `body` only begins a rendering, and may be empty."""

    body: str = ""


class Option(Struct, frozen=True, kw_only=True):
    """One way to go, as the agent described it."""

    id: str
    title: str
    description: str = ""
    pros: tuple[str, ...] = ()
    cons: tuple[str, ...] = ()
    recommended: bool = False


class OptionsDefinition(Form, frozen=True, kw_only=True, tag="options", tag_field="kind"):
    """Options, of which the gate takes between `min` and `max`."""

    options: tuple[Option, ...]
    min: int = 1
    max: int = 1


class CheckItem(Struct, frozen=True, kw_only=True):
    """A point to look at; `C1` is critical, `W1` a warning, `I1` an information."""

    id: str
    severity: Severity
    title: str
    detail: str = ""
    path: str = ""
    line: int | None = None


class ChecklistDefinition(Form, frozen=True, kw_only=True, tag="checklist", tag_field="kind"):
    """Points that a person ticks when they are reviewed; `required` where the gate wants all of them."""

    items: tuple[CheckItem, ...]
    required: bool = True


class Field(Struct, frozen=True, kw_only=True):
    """A field, and the value that the agent proposes for it (None: nothing)."""

    key: str
    label: str
    widget: Widget = "text"
    required: bool = False
    choices: tuple[str, ...] = ()
    value: Any = None
    hint: str = ""
    """What may stand here, in a line; of a field that is a line."""


class FieldsDefinition(Form, frozen=True, kw_only=True, tag="fields", tag_field="kind"):
    """A structured output that a person corrects."""

    fields: tuple[Field, ...]
    sentence: str = ""
    """What to do, where it isn't to correct what an agent wrote."""


class Choice(Struct, frozen=True, kw_only=True):
    """A choice of a question."""

    id: str
    title: str
    description: str = ""
    recommended: bool = False


class Question(Struct, frozen=True, kw_only=True):
    """What the agent asks; `header` is its topic, `other` takes an answer of the person's own."""

    id: str
    kind: QuestionKind
    text: str
    header: str = ""
    options: tuple[Choice, ...] = ()
    other: bool = False
    required: bool = True
    priority: int = 1
    lang: str = ""


class QuestionsDefinition(Form, frozen=True, kw_only=True, tag="questions", tag_field="kind"):
    """One round of questions, in the order in which the document asks them."""

    round: int
    items: tuple[Question, ...]


Definition = TextDefinition | OptionsDefinition | ChecklistDefinition | FieldsDefinition | QuestionsDefinition


# --- answers ------------------------------------------------------------------------------------------


class TextAnswers(Struct, frozen=True, kw_only=True, tag="text", tag_field="kind"):
    """A text is approved as it stands: there is nothing to answer."""


class OptionsAnswers(Struct, frozen=True, kw_only=True, tag="options", tag_field="kind"):
    """Ids of the selected options, in the order of the definition."""

    selected: tuple[str, ...] = ()


class Tick(Struct, frozen=True, kw_only=True):
    """What a person did with a point of a checklist."""

    ticked: bool = False
    note: str = ""


class ChecklistAnswers(Struct, frozen=True, kw_only=True, tag="checklist", tag_field="kind"):
    """The points that are ticked or have a note, by id."""

    items: dict[str, Tick] = {}


class FieldsAnswers(Struct, frozen=True, kw_only=True, tag="fields", tag_field="kind"):
    """The values that are not the agent's any more, by key; None is a field that was emptied."""

    values: dict[str, Any] = {}


class Chosen(Struct, frozen=True, kw_only=True):
    """Choices that are ticked, in the order of the definition, and an answer of the person's own."""

    ids: tuple[str, ...] = ()
    other: str = ""


Reply = Chosen | str | tuple[str, ...]
"""An answer to one question: choices, a text, or paths."""


class QuestionsAnswers(Struct, frozen=True, kw_only=True, tag="questions", tag_field="kind"):
    """The answers that are there, by question."""

    values: dict[str, Reply] = {}


Answers = TextAnswers | OptionsAnswers | ChecklistAnswers | FieldsAnswers | QuestionsAnswers


# --- what reading finds -------------------------------------------------------------------------------


class Lack(Struct, frozen=True, kw_only=True):
    """What stands between a form and its approval; `ref` is an item, or empty for the document."""

    ref: str
    text: str


SHARED = (" is not ticked.", " is required and still empty.")
"""How sentences end that several items have in common."""
NAMED = 4
"""Items that a sentence names; the others are counted."""


def together(lacks: Iterable[str]) -> str:
    """What lacks, as short as it can be said: “C1, W1 and 3 more are not ticked.”"""
    named: dict[str, list[str]] = {}
    for lack in lacks:
        end = next((end for end in SHARED if lack.endswith(end)), "")
        named.setdefault(end or lack, []).append(lack.removesuffix(end))
    return " ".join(_sentence(names, end) for end, names in named.items())


def _sentence(names: list[str], end: str) -> str:
    if end not in SHARED:
        return end
    return names[0] + end if len(names) == 1 else _all(names) + end.replace(" is ", " are ")


def _all(names: list[str]) -> str:
    """“C1, W1 and I1”."""
    if len(names) > NAMED + 1:
        names = [*names[:NAMED], f"{len(names) - NAMED} more"]
    return f"{', '.join(names[:-1])} and {names[-1]}"


class Note(Struct, frozen=True, kw_only=True):
    """A note to the agent; it belongs to the item `ref`, or to the document if that is empty."""

    line: int
    ref: str
    text: str


class Problem(Struct, frozen=True, kw_only=True):
    """A diagnostic; lines count from 1. Codes: `form-…` for the grammar, `gate-…` for what is lacking."""

    line: int
    severity: Literal["error", "warning", "information", "hint"]
    code: str
    text: str
    ref: str = ""


class Parsed(Struct, frozen=True, kw_only=True):
    """A document as it was read; `bodies` are the items' texts as they stand there, without slots and notes.

    Of a text document the body is under the empty id.
    """

    answers: Answers
    notes: tuple[Note, ...] = ()
    problems: tuple[Problem, ...] = ()
    bodies: dict[str, str] = {}
    unread: frozenset[str] = frozenset()
    """Items that are missing or broken: what was answered to them before still holds."""
