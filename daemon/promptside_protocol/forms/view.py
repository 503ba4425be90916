"""A form as a client draws it: every item with its parts, its answer, what it lacks and where it stands; pure.

Made from the definition and the document's text, so that no client reads Markdown for what it means (UX 8).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, assert_never

from msgspec import Struct
from msgspec.structs import replace

from promptside_protocol.forms.checklist import GROUPS
from promptside_protocol.forms.document import (
    CheckItem,
    ChecklistDefinition,
    Choice,
    Definition,
    Field,
    FieldsAnswers,
    FieldsDefinition,
    Option,
    OptionsDefinition,
    Parsed,
    Question,
    QuestionsDefinition,
    TextDefinition,
)
from promptside_protocol.forms.draft import difference
from promptside_protocol.forms.escape import one_line
from promptside_protocol.forms.fields import field_values
from promptside_protocol.forms.form import kind_of, lacks, parse, render, shown, to_plain, without_notes
from promptside_protocol.forms.grammar import Page, Section
from promptside_protocol.views import Offer


class FormChoice(Struct, frozen=True, kw_only=True):
    """A choice of a question or a field; `id` is what an answer names it by."""

    id: str
    title: str
    description: str = ""
    recommended: bool = False


class FormItem(Struct, frozen=True, kw_only=True):
    """An item: an option, a point of a checklist, a field or a question; what its kind hasn't is empty."""

    id: str
    line: int
    """Where it stands in the document, from 1; 0 where it was deleted."""
    title: str
    body: str = ""
    """Its text as it stands in the document, as Markdown, without title and answer; of a field its value."""
    answer: Any = None
    """Option: true or false. Point: `{ticked, note}`. Field: its value. Question: a text, or a list of ids, of paths,
    and for an answer of one's own of `{other: text}`. None is no answer."""
    lacks: str = ""
    """What is still wanted here, in a sentence."""
    problem: str = ""
    """What can't be read here, or was changed elsewhere, in a sentence."""
    group: str = ""
    """The heading that it stands under: a checklist's severity in words, a question's topic."""
    required: bool = False
    recommended: bool = False
    pros: tuple[str, ...] = ()
    cons: tuple[str, ...] = ()
    severity: Literal["", "critical", "warning", "info"] = ""
    path: str = ""
    """The place in the source that a point is about, relative to the project."""
    path_line: int | None = None
    input: Literal[
        "", "line", "text", "one", "any", "bullets", "json", "long_text", "files", "code", "yes_no"
    ] = ""
    """How a field or a question is answered."""
    choices: tuple[FormChoice, ...] = ()
    other: bool = False
    """Whether an answer of one's own is taken."""
    lang: str = ""


class FormNote(Struct, frozen=True, kw_only=True):
    """A note to the agent in the document; `item` is empty where it belongs to all of it."""

    line: int
    item: str
    text: str


class FormProblem(Struct, frozen=True, kw_only=True):
    """A diagnostic of the document; lines count from 1."""

    line: int
    severity: Literal["error", "warning", "information", "hint"]
    code: str
    text: str
    item: str = ""


class FormSuggestion(Struct, frozen=True, kw_only=True):
    """Several answers at once, for a button: nothing is sent or approved with them."""

    title: str
    answers: dict[str, Any]


class FormView(Struct, frozen=True, kw_only=True):
    """A form document with everything that is needed to draw it."""

    project: str
    task: int
    document: str
    """Path, relative to the project."""
    uri: str
    stage: str
    attempt: int
    version: int
    """The draft's, on which an answer is based."""
    kind: Literal["text", "options", "checklist", "fields", "questions"]
    title: str
    sentence: str
    """What to do."""
    waits: bool
    """Whether the task waits with this document now; else it is to be read."""
    items: tuple[FormItem, ...] = ()
    least: int = 0
    """How many options the gate takes, from this …"""
    most: int = 0
    """… to this."""
    round: int = 0
    """Of questions."""
    notes: tuple[FormNote, ...] = ()
    problems: tuple[FormProblem, ...] = ()
    lacks: tuple[str, ...] = ()
    """What stands between this and an approval, in sentences."""
    satisfied: bool = False
    shown: str = ""
    """The hash of all this, for the order that approves or sends it."""
    text: str = ""
    """The whole document."""
    body: str = ""
    """Of a text: its Markdown without the frame."""
    edited: bool = False
    """Whether a person has changed what the agent wrote, beside answering."""
    original: str = ""
    """Where that is so: the document with the agent's own words."""
    difference: str = ""
    """… and what differs, as a unified difference."""
    offers: tuple[Offer, ...] = ()
    """What can be done: of the document, and of items by `place`."""
    suggestions: tuple[FormSuggestion, ...] = ()


class FormPlace(Struct, frozen=True, kw_only=True):
    """What a form does not know of itself."""

    project: str
    document: str
    uri: str
    version: int
    waits: bool
    original: str = ""
    """Of a text: what the agent handed over, where it is known to differ."""
    elsewhere: dict[str, str] = {}
    """By item, what others did to it; empty for the document."""
    offers: tuple[Offer, ...] = ()


def form_view(definition: Definition, text: str, place: FormPlace) -> FormView:
    """The form as this text has it."""
    parsed = parse(definition, text)
    kind = kind_of(definition)
    page = Page(text)
    sections = kind.read(definition, page).found if page.conflict is None else {}
    lines = {ref: section.start + 1 for ref, section in sections.items()}
    lacking = lacks(definition, parsed.answers)
    original = _original(definition, text, place, parsed)
    said = {lack.ref: lack.text for lack in lacking}
    errors = [problem for problem in reversed(parsed.problems) if problem.severity == "error"]
    broken = {problem.ref or _item_at(sections, problem.line - 1): problem.text for problem in errors}
    items = tuple(
        replace(
            item,
            line=lines.get(item.id, 0),
            lacks=said.get(item.id, ""),
            problem=broken.get(item.id) or place.elsewhere.get(item.id, ""),
        )
        for item in _items(definition, parsed)
    )
    problems = [
        FormProblem(line=p.line, severity=p.severity, code=p.code, text=p.text, item=p.ref)
        for p in parsed.problems
    ]
    problems += [
        FormProblem(line=lines.get(ref, 1), severity="warning", code="form-elsewhere", text=words, item=ref)
        for ref, words in place.elsewhere.items()
    ]
    return FormView(
        project=place.project,
        task=definition.task,
        document=place.document,
        uri=place.uri,
        stage=definition.stage,
        attempt=definition.attempt,
        version=place.version,
        kind=_kind(definition),
        title=definition.title,
        sentence=kind.sentence(definition),
        waits=place.waits,
        items=items,
        least=definition.min if isinstance(definition, OptionsDefinition) else 0,
        most=definition.max if isinstance(definition, OptionsDefinition) else 0,
        round=definition.round if isinstance(definition, QuestionsDefinition) else 0,
        notes=tuple(FormNote(line=note.line, item=note.ref, text=note.text) for note in parsed.notes),
        problems=tuple(problems),
        lacks=tuple(lack.text for lack in lacking),
        satisfied=not lacking and not parsed.notes and not any(p.severity == "error" for p in problems),
        shown=shown(definition, text),
        text=text,
        body=parsed.bodies.get("", "") if isinstance(definition, TextDefinition) else "",
        edited=bool(original),
        original=original,
        difference=difference(definition, original, text) if original else "",
        offers=place.offers,
        suggestions=tuple(_suggestions(definition, to_plain(parsed.answers))) if place.waits else (),
    )


def full_answer(definition: Definition, text: str, ref: str, value: Any) -> dict[str, Any]:
    """The answers that answering one item means: what a client leaves out of a value stays as it is.

    Of options that exclude each other the selected one takes the place of the others; None takes an answer away.
    """
    given = to_plain(parse(definition, text).answers)
    match definition:
        case OptionsDefinition(options=options, max=most):
            others = {o.id: False for o in options if value and most == 1 and o.id != ref and given.get(o.id)}
            return {**others, ref: False if value is None else value}
        case ChecklistDefinition():
            now = given.get(ref) or {"ticked": False, "note": ""}
            if value is None:
                return {ref: {"ticked": False, "note": ""}}
            return {ref: {**now, **value} if isinstance(value, dict) else value}
        case QuestionsDefinition(items=items) if value is None:
            texts = ("text", "long_text", "code")
            return {ref: next(("" if q.kind in texts else [] for q in items if q.id == ref), "")}
        case _:
            return {ref: value}


def _kind(definition: Definition) -> Literal["text", "options", "checklist", "fields", "questions"]:
    match definition:
        case TextDefinition():
            return "text"
        case OptionsDefinition():
            return "options"
        case ChecklistDefinition():
            return "checklist"
        case FieldsDefinition():
            return "fields"
        case QuestionsDefinition():
            return "questions"
    assert_never(definition)


def _item_at(sections: Mapping[str, Section], line: int) -> str:
    """The item that a line (from 0) belongs to; empty for the document."""
    return next((s.ref for s in sections.values() if s.start <= line < s.end), "")


def _items(definition: Definition, parsed: Parsed) -> list[FormItem]:
    given, bodies = to_plain(parsed.answers), parsed.bodies
    match definition:
        case TextDefinition():
            return []
        case OptionsDefinition(options=options):
            agents = parse(definition, render(definition)).bodies
            return [_option(o, given, bodies.get(o.id), agents[o.id]) for o in options]
        case ChecklistDefinition(items=points):
            return [_point(p, given, bodies, required=definition.required) for p in points]
        case FieldsDefinition(fields=fields):
            assert isinstance(parsed.answers, FieldsAnswers), "answers are of the kind of their definition"
            values = field_values(definition, parsed.answers)
            return [_field(f, values[f.key], bodies) for f in fields]
        case QuestionsDefinition(items=asked):
            return [_question(q, given) for q in asked]
    assert_never(definition)


def _option(option: Option, given: dict[str, Any], there: str | None, agents: str) -> FormItem:
    """The agent's parts while its words stand there; else the person's text, whole."""
    title, _, body = (agents if there is None else there).partition("\n")
    agents_own = there in (None, agents)
    return FormItem(
        id=option.id,
        line=0,
        title=_title(title, option.id) or one_line(option.title),
        body=option.description if agents_own else body.strip(),
        answer=bool(given.get(option.id)),
        recommended=option.recommended,
        pros=option.pros if agents_own else (),
        cons=option.cons if agents_own else (),
    )


def _point(point: CheckItem, given: dict[str, Any], bodies: dict[str, str], *, required: bool) -> FormItem:
    return FormItem(
        id=point.id,
        line=0,
        title=one_line(point.title),
        body=bodies[point.id].partition("\n")[2].strip() if point.id in bodies else point.detail,
        answer=given.get(point.id) or {"ticked": False, "note": ""},
        group=GROUPS[point.severity],
        required=required,
        severity=point.severity,
        path=point.path,
        path_line=point.line,
    )


def _field(field: Field, value: Any, bodies: dict[str, str]) -> FormItem:
    inputs: dict[str, Any] = {"enum": "one", "boolean": "yes_no"}
    choices = tuple(FormChoice(id=choice, title=one_line(choice)) for choice in field.choices)
    return FormItem(
        id=field.key,
        line=0,
        title=field.label,
        body=bodies.get(field.key, ""),
        answer=value,
        required=field.required,
        input=inputs.get(field.widget, field.widget),
        choices=choices,
    )


def _question(question: Question, given: dict[str, Any]) -> FormItem:
    title, _, body = question.text.strip().partition("\n")
    return FormItem(
        id=question.id,
        line=0,
        title=one_line(title),
        body=body.strip(),
        answer=given.get(question.id),
        group=one_line(question.header),
        required=question.required,
        input=question.kind,
        choices=tuple(_choice(choice) for choice in question.options),
        other=question.other,
        lang=question.lang,
    )


def _choice(choice: Choice) -> FormChoice:
    return FormChoice(
        id=choice.id,
        title=one_line(choice.title),
        description=choice.description,
        recommended=choice.recommended,
    )


def _title(heading: str, ref: str) -> str:
    """A heading without its id, and without the mark that a recommendation is."""
    title = heading.removeprefix(ref).lstrip(" ·:.-–—").strip()
    return title[: -len("(recommended)")].rstrip() if title.lower().endswith("(recommended)") else title


def _original(definition: Definition, text: str, place: FormPlace, parsed: Parsed) -> str:
    """The document in the agent's words, where a person has changed them; else empty."""
    if isinstance(definition, TextDefinition):
        return place.original
    original = render(definition, parsed.answers)
    same = shown(definition, without_notes(text)) == shown(definition, original)
    return "" if same or parsed.unread else original


def _suggestions(definition: Definition, given: dict[str, Any]) -> list[FormSuggestion]:
    match definition:
        case QuestionsDefinition(items=asked):
            best = {q.id: [o.id for o in q.options if o.recommended] for q in asked if q.id not in given}
            kinds = {q.id: q.kind for q in asked}
            answers: dict[str, Any] = {
                ref: ids if kinds[ref] == "any" else ids[:1] for ref, ids in best.items() if ids
            }
            return [FormSuggestion(title="Tick the recommended", answers=answers)] if answers else []
        case ChecklistDefinition(items=points):
            infos = {
                p.id: {"ticked": True, "note": (given.get(p.id) or {}).get("note", "")}
                for p in points
                if p.severity == "info" and not (given.get(p.id) or {}).get("ticked")
            }
            return [FormSuggestion(title="Tick all infos", answers=infos)] if infos else []
        case _:
            return []
