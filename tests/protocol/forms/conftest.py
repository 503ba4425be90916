"""Forms for every kind, as Hypothesis draws them: the agent's texts are made of what tokens are made of."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from promptside_protocol import forms

PIECES = (
    "- [x] Select A", "- [ ] Select B", "* [X] **C1** x", "- [] x", "-[x] y", "[x]", "[ ] z", "- [y] q", "[a](b)",
    "# A", "## A · x", "## B · y", "### T1 · z", "## Q1 · a", "## Title", "## Title (required)", "## Risks", "#", "##",
    "```", "````sql", "~~~", "``` a`b", "   ```", "    ```", "```json", "> > x", ">> note", "  >> note", ">>> x", ">",
    "Answer:", "Answer: x", "Files:", "- Note: x", "  - Note:", "Note:", "- [x] Other: me", "Other:", "- Yes", "- [x] No",
    "<!-- promptside 12/s#1 options -->", "<!-- promptside 9/z#7 text 3 -->", "<!--promptside", "<<<<<<< HEAD",
    "=======", ">>>>>>> theirs", "\\", "\\## A · x", "\\```", "\\\\>> x", "\\Answer:", "&#58;", "`", "``", "*", "+ 5",
    "\n", "\n\n", "\n\n\n", "\r\n", "\r", "\t", "    ", "  ", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\x00",
    "\u202e", "\u2066", "\u00a0", "\ufeff", "\ud83d", "é", "字", "word", "two words", "src/a b.ts", "{", "}", "1.", "(required)",
    "(recommended)", "**For**", "A", "B ·", "·", "—", "---", "===", "|", "<b>", "</b>",
)  # fmt: skip

texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=9).flatmap(
    lambda parts: st.sampled_from(("", "\n", " ")).map(lambda glue: glue.join(parts))
)
plain_texts = texts.map(lambda text: text.replace("\ud83d", "?"))
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


@pytest.fixture(scope="session")
def unused() -> None:
    """Nothing."""
