"""Answers as plain data, what a gate lacks with them (ST-5), and how several people's answers come together."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from promptside_protocol import forms

FRAME: dict[str, Any] = {"task": 12, "stage": "s", "attempt": 1, "title": "S"}
CHOICES = (forms.Choice(id="A", title="a"), forms.Choice(id="B", title="b"))
REVIEW = forms.ChecklistDefinition(
    **FRAME,
    items=(
        forms.CheckItem(id="C1", severity="critical", title="a"),
        forms.CheckItem(id="W1", severity="warning", title="b"),
    ),
)
FIELDS = forms.FieldsDefinition(
    **FRAME,
    fields=(
        forms.Field(key="title", label="Title", widget="line", required=True, value="Add login"),
        forms.Field(key="plan", label="Plan", widget="text", required=True),
        forms.Field(key="size", label="Size", widget="enum", choices=("small", "large"), required=True),
        forms.Field(key="breaking", label="Breaking", widget="boolean", required=True, value=False),
        forms.Field(key="labels", label="Labels", widget="any", choices=("x", "y"), value=["x"]),
        forms.Field(key="risks", label="Risks", widget="bullets", value=["one"]),
        forms.Field(key="extra", label="Extra", widget="json", value={"a": 1}),
    ),
)
QUESTIONS = forms.QuestionsDefinition(
    **FRAME,
    round=1,
    items=(
        forms.Question(id="Q1", kind="one", text="a", options=CHOICES, other=True),
        forms.Question(id="Q2", kind="any", text="b", options=CHOICES),
        forms.Question(id="Q3", kind="text", text="c", required=False),
        forms.Question(id="Q4", kind="files", text="d"),
    ),
)


def options(least: int, most: int) -> forms.OptionsDefinition:
    return forms.OptionsDefinition(
        **FRAME, options=tuple(forms.Option(id=i, title=i) for i in "ABCD"), min=least, max=most
    )


def lacks(definition: forms.Definition, plain: dict[str, Any]) -> list[tuple[str, str]]:
    return [(lack.ref, lack.text) for lack in forms.lacks(definition, forms.from_plain(definition, plain))]


@pytest.mark.parametrize(
    ("least", "most", "chosen", "text"),
    [
        (1, 1, "", "Select 1 option to approve."),
        (2, 2, "", "Select 2 options to approve."),
        (2, 2, "A", "Select 1 more option to approve."),
        (1, 3, "", "Select 1 to 3 options to approve."),
        (1, 1, "AB", "2 options are selected; this gate takes 1. Untick one."),
        (1, 2, "ABCD", "4 options are selected; this gate takes 1 to 2. Untick 2."),
        (0, 1, "AB", "2 options are selected; this gate takes at most 1. Untick one."),
        (1, 1, "A", None),
        (0, 4, "", None),
        (1, 3, "ABC", None),
    ],
)
def test_st5_require_selection(least: int, most: int, chosen: str, text: str | None) -> None:
    assert lacks(options(least, most), dict.fromkeys(chosen, True)) == ([("", text)] if text else [])


@pytest.mark.parametrize(
    ("least", "most", "sentence"),
    [
        (1, 1, "Select exactly 1: put an x in its brackets. Then approve."),
        (2, 2, "Select exactly 2: put an x in their brackets. Then approve."),
        (1, 3, "Select 1 to 3: put an x in their brackets. Then approve."),
        (0, 2, "Select up to 2: put an x in their brackets. Then approve."),
        (0, 4, "Select what you want: put an x in their brackets. Then approve."),
    ],
)
def test_the_document_says_how_many_to_select(least: int, most: int, sentence: str) -> None:
    assert forms.render(options(least, most)).split("\n")[2] == f"> {sentence}"


def test_st5_require_all_checked() -> None:
    assert lacks(REVIEW, {"C1": {"ticked": True}}) == [("W1", "W1 is not ticked.")]
    assert lacks(REVIEW, {ref: {"ticked": True, "note": ""} for ref in ("C1", "W1")}) == []
    assert lacks(msgspec.structs.replace(REVIEW, required=False), {}) == []
    nothing = msgspec.structs.replace(REVIEW, items=())
    assert lacks(nothing, {}) == []
    assert "> Nothing was found. Approve." in forms.render(nothing)


def test_st5_require_fields_looks_at_the_value_as_it_stands() -> None:
    assert lacks(FIELDS, {}) == [
        ("plan", "Plan is required and still empty."),
        ("size", "Size is required and still empty."),
    ]
    filled = {"plan": "p", "size": "small"}
    assert lacks(FIELDS, filled) == []
    assert lacks(FIELDS, {**filled, "title": "", "breaking": None, "plan": " \n"}) == [
        ("title", "Title is required and still empty."),
        ("plan", "Plan is required and still empty."),
        ("breaking", "Breaking is required and still empty."),
    ]


def test_required_questions_want_an_answer_and_a_single_choice_is_single() -> None:
    assert lacks(QUESTIONS, {}) == [(q, f"{q} is required and still empty.") for q in ("Q1", "Q2", "Q4")]
    full = {"Q1": [{"other": "mine"}], "Q2": ["A", "B"], "Q4": ["a.ts"]}
    assert lacks(QUESTIONS, full) == []
    assert lacks(QUESTIONS, {**full, "Q1": ["A", {"other": "x"}]}) == [
        ("Q1", "Q1: 2 are ticked, one is wanted.")
    ]


def test_a_text_lacks_nothing() -> None:
    assert lacks(forms.TextDefinition(**FRAME), {}) == []


@pytest.mark.parametrize(
    ("definition", "plain", "kept"),
    [
        (options(1, 1), {"B": True, "A": False}, {"B": True}),
        (REVIEW, {"W1": {"note": " two\n lines "}, "C1": {}}, {"W1": {"ticked": False, "note": "two lines"}}),
        (FIELDS, {"title": "Add login", "extra": {"a": 1}, "breaking": False, "labels": ["x"]}, {}),
        (FIELDS, {"extra": {"a": True}, "labels": []}, {"labels": None, "extra": {"a": True}}),
        (FIELDS, {"breaking": ""}, {"breaking": None}),
        (FIELDS, {"plan": "\r\n a  \r\nb\r\n\r\n\r\nc\n"}, {"plan": "a\nb\n\nc"}),
        (FIELDS, {"risks": [" two\nlines", ""], "title": "\ud83d"}, {"title": "\ufffd", "risks": ["two lines"]}),
        (QUESTIONS, {"Q1": ["A", {"other": " "}], "Q2": [], "Q3": ""}, {"Q1": ["A"]}),
        (QUESTIONS, {"Q4": ["`a b.ts` ", "a b.ts"]}, {"Q4": ["a b.ts"]}),
        (QUESTIONS, {"Q1": None, "Q2": "", "Q3": None, "Q4": ""}, {}),
    ],
)  # fmt: skip
def test_answers_are_kept_in_one_form(
    definition: forms.Definition, plain: dict[str, Any], kept: dict[str, Any]
) -> None:
    answers = forms.from_plain(definition, plain)
    assert forms.to_plain(answers) == kept
    assert forms.to_plain(forms.parse(definition, forms.render(definition, answers)).answers) == kept


@pytest.mark.parametrize(
    ("definition", "plain", "sentence"),
    [
        (options(1, 1), {"Z": True}, "There is no option 'Z'; there are A, B, C and D."),
        (options(1, 1), {"A": "yes"}, "Option A is selected or not: true or false is wanted."),
        (forms.TextDefinition(**FRAME), {"A": 1}, "There is no item 'A'; there is none."),
        (REVIEW, {"C2": {}}, "There is no item 'C2'; there are C1 and W1."),
        (REVIEW, {"C1": True}, 'C1 takes {"ticked": true or false, "note": text}.'),
        (REVIEW, {"C1": {"ticked": 1}}, 'C1 takes {"ticked": true or false, "note": text}.'),
        (REVIEW, {"C1": {"done": True}}, 'C1 takes {"ticked": true or false, "note": text}.'),
        (FIELDS, {"x": 1}, "There is no field 'x'; there are title, plan, size, breaking, labels, risks and extra."),
        (FIELDS, {"title": 1}, "Title takes a text."),
        (FIELDS, {"title": "a\nb"}, "Title is one line; this is more."),
        (FIELDS, {"size": "huge"}, "Size takes one of: small, large."),
        (FIELDS, {"size": ["small"]}, "Size takes one of: small, large."),
        (FIELDS, {"breaking": 1}, "Breaking takes true or false."),
        (FIELDS, {"labels": "x"}, "Labels takes a list of: x, y."),
        (FIELDS, {"labels": ["z"]}, "Labels takes a list of: x, y."),
        (FIELDS, {"risks": [1]}, "Risks takes a list of texts."),
        (FIELDS, {"extra": float("nan")}, "Extra takes JSON."),
        (QUESTIONS, {"Q9": ""}, "There is no question 'Q9'; there are Q1, Q2, Q3 and Q4."),
        (QUESTIONS, {"Q1": ["C"]}, "There is no choice of Q1 'C'; there are A and B."),
        (QUESTIONS, {"Q1": "A"}, "Q1 takes a list of its choices."),
        (QUESTIONS, {"Q2": [{"other": "x"}]}, "Q2 takes one of its choices only."),
        (QUESTIONS, {"Q3": ["x"]}, "Q3 takes a text."),
        (QUESTIONS, {"Q4": "a.ts"}, "Q4 takes a list of paths."),
        (QUESTIONS, {"Q4": ["a\nb"]}, "Q4: a path is one line."),
    ],
)  # fmt: skip
def test_what_does_not_belong_to_the_form_is_refused_with_a_sentence(
    definition: forms.Definition, plain: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(forms.FormError) as refused:
        forms.from_plain(definition, plain)
    assert str(refused.value) == sentence


def test_every_value_of_a_form_as_it_stands() -> None:
    answers = forms.from_plain(FIELDS, {"plan": "p", "breaking": True, "risks": []})
    assert isinstance(answers, forms.FieldsAnswers)
    assert forms.field_values(FIELDS, answers) == {
        "title": "Add login", "plan": "p", "size": None, "breaking": True, "labels": ["x"], "risks": None,
        "extra": {"a": 1},
    }  # fmt: skip


@pytest.mark.parametrize(
    "definition", [options(1, 2), REVIEW, FIELDS, QUESTIONS, forms.TextDefinition(**FRAME)]
)
def test_a_definition_is_kept_as_json(definition: forms.Definition) -> None:
    packed = msgspec.json.encode(definition)
    assert msgspec.json.decode(packed, type=forms.Definition) == definition
    assert forms.render(msgspec.json.decode(packed, type=forms.Definition)) == forms.render(definition)


# --- several people -----------------------------------------------------------------------------------


def merged(
    base: dict[str, Any], mine: dict[str, Any], theirs: dict[str, Any]
) -> tuple[dict[str, Any], list[tuple[str, Any, Any]]]:
    parts = [forms.from_plain(FIELDS, part) for part in (base, mine, theirs)]
    result = forms.merge(FIELDS, *parts)
    return forms.to_plain(result.answers), [(c.ref, c.mine, c.theirs) for c in result.conflicts]


def test_people_on_different_items_never_meet() -> None:
    assert merged({"plan": "a"}, {"plan": "a", "title": "mine"}, {"plan": "theirs"}) == (
        {"title": "mine", "plan": "theirs"},
        [],
    )
    assert merged({"plan": "a"}, {}, {"plan": "a", "size": "small"}) == ({"size": "small"}, [])


def test_on_the_same_item_what_was_there_first_stays_and_is_named() -> None:
    assert merged({}, {"plan": "mine"}, {"plan": "theirs"}) == (
        {"plan": "theirs"},
        [("plan", "mine", "theirs")],
    )
    assert merged({"plan": "a"}, {}, {"plan": "theirs"}) == ({"plan": "theirs"}, [("plan", None, "theirs")])
    assert merged({}, {"title": ""}, {"title": "x"}) == ({"title": "x"}, [("title", None, "x")])


def test_the_same_change_of_both_is_no_conflict() -> None:
    assert merged({"plan": "a"}, {"plan": "b"}, {"plan": "b"}) == ({"plan": "b"}, [])
    assert merged({"plan": "a"}, {}, {}) == ({}, [])


def test_an_emptied_field_wins_over_the_agents_value() -> None:
    assert merged({}, {"title": ""}, {"plan": "p"}) == ({"title": None, "plan": "p"}, [])


def test_a_difference_names_the_changed_line_and_no_formatting() -> None:
    text = forms.render(FIELDS)
    other = text.replace("Add login", "Add a login").replace("\n", "  \r\n").replace("- [", "* [")
    found = forms.difference(FIELDS, text, other).split("\n")
    assert [line for line in found if line[:1] in "+-"][2:] == ["-Add login", "+Add a login"]
    assert forms.difference(FIELDS, text, text.replace("\n", "\r\n")) == ""


def test_the_difference_of_long_documents_is_still_found() -> None:
    definition = forms.TextDefinition(**FRAME)
    lines = [f"line {n}" for n in range(6000)]
    one = forms.render(msgspec.structs.replace(definition, body="\n".join(lines)))
    two = one.replace("line 3000\n", "line three\n")
    assert forms.difference(definition, one, two).split("\n") == [
        "--- ours", "+++ theirs", "@@ -3005,1 +3005,1 @@", "-line 3000", "+line three",
    ]  # fmt: skip
    assert forms.difference(definition, one, one) == ""


@pytest.mark.parametrize(
    ("lacks", "said"),
    [
        ([], ""),
        (["C1 is not ticked."], "C1 is not ticked."),
        (["C1 is not ticked.", "Select 1.", "W1 is not ticked."], "C1 and W1 are not ticked. Select 1."),
        ([f"{ref} is not ticked." for ref in "ABCDE"], "A, B, C, D and E are not ticked."),
        ([f"{ref} is not ticked." for ref in "ABCDEF"], "A, B, C, D and 2 more are not ticked."),
        (
            [
                "What it is is required and still empty.",
                "Title is required and still empty.",
                "A is not ticked.",
            ],
            "What it is and Title are required and still empty. A is not ticked.",
        ),
    ],
)
def test_st5_what_several_items_lack_is_one_sentence(lacks: list[str], said: str) -> None:
    assert forms.together(lacks) == said
