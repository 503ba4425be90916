"""What can be done at a document and at its items: the daemon's offers, drawn for the buffer as it is.

Nothing is offered here that the daemon does not offer; what the buffer itself would have refused (a line that
can't be read, notes left in it) blocks an approval with the same words.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from promptside_protocol import forms
from promptside_protocol.forms import Note
from promptside_protocol.forms.grammar import Page, notes
from promptside_protocol.pages.plain import cut, one_line
from promptside_protocol.pages.words import several
from promptside_protocol.views import Offer, TaskView
from promptside_server.dangers import danger
from promptside_server.documents import Reading
from promptside_server.held import name_of

APPROVE, SEND, REDO = "promptside.approve", "promptside.send", "promptside.redo"
SAY, SKIP, RUN, DENY = "promptside.interrupt", "promptside.skip", "promptside.run", "promptside.deny"
TAKE_BACK = "promptside.takeBack"
LACK = "promptside.showLack"
NOTED = {REDO: "feedback", SAY: "text", SKIP: "reason", RUN: "input", DENY: "text"}
"""Orders that take words, and where in them the words go."""
NEED_WORDS = frozenset({SAY})
WRITE_A_NOTE = "Write a line that begins with >> under the title, then choose this again."


class Act(Struct, frozen=True, kw_only=True):
    """One thing to do: an order, answers to lay into this document, or a note to begin."""

    title: str
    sure: str = ""
    """Its title where the editor can't ask before it is done: what becomes of the work is said in it."""
    command: str = ""
    args: dict[str, Any] = {}
    answers: dict[str, Any] | None = None
    note_at: int | None = None
    """The line (from 0) in front of which a note to the agent begins."""
    text: str | None = None
    """What the whole buffer shall be."""
    blocked: str | None = None
    primary: bool = False
    ref: str = ""
    uri: str = ""


def document_acts(reading: Reading) -> list[Act]:
    """Everything that the task offers here, the primary first."""
    waiting = reading.task.waiting_for
    gate = waiting.gate if waiting is not None else None
    theirs = {item.id for item in gate.items} if gate is not None else set()
    offers = [offer for offer in reading.task.offers if offer.place not in theirs]
    acts = [act for offer in offers if (act := _act(reading, offer)) is not None]
    match reading.definition:
        case forms.QuestionsDefinition() as definition if reading.waits:
            if recommended := _recommended(reading, definition):
                acts.append(Act(title="Tick the recommended", answers=recommended))
            if (rest := _left_to_the_agent(reading, definition, acts)) is not None:
                acts.append(rest)
        case forms.ChecklistDefinition(items=items) if reading.waits:
            ticks = reading.given
            infos = [i.id for i in items if i.severity == "info" and not _ticked(ticks, i.id)]
            if infos:
                answers = {ref: {**_tick(ticks, ref), "ticked": True} for ref in infos}
                acts.append(Act(title="Tick all infos", answers=answers))
        case _:
            pass
    return acts


def item_acts(reading: Reading, ref: str) -> list[Act]:
    """What can be done with one item."""
    definition = reading.definition
    if definition is None or not ref or not reading.waits or ref not in reading.sections:
        return []
    offered = [act for o in reading.task.offers if o.place == ref and (act := _act(reading, o)) is not None]
    given = reading.given
    acts: list[Act] = []
    match definition:
        case forms.OptionsDefinition():
            acts = _option(reading, definition, ref, given)
        case forms.ChecklistDefinition():
            on = _ticked(given, ref)
            answer = {ref: {**_tick(given, ref), "ticked": not on}}
            acts = [Act(title=f"Untick {ref}" if on else f"Tick {ref}", answers=answer, ref=ref)]
        case forms.FieldsDefinition(fields=fields):
            acts = [act for f in fields if f.key == ref for act in _field(f)]
        case forms.QuestionsDefinition(items=items):
            acts = [act for q in items if q.id == ref for act in _question(q, given)]
        case forms.TextDefinition():
            pass
    section = reading.sections[ref]
    name = name_of(definition, ref)
    return [*acts, *offered, Act(title="Note to the agent here", note_at=section.start + 1, ref=name)]


def approve_title(reading: Reading, title: str) -> str:
    """`Approve A` where options are selected."""
    if isinstance(reading.definition, forms.OptionsDefinition):
        chosen = [ref for ref, on in reading.given.items() if on]
        return " ".join([title, ", ".join(chosen)]).rstrip()
    return title


def notes_of(reading: Reading) -> tuple[Note, ...]:
    """The notes to the agent in the buffer, of a form or of any other document of the task."""
    found = reading.parsed.notes if reading.parsed is not None else notes(Page(reading.text), {})
    return tuple(note for note in found if note.text)


def hindered(reading: Reading, act: str = "approved") -> str | None:
    """Why this buffer could not be approved or sent as it stands, in the daemon's words (M8, M9, M4)."""
    definition, parsed = reading.definition, reading.parsed
    if definition is None or parsed is None:
        return None
    if reading.apart:
        return f"This document is not what the daemon has (line {reading.apart})."
    errors = errors_of(reading)
    if errors:
        count = f"{len(errors)} lines" if len(errors) > 1 else "1 line"
        first = f"line {errors[0].line}: {errors[0].text.rstrip('.')}"
        return f"The document has {count} that can't be read ({first})."
    if parsed.notes and act == "approved":
        count = several(len(parsed.notes), "note")
        return f"There {'are' if len(parsed.notes) > 1 else 'is'} {count} for the agent in this document."
    lacking = forms.lacks(definition, parsed.answers)
    return f"Not {act}: {forms.together(lack.text for lack in lacking)}" if lacking else None


def errors_of(reading: Reading) -> list[forms.Problem]:
    """What can't be read in the buffer."""
    return [p for p in reading.parsed.problems if p.severity == "error"] if reading.parsed is not None else []


def in_words(said: tuple[Note, ...]) -> str:
    """Notes as the agent is told them, each with the item that it belongs to."""
    return "\n\n".join(f"{note.ref}: {note.text}" if note.ref else note.text for note in said)


def about(task: TaskView, offer: Offer) -> str:
    """The document that an approval is about; empty if it is the one that waits."""
    wanted = offer.args.get("stage", "")
    return next((s.artifact or "" for s in task.stages if s.id == wanted), "")


def _act(reading: Reading, offer: Offer) -> Act | None:
    task = reading.task
    args = {"project": task.project, "task": task.id, **offer.args}
    title, blocked = offer.title, offer.blocked
    # Nobody approves what they do not see: answered questions are not what waits after them.
    if offer.command in (APPROVE, SEND) and _overtaken(reading) and about(task, offer) != reading.document:
        return None
    if offer.command in (APPROVE, SEND) and reading.form is not None and not _of_the_task(reading):
        if offer.command == APPROVE and about(task, offer) not in ("", reading.document):
            return None
        if offer.command == SEND and not reading.waits:
            return None
        sending = offer.command == SEND
        title = title if sending else approve_title(reading, title)
        hindrance = hindered(reading, "sent" if sending else "approved")
        blocked = hindrance or (None if not reading.form.satisfied else blocked)
    elif offer.command in NOTED and blocked is None:
        return _noted(reading, offer, args)
    if offer.place and offer.place in {d.id for d in task.decisions}:
        what = next((d.what for d in task.decisions if d.id == offer.place), "")
        title = f"{title} · {cut(one_line(what), 50, unicode=True)}" if what else title
    lost = danger(task, offer.command, offer.args)
    sure = lost.title if lost is not None else ""
    return Act(
        title=title, sure=sure, command=offer.command, args=args, blocked=blocked, primary=offer.primary
    )


def _overtaken(reading: Reading) -> bool:
    """Whether this is a form of the task's that does not wait any more."""
    inside = reading.document.startswith(f"{reading.task.directory}/")
    return inside and not reading.waits and not _of_the_task(reading)


def _of_the_task(reading: Reading) -> bool:
    """Whether this is `task.md`, which has fields and no gate."""
    return reading.document == f"{reading.task.directory}/task.md"


def _noted(reading: Reading, offer: Offer, args: dict[str, Any]) -> Act:
    """An order that takes words: the notes of the document are those words.

    Those of the document that waits reach the daemon with the draft; it takes them from there. Others are taken out
    of the buffer when they were said, so that nothing is said twice.
    """
    said, word = notes_of(reading), NOTED[offer.command]
    title = offer.title
    if offer.place and offer.place in {d.id for d in reading.task.decisions}:
        what = next((d.what for d in reading.task.decisions if d.id == offer.place), "")
        title = f"{title} · {cut(one_line(what), 50, unicode=True)}"
    if not said:
        if offer.command == REDO or offer.command in NEED_WORDS:
            return Act(title=title, command=offer.command, args=args, note_at=1, primary=offer.primary)
        return Act(title=title, command=offer.command, args={**args, word: ""}, primary=offer.primary)
    count = several(len(said), "note")
    title = f"Interrupt with {count}" if offer.command == SAY else f"{title.replace('…', '')} with {count}"
    if offer.command == REDO and reading.waits and reading.form is not None:
        args = {**args, word: ""}
    else:
        args = {**args, word: in_words(said), "uri": reading.uri}
    return Act(title=title, command=offer.command, args=args, primary=offer.primary)


def _option(
    reading: Reading, definition: forms.OptionsDefinition, ref: str, given: dict[str, Any]
) -> list[Act]:
    if given.get(ref):
        return [Act(title=f"Untick {ref}", answers={ref: False}, ref=ref)]
    others = {other: False for other in given if definition.max == 1}
    answers = {**others, ref: True}
    acts = [Act(title=f"Select {ref}", answers=answers, ref=ref)]
    offer = next((o for o in reading.task.offers if o.command == APPROVE), None)
    parsed = reading.parsed
    if offer is None or parsed is None or about(reading.task, offer) not in ("", reading.document):
        return acts
    chosen = forms.from_plain(definition, {**given, **answers})
    readable = not parsed.notes and not any(p.severity == "error" for p in parsed.problems)
    sent = reading.form is not None and forms.shown(definition, reading.text) == reading.form.shown
    if sent and readable and not forms.lacks(definition, chosen):
        # The answer goes with the order: some editors tell of an edit only after the order that follows it.
        args = {"project": reading.task.project, "task": reading.task.id, **offer.args, "answers": answers}
        acts.append(Act(title=f"Select {ref} and approve", command=APPROVE, args=args, ref=ref))
    return acts


def _field(field: forms.Field) -> list[Act]:
    match field.widget:
        case "boolean":
            pairs = [("Yes", True), ("No", False)]
        case "enum":
            pairs = [(one_line(c), c) for c in field.choices]  # type: ignore[misc]  # a choice is its own value
        case _:
            return []
    return [
        Act(title=f"{field.label}: {word}", answers={field.key: value}, ref=field.key)
        for word, value in pairs
    ]


def _question(question: forms.Question, given: dict[str, Any]) -> list[Act]:
    acts = []
    chosen = list(given.get(question.id) or ())
    for option in question.options:
        title = cut(one_line(option.title), 60, unicode=True)
        label = option.id if option.id == title else f"{option.id}: {title}"
        if option.id in chosen:
            rest = [one for one in chosen if one != option.id]
            acts.append(Act(title=f"Take back {label}", answers={question.id: rest}, ref=question.id))
        else:
            wanted = [*chosen, option.id] if question.kind == "any" else [option.id]
            acts.append(Act(title=f"Answer {label}", answers={question.id: wanted}, ref=question.id))
    return acts


def _recommended(reading: Reading, definition: forms.QuestionsDefinition) -> dict[str, Any]:
    """The recommended choices of what is not answered yet."""
    given = reading.given
    found = {}
    for question in definition.items:
        best = [o.id for o in question.options if o.recommended]
        if best and question.id not in given:
            found[question.id] = best if question.kind == "any" else best[:1]
    return found


def _left_to_the_agent(
    reading: Reading, definition: forms.QuestionsDefinition, acts: list[Act]
) -> Act | None:
    """Sending what is there while only questions are open that need no answer."""
    send = next((act for act in acts if act.command == SEND), None)
    given = reading.given
    left = [question for question in definition.items if question.id not in given]
    if send is None or send.blocked is not None or not left or any(question.required for question in left):
        return None
    return Act(title="Let the agent decide the rest", command=SEND, args=send.args)


def _tick(given: dict[str, Any], ref: str) -> dict[str, Any]:
    found: dict[str, Any] = given.get(ref) or {"ticked": False, "note": ""}
    return found


def _ticked(given: dict[str, Any], ref: str) -> bool:
    return bool(_tick(given, ref)["ticked"])
