"""UX 8: a form as it is drawn is made of the definition and of what stands in the document, whatever that is."""

from typing import Any

import pytest

from promptside_protocol import forms
from promptside_protocol.forms import (
    CheckItem,
    ChecklistDefinition,
    Choice,
    Field,
    FieldsDefinition,
    FormPlace,
    Option,
    OptionsDefinition,
    Question,
    QuestionsDefinition,
    form_view,
    full_answer,
)

FRAME: dict[str, Any] = {"task": 12, "stage": "s", "attempt": 1, "title": "T"}
PLACE = FormPlace(project="/p", document="d.md", uri="file:///p/d.md", version=3, waits=True)
OPTIONS = OptionsDefinition(
    **FRAME,
    options=(
        Option(
            id="A",
            title="Cookies",
            description="A table.",
            pros=("Simple",),
            cons=("Slow",),
            recommended=True,
        ),
        Option(id="B", title="Tokens"),
    ),
)
CHECKLIST = ChecklistDefinition(
    **FRAME,
    items=(
        CheckItem(id="C1", severity="critical", title="No limit", detail="Why.", path="a.py", line=4),
        CheckItem(id="I1", severity="info", title="A name"),
    ),
)
FIELDS = FieldsDefinition(
    **FRAME,
    fields=(
        Field(key="title", label="Title", widget="line", required=True, value="Add it"),
        Field(key="breaking", label="Breaking", widget="boolean", value=False),
        Field(key="size", label="Size", widget="enum", choices=("small", "large"), required=True),
    ),
)
QUESTIONS = QuestionsDefinition(
    **FRAME,
    round=2,
    items=(
        Question(
            id="Q7",
            kind="one",
            text="Which?\nThere are two.",
            header="Login",
            options=(Choice(id="A", title="This", recommended=True), Choice(id="B", title="That")),
            other=True,
        ),
        Question(id="Q8", kind="files", text="Where?", required=False),
    ),
)


def of(definition: forms.Definition, **given: Any) -> forms.FormView:
    answers = forms.from_plain(definition, given)
    return form_view(definition, forms.render(definition, answers), PLACE)


def test_options_have_their_parts_and_a_persons_text_in_the_place_of_them() -> None:
    view = of(OPTIONS, A=True)
    first, second = view.items
    assert (first.title, first.body, first.pros, first.cons) == (
        "Cookies",
        "A table.",
        ("Simple",),
        ("Slow",),
    )
    assert (first.answer, first.recommended, second.answer, second.recommended) == (True, True, False, False)
    assert (view.satisfied, view.edited, view.least, view.most, view.kind) == (True, False, 1, 1, "options")
    text = view.text.replace("A table.", "A table, and an index.").replace("· Cookies", "· Good cookies")
    view = form_view(OPTIONS, text, PLACE)
    first = view.items[0]
    assert first.title == "Good cookies"
    assert first.body.startswith("A table, and an index.\n\n**For**")
    assert (first.pros, first.cons) == ((), ())
    assert view.edited
    assert "+A table, and an index." in view.difference
    assert "A table.\n" in view.original
    assert "[x] Select A" in view.original, "an answer is no edit"


def test_a_deleted_item_is_there_without_a_line_and_a_broken_one_says_so() -> None:
    text = forms.render(CHECKLIST)
    gone = form_view(CHECKLIST, text.replace("- [ ] **I1** A name\n  - Note:\n", ""), PLACE)
    assert [(item.id, item.line > 0) for item in gone.items] == [("C1", True), ("I1", False)]
    broken = form_view(CHECKLIST, text.replace("[ ] **C1**", "[y] **C1**"), PLACE)
    assert broken.items[0].problem
    assert not broken.items[1].problem
    assert not broken.satisfied
    conflict = form_view(CHECKLIST, f"<<<<<<< ours\n{text}", PLACE)
    assert conflict.problems[0].severity == "error"
    assert [item.line for item in conflict.items] == [0, 0]


def test_points_fields_and_questions_are_drawn_whole() -> None:
    view = of(CHECKLIST, C1={"ticked": True, "note": "done"})
    first = view.items[0]
    assert (first.group, first.path, first.path_line, first.body) == ("Critical", "a.py", 4, "Why.")
    assert (first.answer, first.lacks) == ({"ticked": True, "note": "done"}, "")
    assert view.items[1].lacks == view.lacks[0] == "I1 is not ticked."
    assert view.suggestions[0].answers == {"I1": {"ticked": True, "note": ""}}
    view = of(FIELDS)
    assert [(i.id, i.input, i.answer, i.lacks) for i in view.items] == [
        ("title", "line", "Add it", ""),
        ("breaking", "yes_no", False, ""),
        ("size", "one", None, "Size is required and still empty."),
    ]
    assert [choice.id for choice in view.items[2].choices] == ["small", "large"]
    assert not of(FIELDS, title="Mine", size="large").edited, "an answer is no edit"
    view = of(QUESTIONS, Q8=["a.py"])
    first, second = view.items
    assert (first.title, first.body, first.group, first.input, first.other) == (
        "Which?",
        "There are two.",
        "Login",
        "one",
        True,
    )
    assert (second.answer, second.required, view.round) == (["a.py"], False, 2)
    assert view.suggestions[0].answers == {"Q7": ["A"]}
    assert view.lacks == ("Q7 is required and still empty.",)


def test_what_others_did_stands_at_its_item() -> None:
    place = FormPlace(
        **{f: getattr(PLACE, f) for f in ("project", "document", "uri", "version", "waits")},
        elsewhere={"C1": "C1 was ticked."},
    )
    view = form_view(CHECKLIST, forms.render(CHECKLIST), place)
    assert view.items[0].problem == "C1 was ticked."
    assert ("form-elsewhere", "C1") in {(p.code, p.item) for p in view.problems}


@pytest.mark.parametrize(
    ("definition", "given", "ref", "value", "answers"),
    [
        (OPTIONS, {"A": True}, "B", True, {"A": False, "B": True}),
        (OPTIONS, {"A": True}, "B", False, {"B": False}),
        (OPTIONS, {"A": True}, "A", None, {"A": False}),
        (
            CHECKLIST,
            {"C1": {"ticked": True, "note": "x"}},
            "C1",
            {"note": "y"},
            {"C1": {"ticked": True, "note": "y"}},
        ),
        (CHECKLIST, {"C1": {"ticked": True, "note": "x"}}, "C1", None, {"C1": {"ticked": False, "note": ""}}),
        (QUESTIONS, {"Q7": ["A"]}, "Q7", None, {"Q7": []}),
        (QUESTIONS, {}, "Q7", [{"other": "none"}], {"Q7": [{"other": "none"}]}),
        (FIELDS, {}, "title", None, {"title": None}),
    ],
)
def test_answering_one_item(
    definition: forms.Definition, given: dict[str, Any], ref: str, value: Any, answers: dict[str, Any]
) -> None:
    text = forms.render(definition, forms.from_plain(definition, given))
    assert full_answer(definition, text, ref, value) == answers
    forms.from_plain(definition, {**forms.to_plain(forms.parse(definition, text).answers), **answers})
