"""Rules that hold for every form, answer and text (UX 2.2); the agent's texts are made of tokens."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from promptside_protocol import forms

PIECES = (
    "- [x] Select A", "- [ ] Select B", "* [X] **C1** x", "- [] x", "-[x] y", "[x]", "[ ] z", "- [y] q",
    "[a](b)", "# A", "## A · x", "## B · y", "### T1 · z", "## Q1 · a", "## Title", "## Title (required)",
    "## Risks", "#", "##", "```", "````sql", "~~~", "``` a`b", "   ```", "    ```", "```json", "> > x",
    ">> note", "  >> note", ">>> x", ">", "Answer:", "Answer: x", "Files:", "- Note: x", "  - Note:", "Note:",
    "- [x] Other: me", "Other:", "- Yes", "- [x] No", "<!-- promptside 12/s#1 options -->",
    "<!-- promptside 9/z#7 text 3 -->", "<!--promptside", "<<<<<<< HEAD", "=======", ">>>>>>> theirs", "\\",
    "\\## A · x", "\\```", "\\\\>> x", "\\Answer:", "&#58;", "`", "``", "*", "+ 5", "\n", "\n\n", "\n\n\n",
    "\r\n", "\r", "\t", "    ", "  ", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\x00", "\u202e",
    "\u2066", "\u00a0", "\ufeff", "\ud83d", "é", "字", "word", "two words", "src/a b.ts", "{", "}", "1.",
    "(required)", "(recommended)", "**For**", "A", "B ·", "·", "—", "---", "===", "|", "<b>", "</b>",
)  # fmt: skip

texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=9).flatmap(
    lambda parts: st.sampled_from(("", "\n", " ")).map(lambda glue: glue.join(parts))
)
frames: dict[str, Any] = {"task": 12, "stage": "s", "attempt": 1}


def text_forms() -> st.SearchStrategy[forms.Definition]:
    return st.builds(lambda title, body: forms.TextDefinition(**frames, title=title, body=body), texts, texts)


def options_forms() -> st.SearchStrategy[forms.Definition]:
    one = st.tuples(texts, texts, st.lists(texts, max_size=2), st.lists(texts, max_size=2), st.booleans())

    def build(title: str, drawn: list[Any], least: int, more: int) -> forms.Definition:
        options = tuple(
            forms.Option(
                id="ABC"[i],
                title=o[0],
                description=o[1],
                pros=tuple(o[2]),
                cons=tuple(o[3]),
                recommended=o[4],
            )
            for i, o in enumerate(drawn)
        )
        return forms.OptionsDefinition(
            **frames, title=title, options=options, min=least, max=min(len(options), least + more)
        )

    return st.builds(
        build, texts, st.lists(one, min_size=1, max_size=3), st.integers(0, 2), st.integers(0, 2)
    )


def checklist_forms() -> st.SearchStrategy[forms.Definition]:
    one = st.tuples(
        st.sampled_from(("critical", "warning", "info")), texts, texts, texts, st.none() | st.integers(1, 99)
    )

    def build(title: str, drawn: list[Any]) -> forms.Definition:
        payload = [
            {"severity": s, "title": t, "detail": d, "file": f, **({"line": n} if n else {})}
            for s, t, d, f, n in drawn
        ]
        return forms.definition_of(
            "checklist", {"items": payload}, **frames, title=title, gate="require_all_checked"
        )

    return st.builds(build, texts, st.lists(one, max_size=4))


words = ("one", "two words", "- [x] Yes", "Answer: x", "## Title")
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
FIELDS: tuple[tuple[str, str, tuple[str, ...], Any], ...] = (
    ("title", "line", (), texts | st.none()),
    ("text", "text", (), texts | st.none()),
    ("kind_of_change", "enum", words, st.sampled_from(words) | st.none()),
    ("breaking", "boolean", (), st.booleans() | st.none()),
    ("labels", "any", words, st.lists(st.sampled_from(words), max_size=3, unique=True) | st.none()),
    ("risks", "bullets", (), st.lists(texts, max_size=3) | st.none()),
    ("extra", "json", (), json_values),
)


def fields_forms() -> st.SearchStrategy[forms.Definition]:
    def build(title: str, drawn: tuple[Any, ...], required: list[bool]) -> forms.Definition:
        fields = tuple(
            forms.Field(
                key=key,
                label=forms.label_of(key),
                widget=widget,  # type: ignore[arg-type]  # the table's words are the widgets
                choices=choices,
                value=value,
                required=need,
            )
            for (key, widget, choices, _), value, need in zip(FIELDS, drawn, required, strict=True)
        )
        return forms.FieldsDefinition(**frames, title=title, fields=fields)

    needs = st.lists(st.booleans(), min_size=len(FIELDS), max_size=len(FIELDS))
    return st.builds(build, texts, st.tuples(*(f[3] for f in FIELDS)), needs)


def questions_forms() -> st.SearchStrategy[forms.Definition]:
    one = st.tuples(
        st.sampled_from(("one", "any", "text", "long_text", "files", "code", "yes_no")),
        texts,
        texts,
        st.lists(st.tuples(texts, texts, st.booleans()), min_size=1, max_size=3),
        st.booleans(),
        st.booleans(),
        st.sampled_from(("", "sql", "`x\n")),
    )

    def build(title: str, drawn: list[Any]) -> forms.Definition:
        items = tuple(
            forms.Question(
                id=f"Q{n + 1}",
                kind=kind,
                text=text,
                header=header,
                options=(forms.Choice(id="Yes", title="Yes"), forms.Choice(id="No", title="No"))
                if kind == "yes_no"
                else tuple(
                    forms.Choice(id="ABC"[i], title=t, description=d, recommended=r)
                    for i, (t, d, r) in enumerate(choices)
                ),
                other=other,
                required=required,
                lang=lang,
            )
            for n, (kind, text, header, choices, other, required, lang) in enumerate(drawn)
        )
        return forms.QuestionsDefinition(**frames, title=title, round=1, items=items)

    return st.builds(build, texts, st.lists(one, max_size=4))


def plain_answers(definition: forms.Definition) -> st.SearchStrategy[dict[str, Any]]:
    """Answers as a client may send them, to any part of the form."""
    match definition:
        case forms.TextDefinition():
            return st.just({})
        case forms.OptionsDefinition(options=options):
            return _some({o.id: st.booleans() for o in options})
        case forms.ChecklistDefinition(items=items):
            tick = st.fixed_dictionaries({"ticked": st.booleans(), "note": texts})
            return _some({item.id: tick for item in items})
        case forms.FieldsDefinition(fields=fields):
            values = {
                "line": texts.map(lambda text: " ".join(text.split("\n")).replace("\r", " ")) | st.none(),
                "text": texts | st.none(),
                "enum": st.sampled_from(("", *words)) | st.none(),
                "boolean": st.booleans() | st.none(),
                "any": st.lists(st.sampled_from(words), max_size=3),
                "bullets": st.lists(texts, max_size=3),
                "json": json_values,
            }
            return _some({f.key: values[f.widget] for f in fields})
        case forms.QuestionsDefinition(items=questions):
            return _some({q.id: _reply(q) for q in questions})


def _some(parts: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=parts)


def _reply(question: forms.Question) -> st.SearchStrategy[Any]:
    if question.kind == "files":
        return st.lists(texts.map(lambda text: text.replace("\n", "").replace("\r", "")), max_size=3)
    if question.kind in ("text", "long_text", "code"):
        return texts
    choices: st.SearchStrategy[Any] = st.sampled_from([o.id for o in question.options])
    if question.other:
        choices |= texts.map(lambda text: {"other": text})
    return st.lists(choices, max_size=3)


ALL = st.one_of(text_forms(), options_forms(), checklist_forms(), fields_forms(), questions_forms())


@st.composite
def answered(draw: st.DrawFn) -> tuple[forms.Definition, forms.Answers]:
    definition = draw(ALL)
    return definition, forms.from_plain(definition, draw(plain_answers(definition)))


MORE = settings(
    deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


COUNTS = re.compile(r"^(Q\d+|[A-Z][a-z ]+): \d are ticked, one is wanted|^\d are selected; this gate takes ")


def errors(parsed: forms.Parsed) -> list[str]:
    return [problem.text for problem in parsed.problems if problem.severity == "error"]


@MORE
@given(ALL)
def test_what_an_agent_writes_is_never_an_answer_a_note_or_a_fault(definition: forms.Definition) -> None:
    parsed = forms.parse(definition, forms.render(definition))
    assert forms.to_plain(parsed.answers) == {}
    assert parsed.notes == ()
    assert errors(parsed) == []
    assert not any(problem.severity == "warning" for problem in parsed.problems)


@MORE
@given(ALL)
def test_a_rendering_can_be_stored_and_has_no_other_line_ends(definition: forms.Definition) -> None:
    text = forms.render(definition)
    text.encode()
    assert "\x00" not in text
    assert "\r" not in text


@MORE
@given(answered())
def test_answers_come_back_as_they_were_given(drawn: tuple[forms.Definition, forms.Answers]) -> None:
    definition, answers = drawn
    text = forms.apply(definition, forms.render(definition), answers)
    assert forms.parse(definition, text).answers == answers
    assert forms.render(definition, answers) == text
    assert forms.from_plain(definition, forms.to_plain(answers)) == answers
    assert forms.parse(definition, text).notes == ()
    grammar = [fault for fault in errors(forms.parse(definition, text)) if not COUNTS.search(fault)]
    assert grammar == []


@MORE
@given(answered(), st.data())
def test_applying_again_changes_nothing_and_other_answers_take_their_place(
    drawn: tuple[forms.Definition, forms.Answers], data: st.DataObject
) -> None:
    definition, answers = drawn
    text = forms.render(definition, answers)
    assert forms.apply(definition, text, answers) == text
    others = forms.from_plain(definition, data.draw(plain_answers(definition)))
    changed = forms.apply(definition, text, others)
    assert forms.parse(definition, changed).answers == others


@MORE
@given(answered(), st.sampled_from("*+"))
def test_a_format_on_save_keeps_the_hash_and_the_answers(
    drawn: tuple[forms.Definition, forms.Answers], bullet: str
) -> None:
    definition, answers = drawn
    text = forms.render(definition, answers)
    saved = formatted(text, bullet)
    assert forms.shown(definition, saved) == forms.shown(definition, text)
    if isinstance(definition, forms.OptionsDefinition | forms.ChecklistDefinition):
        assert forms.parse(definition, saved).answers == answers


def formatted(text: str, bullet: str) -> str:
    """What an editor makes of a document on save; in code it only cuts blanks."""
    lines = []
    fence = ""
    for line in text.split("\n"):
        saved = line
        mark = re.match(r" {0,3}(`{3,}|~{3,})", line)
        if not fence and mark and not (mark[1][0] == "`" and "`" in line[mark.end() :]):
            fence = mark[1]
        elif fence and mark and mark[1].startswith(fence) and not line[mark.end() :].strip():
            fence = ""
        elif not fence:
            saved = re.sub(r"^([ \t]*)-(?= |$)", rf"\1{bullet}", line)
            saved = re.sub(r"^( {0,3}[*+] \[)x(?=\] \S)", r"\1X", saved)
        lines.append(f"{saved}  ")
    return "\r\n".join(lines) + "\r\n\r\n"


@MORE
@given(answered(), st.data())
def test_any_other_answer_is_another_hash(
    drawn: tuple[forms.Definition, forms.Answers], data: st.DataObject
) -> None:
    definition, answers = drawn
    others = forms.from_plain(definition, data.draw(plain_answers(definition)))
    assume(without_markers(forms.to_plain(answers)) != without_markers(forms.to_plain(others)))
    one, two = forms.render(definition, answers), forms.render(definition, others)
    assert forms.shown(definition, one) != forms.shown(definition, two)
    assert forms.difference(definition, one, two)


def without_markers(value: Any) -> Any:
    """Answers without what Markdown doesn't tell apart: the marker of a bullet."""
    if isinstance(value, dict):
        return {key: without_markers(part) for key, part in value.items()}
    if isinstance(value, list):
        return [without_markers(part) for part in value]
    return (
        re.sub(r"(?m)^([ \t]*)[-*+](?:[ \t]+|$)", r"\1- ", value)
        if isinstance(value, str)
        else (type(value), value)
    )


@MORE
@given(ALL, texts)
@example(forms.TextDefinition(**frames, title=""), "")
def test_any_text_can_be_read_compared_and_written(definition: forms.Definition, text: str) -> None:
    parsed = forms.parse(definition, text)
    assert forms.parse(definition, forms.apply(definition, text, parsed.answers)).answers == parsed.answers
    forms.shown(definition, text)
    forms.decision_text(definition, text, parsed.answers)
    assert all(1 <= problem.line <= len(re.split(r"\r\n|\r|\n", text)) for problem in parsed.problems)


@MORE
@given(answered(), st.data())
def test_a_document_cut_and_mixed_with_others_can_be_read(
    drawn: tuple[forms.Definition, forms.Answers], data: st.DataObject
) -> None:
    definition, answers = drawn
    lines = forms.render(definition, answers).split("\n")
    at = data.draw(st.integers(0, len(lines)))
    pieces = data.draw(st.lists(st.sampled_from(PIECES) | st.sampled_from(lines), max_size=3))
    text = "\n".join([*lines[:at], *pieces, *lines[at + data.draw(st.integers(0, 2)) :]])
    parsed = forms.parse(definition, text)
    assert forms.apply(definition, text, parsed.answers) == text
    assert forms.from_plain(definition, forms.to_plain(forms.edited(definition, answers, parsed)))
    forms.decision_text(definition, text, parsed.answers)
    assert forms.lacks(definition, parsed.answers) == forms.lacks(
        definition, forms.from_plain(definition, forms.to_plain(parsed.answers))
    )


@MORE
@given(answered())
def test_a_word_of_the_person_is_another_hash(drawn: tuple[forms.Definition, forms.Answers]) -> None:
    definition, answers = drawn
    text = forms.render(definition, answers)
    changed = text.replace("<!-- promptside", "and one more word\n\n<!-- promptside", 1)
    assert forms.shown(definition, changed) != forms.shown(definition, text)


@pytest.mark.parametrize(
    "line",
    [
        "```a",
        "~~~",
        "- [",
        "- [x] ",
        "## ",
        ">> ",
        "<!-- promptside ",
        "[" * 50,
        "#" * 7,
        "- " * 20,
        "Answer:",
        "\\```",
    ],
)
def test_a_long_hostile_document_is_read_to_its_end(line: str) -> None:
    definition = forms.QuestionsDefinition(
        **frames, title="T", round=1, items=(forms.Question(id="Q1", kind="text", text="x"),)
    )
    text = forms.render(definition).replace("Answer:", "Answer:\n" + f"{line}\n" * (1_000_000 // len(line)))
    forms.parse(definition, text)
    forms.shown(definition, text)
    wide = "## Q1 · x\n\nAnswer:\n" + line * (1_000_000 // len(line))
    parsed = forms.parse(definition, wide)
    forms.parse(definition, forms.apply(definition, forms.render(definition), parsed.answers))


def test_many_different_answers_are_read_to_their_end() -> None:
    definition = forms.QuestionsDefinition(
        **frames, title="T", round=1, items=(forms.Question(id="Q1", kind="files", text="x"),)
    )
    paths = [f"src/{n}.py" for n in range(100_000)]
    answers = forms.from_plain(definition, {"Q1": paths})
    assert forms.to_plain(forms.parse(definition, forms.render(definition, answers)).answers) == {"Q1": paths}
