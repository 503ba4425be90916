"""Documents of kind questions: one round of what the agent asks (UX 2.7, CW-4)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol

from promptside_protocol.forms.choices import OTHER, choice_text, choose, chosen, chosen_reply, too_many
from promptside_protocol.forms.document import (
    Choice,
    Chosen,
    FormError,
    Lack,
    Problem,
    Question,
    QuestionKind,
    QuestionsAnswers,
    QuestionsDefinition,
    Reply,
)
from promptside_protocol.forms.escape import (
    block,
    clean,
    encode,
    fenced,
    indented,
    lines_kept,
    normal,
    one_line,
    unfenced,
)
from promptside_protocol.forms.grammar import (
    ANSWER,
    BLANKS,
    BULLET,
    Page,
    Section,
    Sections,
    broken_ticks,
    is_heading,
    missing,
    opened_by_id,
    prose,
    sections,
)
from promptside_protocol.forms.kind import Edit, Kind, Reading, error, unknown
from promptside_protocol.forms.slot import free_text, replaced, tick_line, ticks
from promptside_protocol.views import OptionView

LEVEL = 2
_TITLE: Final = 80
"""A longer question is cut in its heading, where lenses stand, and written out below."""
_CHOICES: Final = frozenset({"one", "any", "yes_no"})
_HINTS: Final[dict[QuestionKind, str]] = {
    "one": "choose one",
    "any": "choose any",
    "text": "text",
    "long_text": "long text",
    "files": "files",
    "code": "code",
    "yes_no": "yes or no",
}
_YES_NO: Final = (Choice(id="Yes", title="Yes"), Choice(id="No", title="No"))
_LANG: Final = re.compile(r"[^\w+#.-]")


class Asked(Protocol):
    """What a question document needs to know of a decision."""

    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def header(self) -> str: ...
    @property
    def options(self) -> Sequence[OptionView]: ...
    @property
    def other(self) -> bool: ...
    @property
    def required(self) -> bool: ...
    @property
    def priority(self) -> int: ...


def questions(
    *,
    task: int,
    stage: str,
    title: str,
    attempt: int,
    round: int,  # noqa: A002  # the word of the grammar
    decisions: Iterable[Asked],
) -> QuestionsDefinition:
    """The document of a round: by priority, and by topic within it; permissions are no part of it."""
    items = [_question(decision) for decision in decisions if decision.kind in _HINTS]
    topics = list(dict.fromkeys(item.header for item in items))
    items.sort(key=lambda item: (item.priority, item.header != "", topics.index(item.header)))
    return QuestionsDefinition(
        task=task, stage=stage, attempt=attempt, title=f"Questions: {title}", round=round, items=tuple(items)
    )


def _question(decision: Asked) -> Question:
    kind: QuestionKind = next(kind for kind in _HINTS if kind == decision.kind)
    options = tuple(
        Choice(id=o.id, title=o.title, description=o.description, recommended=o.recommended)
        for o in decision.options
    )
    return Question(
        id=decision.id,
        kind=kind,
        text=decision.text,
        header=decision.header,
        options=options or (_YES_NO if kind == "yes_no" else ()),
        other=decision.other,
        required=decision.required,
        priority=decision.priority,
    )


# --- writing ------------------------------------------------------------------------------------------


def _sentence(definition: QuestionsDefinition) -> str:
    count = len(definition.items)
    required = sum(item.required for item in definition.items)
    answers = "1 answer" if count == 1 else f"{count} answers"
    if count == 1:
        part = ", which is required" if required else ""
    else:
        part = f", {required or 'none'} of them required" if required < count else ", all of them required"
    return f"The agent waits for {answers}{part}. Tick or type, then send."


def _render(definition: QuestionsDefinition) -> list[str]:
    lines: list[str] = []
    grouped = len({item.header for item in definition.items}) > 1
    topic = ""
    for item in definition.items:
        if grouped and item.header != topic:
            topic = item.header
            lines += [f"# {one_line(topic) or 'Other questions'}", ""]
        title, text = _title_and_text(item)
        lines += [f"## {item.id} · {title} ({_hint(item)})", ""]
        lines += [*text, ""] if text else []
        lines += [*_slot_lines(item), ""]
    return lines


def _title_and_text(item: Question) -> tuple[str, list[str]]:
    """The question's first line as its heading, and the rest; all of it below where the heading is cut."""
    text = clean(item.text).strip()
    first, _, rest = text.partition("\n")
    title = one_line(first)
    if len(title) <= _TITLE:
        return title, block(rest, LEVEL)
    return f"{title[:_TITLE].rsplit(' ', 1)[0].rstrip('.,;: ')}…", block(text, LEVEL)


def _hint(item: Question) -> str:
    hint = f"code: {_lang(item)}" if item.kind == "code" and _lang(item) else _HINTS[item.kind]
    return f"{hint}, required" if item.required else hint


def _lang(item: Question) -> str:
    return _LANG.sub("", item.lang)


def _slot_lines(item: Question) -> list[str]:
    if item.kind in _CHOICES:
        lines: list[str] = []
        for choice in item.options:
            lines += [
                tick_line(choice_text(item, choice)),
                *indented(block(choice.description, LEVEL), "  "),
            ]
        return [*lines, tick_line(OTHER)] if item.other else lines
    return _text_lines(item, ()) if item.kind == "files" else _text_lines(item, "")


def _text_lines(item: Question, value: Reply) -> list[str]:
    """The place of a typed answer, with the answer in it."""
    if item.kind == "files":
        paths = value if isinstance(value, tuple) else ()
        return ["Files:", *(f"- {path}" for path in paths), "-"]
    text = value if isinstance(value, str) else ""
    if item.kind == "code":
        return ["Answer:", *fenced(text, _lang(item))]
    return ["Answer:", *encode(text, _ends_item)]


def _ends_item(line: str) -> bool:
    return is_heading(line, LEVEL)


def _write(definition: QuestionsDefinition, page: Page, answers: QuestionsAnswers) -> list[Edit]:
    found = _sections(definition, page).found
    edits: list[Edit] = []
    for item in definition.items:
        section = found.get(item.id)
        if section is None:
            continue
        wanted = answers.values.get(item.id)
        if item.kind in _CHOICES:
            edits += choose(item, page, section, wanted if isinstance(wanted, Chosen) else Chosen())
        elif _typed(item, page, section) != (wanted or _nothing(item)):
            at = _answer_line(page, section)
            lines = [*_text_lines(item, wanted or _nothing(item)), ""]
            edits.append(replaced(page, section.end if at is None else at, section.end, lines))
    return edits


# --- reading ------------------------------------------------------------------------------------------


def _read(definition: QuestionsDefinition, page: Page) -> Reading[QuestionsAnswers]:
    cut = _sections(definition, page)
    problems: list[Problem] = [
        *cut.problems,
        *missing(page, {item.id: item.id for item in definition.items}, cut.found, _opens(definition)),
    ]
    values: dict[str, Reply] = {}
    bodies: dict[str, str] = {}
    for item in definition.items:
        section = cut.found.get(item.id)
        if section is None:
            continue
        at = _answer_line(page, section) if item.kind not in _CHOICES else None
        end = section.end if at is None else at
        problems += broken_ticks(page.tokens(section.start + 1, end))
        value: Reply
        if item.kind in _CHOICES:
            value, faults = chosen(item, page, section)
            problems += faults
            given = value != Chosen()
        else:
            value = _typed(item, page, section)
            given = bool(value)
            if at is None:
                word = "Files:" if item.kind == "files" else "Answer:"
                text = f'{item.id}: the line "{word}" is missing.'
                problems.append(error(section.start, "slot", text, item.id))
        if given:
            values[item.id] = value
        slots = frozenset(t.at for t in ticks(page, section.start + 1, end))
        bodies[item.id] = prose(page, section.start + 1, end, slots)
    answers = QuestionsAnswers(values=values)
    return Reading(answers=answers, found=cut.found, problems=tuple(problems), bodies=bodies)


def _opens(definition: QuestionsDefinition) -> Callable[[str], str | None]:
    return opened_by_id({item.id for item in definition.items}, LEVEL)


def _sections(definition: QuestionsDefinition, page: Page) -> Sections:
    return sections(page, _opens(definition), _ends_item, lambda ref: ref)


def _answer_line(page: Page, section: Section) -> int | None:
    return next((at for at, line in page.tokens(section.start + 1, section.end) if ANSWER.match(line)), None)


def _nothing(item: Question) -> Reply:
    return () if item.kind == "files" else ""


def _typed(item: Question, page: Page, section: Section) -> Reply:
    at = _answer_line(page, section)
    if at is None:
        return _nothing(item)
    first = page.lines[at].partition(":")[2].strip(BLANKS)
    if item.kind == "files":
        return _paths([first, *(line for _, line in page.rows(at + 1, section.end))])
    if item.kind == "code":
        lines = [first, *(line for _, line in page.rows(at + 1, section.end))]
        inner = unfenced(lines_kept("\n".join(lines)).split("\n"))
        if inner is not None:
            return lines_kept(inner)
    return free_text(page, at + 1, section.end, _ends_item, first)


def _paths(lines: Iterable[str]) -> tuple[str, ...]:
    paths: dict[str, None] = {}
    for line in lines:
        bullet = BULLET.match(line)
        paths[_path((bullet[2] or "") if bullet else line)] = None
    return tuple(path for path in paths if path)


def _path(text: str) -> str:
    return text.strip(" \t`")


# --- gate and plain data ------------------------------------------------------------------------------


def _lacks(definition: QuestionsDefinition, answers: QuestionsAnswers) -> list[Lack]:
    found: list[Lack] = []
    for item in definition.items:
        value = answers.values.get(item.id)
        if isinstance(value, Chosen):
            count = len(value.ids) + bool(value.other)
            if count > 1 and item.kind != "any":
                found.append(Lack(ref=item.id, text=too_many(item, count)))
            empty = count == 0
        else:
            empty = not value
        if empty and item.required:
            found.append(Lack(ref=item.id, text=f"{item.id} is required and still empty."))
    return found


def _from_plain(definition: QuestionsDefinition, plain: dict[str, Any]) -> QuestionsAnswers:
    items = {item.id: item for item in definition.items}
    values: dict[str, Reply] = {}
    for ref, value in plain.items():
        if ref not in items:
            raise unknown("question", ref, list(items))
        reply = _reply(items[ref], value)
        if reply not in (Chosen(), "", ()):
            values[ref] = reply
    return QuestionsAnswers(values={ref: values[ref] for ref in items if ref in values})


def _reply(item: Question, value: Any) -> Reply:
    if item.kind in _CHOICES:
        return chosen_reply(item, value)
    if item.kind == "files":
        parts = list(value) if isinstance(value, list | tuple) else [value] if value in ("", None) else None
        if parts is None or not all(isinstance(p, str) or p is None for p in parts):
            raise FormError(f"{item.id} takes a list of paths.")
        if any("\n" in clean(p or "") for p in parts):
            raise FormError(f"{item.id}: a path is one line.")
        return tuple(dict.fromkeys(path for path in (_path(clean(p or "")) for p in parts) if path))
    if value is None:
        return ""
    if not isinstance(value, str):
        raise FormError(f"{item.id} takes a text.")
    return lines_kept(value) if item.kind == "code" else normal(value)


def _to_plain(answers: QuestionsAnswers) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for ref, value in answers.values.items():
        match value:
            case Chosen(ids=ids, other=other):
                plain[ref] = [*ids, *([{"other": other}] if other else [])]
            case str():
                plain[ref] = value
            case _:
                plain[ref] = list(value)
    return plain


def _words(definition: QuestionsDefinition, _bodies: dict[str, str], answers: QuestionsAnswers) -> str:
    parts: list[str] = []
    for item in definition.items:
        value = answers.values.get(item.id)
        asked = " ".join(clean(item.text).split())
        parts.append(f"{item.id} · {asked}\nAnswer: {_reply_words(item, value)}")
    return "\n\n".join(parts)


def _reply_words(item: Question, value: Reply | None) -> str:
    if isinstance(value, Chosen):
        titles = {o.id: o.title for o in item.options}
        return ", ".join([*(titles[ref] for ref in value.ids), *([value.other] if value.other else [])])
    if isinstance(value, str):
        return value
    return ", ".join(value) if value else "(not answered)"


KIND: Kind[QuestionsDefinition, QuestionsAnswers] = Kind(
    name="questions",
    sentence=_sentence,
    number=lambda definition: definition.round,
    ids=lambda definition: [item.id for item in definition.items],
    render=_render,
    read=_read,
    write=_write,
    lacks=_lacks,
    from_plain=_from_plain,
    to_plain=_to_plain,
    words=_words,
)
