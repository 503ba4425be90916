"""Every row of the grammar (UX 2.2 to 2.7) and of what happens when it is broken (UX 2.11)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from promptside_protocol import forms

EXAMPLES = Path(__file__).parents[2] / "fixtures" / "forms"
FRAME: dict[str, Any] = {"task": 12, "attempt": 1}
OPTIONS = forms.OptionsDefinition(
    **FRAME,
    stage="high-level-approaches",
    title="High-Level Approaches",
    options=(forms.Option(id="A", title="a"), forms.Option(id="B", title="b")),
)
REVIEW = forms.ChecklistDefinition(
    task=12,
    attempt=2,
    stage="security-review",
    title="Security Review",
    items=(
        forms.CheckItem(id="C1", severity="critical", title="a"),
        forms.CheckItem(id="C2", severity="critical", title="b"),
        forms.CheckItem(id="W1", severity="warning", title="c"),
    ),
)
FIELDS = forms.FieldsDefinition(
    **FRAME,
    stage="pr-preparation",
    title="PR Preparation",
    fields=(
        forms.Field(key="title", label="Title", widget="line", required=True),
        forms.Field(key="description", label="Description", required=True),
        forms.Field(key="test_plan", label="Test plan", required=True),
        forms.Field(key="breaking", label="Breaking change", widget="boolean"),
    ),
)
QUESTIONS = forms.QuestionsDefinition(
    **FRAME,
    stage="research",
    title="Questions: Research",
    round=1,
    items=(
        forms.Question(
            id="Q1",
            kind="one",
            text="a",
            other=True,
            options=(forms.Choice(id="A", title="a"), forms.Choice(id="B", title="b")),
        ),
        forms.Question(
            id="Q2", kind="any", text="b", options=tuple(forms.Choice(id=i, title=i) for i in "ABC")
        ),
        forms.Question(
            id="Q3",
            kind="yes_no",
            text="c",
            options=(forms.Choice(id="Yes", title="Yes"), forms.Choice(id="No", title="No")),
        ),
        forms.Question(id="Q4", kind="text", text="d", required=False),
        forms.Question(id="Q5", kind="files", text="e", required=False),
        forms.Question(id="Q6", kind="code", text="f", required=False, lang="sql"),
    ),
)
NAMES: dict[str, forms.Definition] = {
    "02-high-level-approaches": OPTIONS,
    "06-security-review": REVIEW,
    "07-pr-preparation": FIELDS,
    "01-research-questions-1": QUESTIONS,
}
NAME = {definition.stage: name for name, definition in NAMES.items()}


def document(definition: forms.Definition) -> str:
    return (EXAMPLES / f"{NAME[definition.stage]}.md").read_text(encoding="utf-8")


def changed(definition: forms.Definition, old: str, new: str) -> str:
    text = document(definition)
    assert old in text
    return text.replace(old, new, 1)


def answers(definition: forms.Definition, text: str) -> dict[str, Any]:
    return forms.to_plain(forms.parse(definition, text).answers)


def faults(definition: forms.Definition, text: str, severity: str = "error") -> list[tuple[int, str]]:
    return [(p.line, p.text) for p in forms.parse(definition, text).problems if p.severity == severity]


# --- what is accepted ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tick",
    [
        "- [x] Select B",
        "* [x] Select B",
        "+ [x] Select B",
        "- [X] Select B",
        "   - [x] Select B",
        "- [x]   Select B  ",
    ],
)
def test_a_tick_is_read_in_every_usual_hand(tick: str) -> None:
    text = changed(OPTIONS, "- [ ] Select B", tick)
    assert answers(OPTIONS, text) == {"B": True}
    assert faults(OPTIONS, text) == []


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r", "  \n", "\t\r\n"])
def test_line_ends_and_blanks_at_them_say_nothing(ends: str) -> None:
    for definition in NAMES.values():
        text = document(definition)
        assert (
            forms.parse(definition, text.replace("\n", ends)).answers == forms.parse(definition, text).answers
        )


@pytest.mark.parametrize("separator", ["·", ":", ".", "-", "–", "—"])
def test_any_separator_and_title_opens_an_item(separator: str) -> None:
    text = changed(OPTIONS, "## B · Signed JWT in a cookie", f"## B {separator} Something else")
    text = text.replace("- [ ] Select B", "- [x] Select B")
    assert answers(OPTIONS, text) == {"B": True}
    assert faults(OPTIONS, text) == []


@pytest.mark.parametrize(
    "label",
    ["## test plan", "## TEST  PLAN (required)", "## Test plan (text, required)", "## Test plan ##"],
)
def test_a_field_is_known_by_its_label_alone(label: str) -> None:
    text = changed(FIELDS, "## Test plan (required)\n", f"{label}\n\nby hand\n")
    assert answers(FIELDS, text)["test_plan"] == "by hand"
    assert faults(FIELDS, text) == []


def test_an_unknown_id_is_prose_and_ends_the_item() -> None:
    text = changed(OPTIONS, "## B ·", "## Z · mine\n\n- [x] Select A\n\n## B ·")
    assert answers(OPTIONS, text) == {}
    assert faults(OPTIONS, text) == []


@pytest.mark.parametrize("fence", ["```", "~~~", "````md", "   ```"])
def test_nothing_in_a_code_block_is_a_token(fence: str) -> None:
    mark = fence.strip(" md")
    inner = "- [x] Select B\n## A · x\n- [] y\n>> z\n<!-- promptside 1/x#9 options -->\n<<<<<<< HEAD"
    text = changed(OPTIONS, "Stateless", f"{fence}\n{inner}\n{mark}\nStateless")
    parsed = forms.parse(OPTIONS, text)
    assert forms.to_plain(parsed.answers) == {}
    assert parsed.notes == ()
    assert faults(OPTIONS, text) == []


@pytest.mark.parametrize("at_line", ["Answer:\n", "Answer:", "Answer: ", "Answer:\n\n"])
def test_an_answer_begins_behind_its_word(at_line: str) -> None:
    text = changed(QUESTIONS, "Answer:\nKeep them logged in.", f"{at_line}Keep them.\nAnswer: is a word here")
    assert answers(QUESTIONS, text)["Q4"] == "Keep them.\nAnswer: is a word here\n\nUntil their token ends."


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("- a.ts\n* b.ts\n+ c.ts", ["a.ts", "b.ts", "c.ts"]),
        ("a b.ts", ["a b.ts"]),
        ("- `src/[id]/page.tsx`", ["src/[id]/page.tsx"]),
        ("- [x]/page.tsx", ["[x]/page.tsx"]),
        ("- a.ts\n- a.ts", ["a.ts"]),
    ],
)
def test_files_are_a_list_in_any_hand(written: str, read: list[str]) -> None:
    text = changed(QUESTIONS, "- src/http/router.ts\n-", written)
    assert answers(QUESTIONS, text)["Q5"] == read
    assert faults(QUESTIONS, text) == []


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("~~~sql\nselect 1;\n~~~", "select 1;"),
        ("select 1;", "select 1;"),
        ("As this:\n```sql\nselect 1;\n```", "As this:\n```sql\nselect 1;\n```"),
        ("```\n```", None),
        ("````sql\n    a\n```\n````", "    a\n```"),
    ],
)
def test_code_is_the_content_of_its_block(written: str, read: str | None) -> None:
    text = changed(QUESTIONS, "```sql\ncreate table sessions (id text primary key);\n```", written)
    assert answers(QUESTIONS, text).get("Q6") == read


def test_other_may_go_on_in_lines_below() -> None:
    text = changed(QUESTIONS, "OAuth in a later task", "OAuth\n  in a later\n  task")
    assert answers(QUESTIONS, text)["Q1"] == [{"other": "sessions now, OAuth in a later task"}]


@pytest.mark.parametrize(
    "note",
    [
        "  - Note: it is\n    fine",
        "  * Note:  it   is fine",
        "  Note: it is fine",
        "  - Note:\n    it is\n\n    fine",
    ],
)
def test_a_note_of_a_point_is_one_paragraph(note: str) -> None:
    text = changed(REVIEW, "cookies included.\n  - Note:", f"cookies included.\n{note}")
    assert answers(REVIEW, text)["C2"] == {"ticked": False, "note": "it is fine"}


@pytest.mark.parametrize(
    ("definition", "old", "new"),
    [
        (FIELDS, "Adds a sessions table", "- [] a\n- [y] b\n-[x] c\n[z] Adds a sessions table"),
        (QUESTIONS, "Keep them logged in.", "- [] a\n[]\n[x]\nKeep them logged in."),
    ],
)
def test_a_free_text_may_hold_what_is_nearly_a_tick(definition: forms.Definition, old: str, new: str) -> None:
    assert faults(definition, changed(definition, old, new)) == []


@pytest.mark.parametrize("line", ["- [link](x)", "- [ab]: x", "[1](x)", "[x][y]"])
def test_a_link_is_no_broken_tick(line: str) -> None:
    assert faults(OPTIONS, changed(OPTIONS, "Stateless", f"{line}\nStateless")) == []


def test_a_text_has_no_faults_at_all() -> None:
    definition = forms.TextDefinition(**FRAME, stage="planning", title="Planning")
    text = "# Planning\n\n- [] a\n## A · b\n## A · c\nAnswer:\n```\nopen\n"
    assert forms.parse(definition, text).problems == ()


# --- notes to the agent -------------------------------------------------------------------------------


def test_a_note_belongs_to_the_nearest_item_above_and_lines_in_a_row_are_one() -> None:
    text = changed(OPTIONS, "\n> Select", "\n>> for all\n\n> Select")
    text = text.replace("Stateless", ">> and refresh?\n  >>and logout?\n\nStateless\n>> third\nand")
    parsed = forms.parse(OPTIONS, text)
    assert [(n.line, n.ref, n.text) for n in parsed.notes] == [
        (3, "", "for all"),
        (26, "B", "and refresh?\nand logout?"),
        (30, "B", "third"),
    ]
    assert faults(OPTIONS, text, "information")[1] == (
        3,
        "3 notes for the agent. Approving needs them sent or removed.",
    )


@pytest.mark.parametrize("line", [">>> three", "> > two", "x >> y", "\\>> z"])
def test_what_is_no_note(line: str) -> None:
    assert forms.parse(OPTIONS, changed(OPTIONS, "Stateless", line)).notes == ()


def test_a_note_is_no_part_of_an_answer_and_stays_when_the_answer_changes() -> None:
    text = changed(QUESTIONS, "Until their", ">> is there a token?\nUntil their")
    parsed = forms.parse(QUESTIONS, text)
    assert forms.to_plain(parsed.answers)["Q4"] == "Keep them logged in.\n\nUntil their token ends."
    other = forms.from_plain(QUESTIONS, {**forms.to_plain(parsed.answers), "Q4": "Log them out."})
    after = forms.parse(QUESTIONS, forms.apply(QUESTIONS, text, other))
    assert after.answers == other
    assert [(n.ref, n.text) for n in after.notes] == [("Q4", "is there a token?")]


# --- what is broken -----------------------------------------------------------------------------------

NOT_A_TICK = 'Not a tick: write "- [x] " or "- [ ] ", with a space after each part.'


@pytest.mark.parametrize(
    "bad",
    ["- [] Select A", "-[x] Select A", "- [x]Select A", "- [y] Select A", "[x] Select A", "* [xx] Select A"],
)
def test_a_broken_tick_is_said_and_never_guessed(bad: str) -> None:
    text = changed(OPTIONS, "- [ ] Select A", bad)
    assert faults(OPTIONS, text) == [(7, NOT_A_TICK)]
    assert answers(OPTIONS, text) == {}
    assert forms.parse(OPTIONS, text).unread == {"A"}


@pytest.mark.parametrize(
    ("definition", "old", "new", "line", "text"),
    [
        (OPTIONS, "## B · Signed", "## Signed", 1, "B is missing from the document."),
        (REVIEW, "- [ ] **C2** Session", "- Session", 1, "C2 is missing from the document."),
        (FIELDS, "## Test plan (required)\n", "", 1, "Test plan is missing from the document."),
        (QUESTIONS, "## Q3 · May", "## May", 1, "Q3 is missing from the document."),
        (OPTIONS, "## B · ", "## A · ", 20, "A is here twice (first in line 5)."),
        (REVIEW, "**C2**", "**C1**", 12, "C1 is here twice (first in line 7)."),
        (FIELDS, "## Test plan (required)", "## Title", 17, "Title is here twice (first in line 5)."),
        (QUESTIONS, "## Q2 ·", "## Q1 ·", 13, "Q1 is here twice (first in line 5)."),
        (OPTIONS, "#1 options", "#3 options", 34, "This is attempt 3; attempt 1 waits for you."),
        (REVIEW, "#2 checklist", "#1 checklist", 22, "This is attempt 1; attempt 2 waits for you."),
        (QUESTIONS, "questions 1", "questions 2", 46, "This is round 2; round 1 waits for you."),
        (
            OPTIONS,
            "12/high-level-approaches#1 options",
            "13/planning#1 text",
            34,
            "This is the document of 13/planning (text); 12/high-level-approaches waits for you.",
        ),
        (OPTIONS, "- [ ] Select B\n", "", 20, 'B: the line "- [ ] Select B" is missing.'),
        (QUESTIONS, "Answer:\nKeep them", "Keep them", 26, 'Q4: the line "Answer:" is missing.'),
        (QUESTIONS, "Files:\n", "", 33, 'Q5: the line "Files:" is missing.'),
        (FIELDS, "sessions\n", "sessions\nand more\n", 8, "Title is one line; this is two."),
        (FIELDS, "- [ ] Yes", "- [x] Yes", 19, "Breaking change: 2 are ticked, one is wanted."),
        (QUESTIONS, "- [ ] A · Server", "- [x] A · Server", 5, "Q1: 2 are ticked, one is wanted."),
        (QUESTIONS, "- [ ] Yes", "- [x] Yes", 19, "Q3: 2 are ticked, one is wanted."),
        (
            QUESTIONS,
            "Other: sessions now, OAuth in a later task",
            "Other:",
            11,
            "Q1: Other is ticked, but nothing is written behind it.",
        ),
    ],
)
def test_what_a_person_broke_is_said_at_the_line(
    definition: forms.Definition, old: str, new: str, line: int, text: str
) -> None:
    assert (line, text) in faults(definition, changed(definition, old, new))


@pytest.mark.parametrize(
    ("definition", "old", "new", "line", "text"),
    [
        (
            FIELDS,
            "### How it works",
            "## How it works",
            13,
            "'How it works' is not a field; it is read as part of Description.",
        ),
        (
            QUESTIONS,
            "- [x] Other: sessions",
            "- [ ] Other: sessions",
            11,
            "Q1: there is text behind Other, but it is not ticked.",
        ),
        (
            QUESTIONS,
            "- [ ] B · Signed",
            "- [x] D · Signed",
            10,
            "'D · Signed tokens (JWT)' is not one of the choices. Write it behind Other.",
        ),
        (
            QUESTIONS,
            "- [ ] C · `/api",
            "- [x] D · `/api",
            17,
            "'D · `/api/catalog/**`' is not one of the choices.",
        ),
    ],
)
def test_what_may_be_meant_otherwise_is_a_warning(
    definition: forms.Definition, old: str, new: str, line: int, text: str
) -> None:
    written = changed(definition, old, new)
    assert (line, text) in faults(definition, written, "warning")
    assert faults(definition, written) == []


def test_a_heading_in_a_field_stays_a_part_of_it() -> None:
    text = changed(FIELDS, "### How it works", "## How it works")
    assert "## How it works" in answers(FIELDS, text)["description"]


def test_a_surplus_tick_is_said_at_the_tick() -> None:
    text = document(OPTIONS).replace("- [ ] Select", "- [x] Select")
    assert faults(OPTIONS, text) == [(22, "2 are selected; this gate takes 1. Untick one.")]


def test_an_item_that_was_copied_counts_once() -> None:
    text = changed(OPTIONS, "<!--", "## A · again\n\n- [x] Select A\n\n<!--")
    assert answers(OPTIONS, text) == {}
    assert faults(OPTIONS, text) == [(34, "A is here twice (first in line 5).")]


def test_an_open_code_block_is_one_message_and_not_one_for_each_item() -> None:
    text = changed(QUESTIONS, "It has 0 rows", "```\nIt has 0 rows")
    found = faults(QUESTIONS, text)
    assert found == [(21, "This code block is not closed. Nothing below it is read: Q4, Q5 and Q6.")]


def test_an_open_code_block_names_what_it_swallowed() -> None:
    text = changed(OPTIONS, "A `sessions`", "~~~\nA `sessions`")
    assert faults(OPTIONS, text) == [(9, "This code block is not closed. Nothing below it is read: B.")]
    assert forms.parse(OPTIONS, text).unread == {"A", "B"}


def test_a_last_line_that_is_gone_is_nothing() -> None:
    for definition in NAMES.values():
        text = document(definition)
        cut = text[: text.index("<!--")]
        parsed = forms.parse(definition, cut)
        assert parsed.answers == forms.parse(definition, text).answers
        assert [p for p in parsed.problems if p.severity == "error"] == []
        assert forms.shown(definition, cut) == forms.shown(definition, text)


def test_of_a_document_with_merge_conflicts_nothing_is_read() -> None:
    text = changed(REVIEW, "## Critical", "<<<<<<< HEAD\n## Critical\n=======\n>>>>>>> theirs")
    parsed = forms.parse(REVIEW, text)
    assert [(p.line, p.text) for p in parsed.problems] == [
        (5, "There are merge conflict markers in this document.")
    ]
    assert forms.to_plain(parsed.answers) == {}
    assert parsed.unread == {"C1", "C2", "W1"}
    assert forms.apply(REVIEW, text, forms.from_plain(REVIEW, {"C2": {"ticked": True}})) == text


def test_what_is_broken_keeps_the_answers_from_before() -> None:
    draft = forms.from_plain(REVIEW, {"C1": {"ticked": True}, "C2": {"ticked": True, "note": "seen"}})
    text = changed(REVIEW, "- [ ] **C2**", "- [] **C2**").replace("- [x] **C1**", "- [ ] **C1**")
    kept = forms.edited(REVIEW, draft, forms.parse(REVIEW, text))
    assert forms.to_plain(kept)["C2"] == {"ticked": True, "note": "seen"}
    assert forms.to_plain(kept)["C1"] == {"ticked": False, "note": "fixed in Refinement, see limiter.ts"}


@pytest.mark.parametrize("bad", ["- [] **C2**", "[x] **C2**", "-[ ] **C2**"])
def test_a_point_with_a_broken_tick_is_still_where_it_is(bad: str) -> None:
    text = changed(REVIEW, "- [ ] **C2**", bad)
    assert faults(REVIEW, text) == [(12, NOT_A_TICK)]
    assert forms.parse(REVIEW, text).unread == {"C2"}


def test_json_that_is_none_is_said_at_its_line() -> None:
    definition = forms.FieldsDefinition(
        **FRAME, stage="s", title="S", fields=(forms.Field(key="j", label="Risks", widget="json", value=[1]),)
    )
    text = forms.render(definition)
    assert faults(definition, text.replace("  1\n", "  1 x\n")) == [
        (9, "Risks is not valid JSON: Expecting ',' delimiter.")
    ]
    for bad in ("NaN", "1e999", "[" * 100_000):
        assert faults(definition, text.replace("  1\n", f"  {bad}\n"))[0][1].startswith(
            "Risks is not valid JSON"
        )
    assert answers(definition, text.replace("  1\n", "  true\n")) == {"j": [True]}


# --- what a gate lacks --------------------------------------------------------------------------------


def test_a_lack_is_information_on_line_1_and_a_hint_at_its_item() -> None:
    text = document(REVIEW)
    assert faults(REVIEW, text, "information") == [(1, "C2 is not ticked.")]
    assert faults(REVIEW, text, "hint") == [(12, "C2 is not ticked.")]
    assert faults(OPTIONS, document(OPTIONS), "information") == [(1, "Select 1 option to approve.")]
    assert faults(FIELDS, document(FIELDS), "hint") == [(17, "Test plan is required and still empty.")]
    empty = forms.render(QUESTIONS)
    assert faults(QUESTIONS, empty, "hint")[0] == (5, "Q1 is required and still empty.")
    assert {p.code for p in forms.parse(QUESTIONS, empty).problems} == {"gate-lacks"}


def test_many_lacks_are_summed_up() -> None:
    items = tuple(forms.CheckItem(id=f"I{n}", severity="info", title="x") for n in range(1, 6))
    definition = forms.ChecklistDefinition(**FRAME, stage="s", title="S", items=items)
    assert faults(definition, forms.render(definition), "information") == [
        (1, "I1, I2, I3, I4 and I5 are not ticked.")
    ]
